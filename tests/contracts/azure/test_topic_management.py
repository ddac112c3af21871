"""Topics, domains, their topics and system topics, as azure-mgmt-eventgrid makes, shows and changes them."""

import base64

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.eventgrid import models

from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION
from tests.contracts.azure.resources import EVENT_GRID, PROVIDERS, STORAGE, Resources, refused

CLOUD_EVENTS = "CloudEventSchemaV1_0"


def names(listed: object) -> list[str]:
    return [one.name for one in listed]  # type: ignore[attr-defined]  # a pager of models


# ---- topics ------------------------------------------------------------------------------------------------------


def test_a_topic_is_made_and_shown(resources: Resources) -> None:
    made = resources.topic("Orders", tags={"team": "shop"})
    assert (made.id, made.name, made.type) == (
        f"{EVENT_GRID}/topics/Orders",
        "Orders",
        "Microsoft.EventGrid/topics",
    )
    assert (made.location, made.tags, made.provisioning_state) == ("local", {"team": "shop"}, "Succeeded")
    assert (made.input_schema, made.public_network_access, made.disable_local_auth) == (
        "EventGridSchema",
        "Enabled",
        False,
    )
    assert made.endpoint == f"{resources.server.url}/eventgrid/{SUBSCRIPTION}/{GROUP}/Orders/api/events"
    assert resources.client.topics.get(GROUP, "orders").as_dict() == made.as_dict()


def test_fields_of_older_api_versions_are_kept_and_shown(resources: Resources) -> None:
    document = {"location": "local", "sku": {"name": "Basic"}, "kind": "Azure", "identity": {"type": "None"}}
    status, made = resources.ask("PUT", f"{EVENT_GRID}/topics/orders", document)
    assert status == 201
    assert {name: made[name] for name in document} == document
    assert resources.ask("GET", f"{EVENT_GRID.upper()}/TOPICS/ORDERS") == (200, made)


def test_a_topic_is_changed(resources: Resources) -> None:
    topics = resources.client.topics
    resources.topic(tags={"a": "b"})
    keys = topics.list_shared_access_keys(GROUP, "orders")
    change = models.TopicUpdateParameters(tags={"c": "d"}, disable_local_auth=True)
    shown = topics.begin_update(GROUP, "orders", change).result()
    assert (shown.tags, shown.disable_local_auth) == ({"c": "d"}, True)
    resources.topic(tags={"e": "f"})
    shown = topics.get(GROUP, "orders")
    assert (shown.tags, shown.disable_local_auth) == ({"e": "f"}, False)
    assert topics.list_shared_access_keys(GROUP, "orders").key1 == keys.key1


def test_keys_are_32_bytes_and_one_at_a_time_is_made_anew(resources: Resources) -> None:
    resources.topic()
    topics = resources.client.topics
    before = topics.list_shared_access_keys(GROUP, "orders")
    assert [len(base64.b64decode(key)) for key in (before.key1, before.key2)] == [32, 32]
    wish = models.TopicRegenerateKeyRequest(key_name="key2")
    after = topics.begin_regenerate_key(GROUP, "orders", wish).result()
    assert after.key1 == before.key1
    assert after.key2 != before.key2
    wish.key_name = "key3"
    assert refused(topics.begin_regenerate_key, GROUP, "orders", wish)[0] == 400


def test_a_topic_goes_with_its_subscriptions(resources: Resources) -> None:
    topic = resources.topic()
    resources.subscribe(topic.id)
    for _ in range(2):  # who asks again is told the same
        resources.client.topics.begin_delete(GROUP, "orders").result()
    with pytest.raises(ResourceNotFoundError, match="topics/orders' under resource group 'rg'"):
        resources.client.topics.get(GROUP, "orders")
    resources.topic()
    assert list(resources.client.topic_event_subscriptions.list(GROUP, "orders")) == []


@pytest.mark.parametrize("name", ["ab", "a" * 51, "under_score", "MicrosoftOrders", "eventgrid-1", "SYSTEM"])
def test_malformed_topic_names_are_refused(resources: Resources, name: str) -> None:
    status, code, message = refused(resources.topic, name)
    assert (status, code) == (400, "InvalidRequest")
    assert "3 to 50 letters" in message


@pytest.mark.parametrize(
    ("name", "code"), [("a%2Fb-c", "InvalidResourceType"), ("a%3Ab-c", "InvalidResourceName")]
)
def test_names_that_would_break_out(resources: Resources, name: str, code: str) -> None:
    for path in (f"{EVENT_GRID}/topics/{name}", f"{EVENT_GRID}/topics/{name}/eventSubscriptions/billing"):
        assert resources.ask("GET", path)[0] in (400, 404)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}/providers/Microsoft.EventGrid/topics/orders"
    status, answer = resources.ask("PUT", group, {"location": "local"})
    assert (status // 100, answer["error"]["code"]) == (4, code)
    dots = f"{PROVIDERS}/Microsoft.Storage/storageAccounts/.."
    assert refused(resources.subscribe, dots)[0] == 400


def test_a_document_that_is_too_deep(resources: Resources) -> None:
    body = b'{"location": "l", "properties": {"a": ' + b'{"a": ' * 900 + b"1" + b"}" * 900 + b"}}"
    assert resources.server.ask("PUT", f"{EVENT_GRID}/topics/orders", body)[0] == 400


def test_fixed_fields_of_a_topic_cannot_be_changed(resources: Resources) -> None:
    resources.topic(input_schema=CLOUD_EVENTS)
    status, _, message = refused(resources.topic)
    assert (status, "'inputSchema' is 'CloudEventSchemaV1_0'" in message) == (400, True)
    status, code, _ = refused(resources.topic, input_schema=CLOUD_EVENTS, location="elsewhere")
    assert (status, code) == (409, "InvalidResourceLocation")


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"properties": {}}, "LocationRequired"),
        ({"location": "l", "properties": {"inputSchema": "Other"}}, "InvalidRequest"),
        ({"location": "l", "properties": {"disableLocalAuth": "yes"}}, "InvalidRequest"),
        ({"location": "l", "properties": {"publicNetworkAccess": "Maybe"}}, "InvalidRequest"),
        ({"location": "l", "properties": {"inboundIpRules": [{"action": "Allow"}]}}, "InvalidRequest"),
        ({"location": "l", "properties": {"inputSchemaMapping": {"properties": {}}}}, "InvalidRequest"),
        ({"location": "l", "tags": {"a": 1}}, "InvalidRequest"),
        (["location"], "InvalidRequestContent"),
    ],
)
def test_malformed_topic_documents_are_refused(resources: Resources, document: object, code: str) -> None:
    status, answer = resources.ask("PUT", f"{EVENT_GRID}/topics/orders", document)
    assert (status, answer["error"]["code"]) == (400, code)
    assert resources.ask("GET", f"{EVENT_GRID}/topics/orders")[0] == 404


def test_unknown_resource_types_and_methods_are_refused(resources: Resources) -> None:
    assert resources.ask("GET", f"{EVENT_GRID}/partnerTopics/p")[1]["error"]["code"] == "InvalidResourceType"
    assert resources.ask("POST", f"{EVENT_GRID}/topics/orders")[0] == 405


# ---- lists -------------------------------------------------------------------------------------------------------


def test_lists_are_filtered_and_come_in_pages(resources: Resources) -> None:
    for name in ("orders-eu", "orders-us", "billing"):
        resources.topic(name)
    resources.domain("orders-domain")
    topics = resources.client.topics
    assert names(topics.list_by_resource_group(GROUP)) == ["billing", "orders-eu", "orders-us"]
    assert names(topics.list_by_subscription(top=1)) == ["billing", "orders-eu", "orders-us"]
    pages = topics.list_by_resource_group(GROUP, top=2).by_page()
    assert [names(page) for page in pages] == [["billing", "orders-eu"], ["orders-us"]]
    wanted = "contains(name, 'orders') and not (name eq 'orders-eu')"
    assert names(topics.list_by_resource_group(GROUP, filter=wanted)) == ["orders-us"]
    assert names(topics.list_by_resource_group("other")) == []
    assert refused(lambda: list(topics.list_by_subscription(filter="location eq 'local'")))[0] == 400
    assert refused(lambda: list(topics.list_by_subscription(top=101)))[0] == 400


# ---- domains -----------------------------------------------------------------------------------------------------


def test_a_domain_has_topics_made_by_hand(resources: Resources) -> None:
    made = resources.domain("Shops", input_schema=CLOUD_EVENTS)
    assert made.type == "Microsoft.EventGrid/domains"
    assert (
        made.endpoint == f"{resources.server.url}/eventgrid/{SUBSCRIPTION}/{GROUP}/domains/Shops/api/events"
    )
    topics = resources.client.domain_topics
    topic = topics.begin_create_or_update(GROUP, "Shops", "London").result()
    assert (topic.id, topic.type) == (f"{made.id}/topics/London", "Microsoft.EventGrid/domains/topics")
    assert names(topics.list_by_domain(GROUP, "shops")) == ["London"]
    topics.begin_delete(GROUP, "Shops", "london").result()
    assert names(topics.list_by_domain(GROUP, "shops")) == []
    with pytest.raises(ResourceNotFoundError):
        topics.begin_create_or_update(GROUP, "Others", "London")


def test_a_domain_topic_comes_and_goes_with_its_subscriptions(resources: Resources) -> None:
    domain = resources.domain()
    topics, scope = resources.client.domain_topics, f"{domain.id}/topics/London"
    resources.subscribe(scope, "first")
    resources.subscribe(scope, "second")
    assert names(topics.list_by_domain(GROUP, "shops")) == ["London"]
    resources.client.event_subscriptions.begin_delete(scope, "first").result()
    assert names(topics.list_by_domain(GROUP, "shops")) == ["London"]
    resources.client.event_subscriptions.begin_delete(scope, "second").result()
    assert names(topics.list_by_domain(GROUP, "shops")) == []


def test_a_domain_may_leave_its_topics_to_people(resources: Resources) -> None:
    domain = resources.domain(
        auto_create_topic_with_first_subscription=False, auto_delete_topic_with_last_subscription=False
    )
    scope = f"{domain.id}/topics/London"
    assert refused(resources.subscribe, scope)[0] == 404
    resources.client.domain_topics.begin_create_or_update(GROUP, "shops", "London").result()
    resources.subscribe(scope)
    resources.client.event_subscriptions.begin_delete(scope, "billing").result()
    assert names(resources.client.domain_topics.list_by_domain(GROUP, "shops")) == ["London"]


def test_a_domain_goes_with_its_topics(resources: Resources) -> None:
    domain = resources.domain()
    resources.subscribe(f"{domain.id}/topics/London")
    resources.client.domains.begin_delete(GROUP, "shops").result()
    resources.domain()
    assert names(resources.client.domain_topics.list_by_domain(GROUP, "shops")) == []


# ---- system topics, types, groups --------------------------------------------------------------------------------


def test_a_system_topic_is_a_name_for_its_source(resources: Resources) -> None:
    topics, kind = resources.client.system_topics, "Microsoft.Storage.StorageAccounts"
    wanted = models.SystemTopic(location="local", source=STORAGE, topic_type=kind)
    made = topics.begin_create_or_update(GROUP, "Letters", wanted).result()
    assert (made.source, made.topic_type, made.provisioning_state) == (STORAGE, kind, "Succeeded")
    extension = resources.client.extension_topics.get(STORAGE.lower())
    assert (extension.name, extension.system_topic) == ("default", made.id)
    nested = resources.client.system_topic_event_subscriptions
    fields = models.EventSubscription(destination=resources.webhook())
    nested.begin_create_or_update(GROUP, "Letters", "billing", fields).result()
    assert resources.shown(STORAGE).topic == STORAGE
    topics.begin_delete(GROUP, "letters").result()
    assert names(topics.list_by_resource_group(GROUP)) == []
    assert resources.shown(STORAGE).name == "billing"


def test_a_system_topic_needs_a_source_that_publishes(resources: Resources) -> None:
    wanted = models.SystemTopic(location="local", source=f"{PROVIDERS}/Microsoft.KeyVault/vaults/v")
    topics = resources.client.system_topics
    assert refused(topics.begin_create_or_update, GROUP, "letters", wanted)[0] == 400


def test_topic_types_and_event_types_are_listed(resources: Resources) -> None:
    types = resources.client.topic_types
    assert "Microsoft.Storage.StorageAccounts" in names(types.list())
    assert names(types.list_event_types("Microsoft.Storage.StorageAccounts")) == [
        "Microsoft.Storage.BlobCreated"
    ]
    inline = {"Order.Placed": models.InlineEventProperties(description="An order came in.")}
    resources.topic(event_type_info=models.EventTypeInfo(kind="Inline", inline_event_types=inline))
    listed = resources.client.topics.list_event_types(GROUP, "Microsoft.EventGrid", "topics", "orders")
    assert [(one.name, one.description) for one in listed] == [("Order.Placed", "An order came in.")]


def test_a_group_takes_what_is_in_it_away(resources: Resources) -> None:
    group = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}"
    assert resources.ask("HEAD", group)[0] == 404
    assert resources.ask("PUT", group, {"location": "local"})[0] == 201
    assert resources.ask("HEAD", group)[0] == 204
    for made in (resources.topic(), resources.domain()):
        resources.subscribe(made.id)
    resources.subscribe(STORAGE)
    document = {"location": "local", "properties": {"source": STORAGE}}
    inside = [f"{EVENT_GRID}/systemTopics/letters", f"{EVENT_GRID}/namespaces/shop"]
    for path in inside:
        assert resources.ask("PUT", path, document)[0] == 201
    assert resources.ask("PUT", f"{EVENT_GRID}/namespaces/shop/topics/orders", {})[0] == 201
    assert resources.ask("DELETE", group) == (200, None)
    inside += [f"{EVENT_GRID}/topics/orders", f"{EVENT_GRID}/domains/shops", group]
    assert [resources.ask("GET", path)[0] for path in inside] == [404] * 5
    assert list(resources.client.event_subscriptions.list_global_by_subscription()) == []

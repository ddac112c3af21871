"""Namespaces, their topics and event subscriptions, as the resource manager's client makes and changes them."""

import datetime as dt
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.eventgrid import models

from tests.contracts.azure.namespaces import GROUP, NAME, SUBSCRIPTION, Shop, orders, placed

ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.EventGrid/namespaces"


def refused(call: Any, *arguments: Any) -> HttpResponseError:
    with pytest.raises(HttpResponseError) as refusal:
        call(*arguments)
    error: HttpResponseError = refusal.value
    assert error.status_code == 400
    return error


# ---- namespaces --------------------------------------------------------------------------------------------------


def test_a_namespace_is_made_and_shown(shop: Shop) -> None:
    wanted = models.Namespace(location="local", tags={"team": "shop"}, sku=models.NamespaceSku(capacity=2))
    namespaces = shop.management.namespaces
    made = namespaces.begin_create_or_update(GROUP, "Second", wanted).result()
    assert (made.id, made.name, made.type) == (
        f"{ID}/Second",
        "Second",
        "Microsoft.EventGrid/namespaces",
    )
    assert (made.location, made.tags, made.sku.capacity, made.provisioning_state) == (
        "local",
        {"team": "shop"},
        2,
        "Succeeded",
    )
    assert namespaces.get(GROUP, "second").as_dict() == made.as_dict()


def test_the_topics_host_name_is_the_clients_endpoint(shop: Shop) -> None:
    made = shop.management.namespaces.get(GROUP, NAME)
    assert f"http://{made.topics_configuration.hostname}" == shop.endpoint


def test_a_namespace_is_changed(shop: Shop) -> None:
    namespaces = shop.management.namespaces
    change = models.NamespaceUpdateParameters(tags={"a": "b"}, public_network_access="Disabled")
    namespaces.begin_update(GROUP, NAME, change).result()
    changed = namespaces.get(GROUP, NAME)
    assert (changed.tags, changed.public_network_access, changed.location) == (
        {"a": "b"},
        "Disabled",
        "local",
    )


def test_a_namespace_is_made_twice(shop: Shop) -> None:
    keys = shop.management.namespaces.list_shared_access_keys(GROUP, NAME).as_dict()
    shop.open()
    assert shop.management.namespaces.list_shared_access_keys(GROUP, NAME).as_dict() == keys
    elsewhere = models.Namespace(location="elsewhere")
    with pytest.raises(HttpResponseError) as refusal:
        shop.management.namespaces.begin_create_or_update(GROUP, NAME, elsewhere)
    assert refusal.value.status_code == 409


def test_namespaces_are_listed(shop: Shop) -> None:
    namespaces = shop.management.namespaces
    for group in (GROUP, "other"):
        namespaces.begin_create_or_update(group, "second", models.Namespace(location="local")).result()
    assert [one.name for one in namespaces.list_by_resource_group(GROUP)] == ["second", NAME]
    assert len(list(namespaces.list_by_subscription())) == 3
    assert [one.name for one in namespaces.list_by_subscription(filter="name eq 'SHOP'", top=1)] == [NAME]
    assert len(list(namespaces.list_by_subscription(top=1))) == 3


def test_a_removed_namespace_takes_all_with_it(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    for _ in range(2):
        shop.management.namespaces.begin_delete(GROUP, NAME).result()
    with pytest.raises(ResourceNotFoundError):
        shop.management.namespaces.get(GROUP, NAME)
    with pytest.raises(ResourceNotFoundError):
        shop.consumer().receive()
    shop.open()
    assert (
        list(
            shop.management.namespace_topic_event_subscriptions.list_by_namespace_topic(GROUP, NAME, "orders")
        )
        == []
    )
    shop.subscribe()
    shop.publish(2)
    assert orders(shop.receive()) == [2]


def test_a_removed_group_takes_its_namespaces_with_it(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}?api-version=2024-11-01"
    assert shop.server.ask("DELETE", path)[0] == 200
    assert list(shop.management.namespaces.list_by_resource_group(GROUP)) == []
    shop.open()
    shop.subscribe()
    shop.publish(2)
    assert orders(shop.receive()) == [2]


@pytest.mark.parametrize("name", ["ab", "a_b", "EventGrid-a", "a" * 51])
def test_a_name_has_rules(shop: Shop, name: str) -> None:
    refused(
        shop.management.namespaces.begin_create_or_update, GROUP, name, models.Namespace(location="local")
    )


def test_topic_spaces_are_not_offered(shop: Shop) -> None:
    spaces = models.TopicSpacesConfiguration(state="Enabled")
    wanted = models.Namespace(location="local", topic_spaces_configuration=spaces)
    refused(shop.management.namespaces.begin_create_or_update, GROUP, NAME, wanted)


# ---- keys --------------------------------------------------------------------------------------------------------


def test_a_namespace_has_two_keys_and_each_is_renewed_alone(shop: Shop) -> None:
    namespaces = shop.management.namespaces
    before = namespaces.list_shared_access_keys(GROUP, NAME)
    after = namespaces.begin_regenerate_key(
        GROUP, NAME, models.NamespaceRegenerateKeyRequest(key_name="key1")
    ).result()
    assert (before.key1 != after.key1, before.key2) == (True, after.key2)
    assert namespaces.list_shared_access_keys(GROUP, NAME).as_dict() == after.as_dict()


def test_a_topic_has_keys_too(shop: Shop) -> None:
    topics = shop.management.namespace_topics
    before = topics.list_shared_access_keys(GROUP, NAME, "orders")
    after = topics.begin_regenerate_key(
        GROUP, NAME, "orders", models.TopicRegenerateKeyRequest(key_name="key2")
    ).result()
    assert (before.key1, before.key2 != after.key2) == (after.key1, True)


# ---- topics ------------------------------------------------------------------------------------------------------


def test_a_topic_is_made_with_its_defaults(shop: Shop) -> None:
    made = shop.management.namespace_topics.get(GROUP, NAME, "Orders")
    assert made.id == f"{ID}/{NAME}/topics/orders"
    assert (made.input_schema, made.publisher_type, made.event_retention_in_days) == (
        "CloudEventSchemaV1_0",
        "Custom",
        7,
    )
    assert made.provisioning_state == "Succeeded"


@pytest.mark.parametrize("days", [0, 8])
def test_a_topic_keeps_events_for_one_to_seven_days(shop: Shop, days: int) -> None:
    topics = shop.management.namespace_topics
    refused(
        topics.begin_create_or_update,
        GROUP,
        NAME,
        "orders",
        models.NamespaceTopic(event_retention_in_days=days),
    )


def test_topics_are_listed(shop: Shop) -> None:
    topics = shop.management.namespace_topics
    topics.begin_create_or_update(GROUP, NAME, "Bills", models.NamespaceTopic()).result()
    assert [one.name for one in topics.list_by_namespace(GROUP, NAME)] == ["Bills", "orders"]
    topics.begin_delete(GROUP, NAME, "bills").result()
    assert [one.name for one in topics.list_by_namespace(GROUP, NAME)] == ["orders"]


def test_a_topic_needs_its_namespace(shop: Shop) -> None:
    with pytest.raises(ResourceNotFoundError):
        shop.management.namespace_topics.begin_create_or_update(
            GROUP, "nothing", "orders", models.NamespaceTopic()
        )


# ---- event subscriptions -----------------------------------------------------------------------------------------


def test_an_event_subscription_is_made_with_its_defaults(shop: Shop) -> None:
    made = shop.subscribe("Billing")
    assert (made.id, made.provisioning_state, made.event_delivery_schema) == (
        f"{ID}/{NAME}/topics/orders/eventSubscriptions/Billing",
        "Succeeded",
        "CloudEventSchemaV1_0",
    )
    assert made.delivery_configuration.delivery_mode == "Queue"
    queue = made.delivery_configuration.queue
    assert (queue.receive_lock_duration_in_seconds, queue.max_delivery_count) == (60, 10)
    found = shop.management.namespace_topic_event_subscriptions.get(GROUP, NAME, "orders", "billing")
    assert found.as_dict() == made.as_dict()


def test_an_event_subscription_shows_what_it_was_given(shop: Shop) -> None:
    ends = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    shop.subscribe(
        types=["Order.Placed"],
        filters=[models.StringInFilter(key="data.country", values=["de", "fr"])],
        expires_at=ends,
        letters=True,
        receive_lock_duration_in_seconds=300,
        max_delivery_count=2,
        event_time_to_live=dt.timedelta(hours=3),
    )
    found = shop.management.namespace_topic_event_subscriptions.get(GROUP, NAME, "orders", "billing")
    assert found.expiration_time_utc == ends
    assert found.filters_configuration.included_event_types == ["Order.Placed"]
    assert found.filters_configuration.filters[0].values == ["de", "fr"]
    queue = found.delivery_configuration.queue
    assert (queue.receive_lock_duration_in_seconds, queue.max_delivery_count) == (300, 2)
    assert queue.event_time_to_live == dt.timedelta(hours=3)
    letters = queue.dead_letter_destination_with_resource_identity.dead_letter_destination
    assert letters.blob_container_name == "dead"


def test_a_changed_event_subscription_keeps_what_waits(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    change = models.SubscriptionUpdateParameters(
        filters_configuration=models.FiltersConfiguration(included_event_types=["Order.Paid"])
    )
    changed = shop.management.namespace_topic_event_subscriptions.begin_update(
        GROUP, NAME, "orders", "billing", change
    ).result()
    assert changed.delivery_configuration.queue.max_delivery_count == 10
    shop.publisher().send([placed(2), placed(3, "Order.Paid")])
    assert orders(shop.receive()) == [1, 3]


def test_event_subscriptions_are_listed_and_removed(shop: Shop) -> None:
    shop.subscribe("shipping", letters=True)
    shop.subscribe("billing")
    subscriptions = shop.management.namespace_topic_event_subscriptions
    listed = subscriptions.list_by_namespace_topic(GROUP, NAME, "orders")
    assert [one.name for one in listed] == ["billing", "shipping"]
    for _ in range(2):
        subscriptions.begin_delete(GROUP, NAME, "orders", "shipping").result()
    assert [one.name for one in subscriptions.list_by_namespace_topic(GROUP, NAME, "orders")] == ["billing"]


def test_a_new_event_subscription_has_nothing_of_the_old(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    shop.management.namespace_topic_event_subscriptions.begin_delete(
        GROUP, NAME, "orders", "billing"
    ).result()
    shop.subscribe()
    shop.publish(2)
    assert orders(shop.receive()) == [2]


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"receive_lock_duration_in_seconds": 59}, "receiveLockDurationInSeconds"),
        ({"receive_lock_duration_in_seconds": 301}, "receiveLockDurationInSeconds"),
        ({"max_delivery_count": 0}, "maxDeliveryCount"),
        ({"max_delivery_count": 11}, "maxDeliveryCount"),
        ({"event_time_to_live": dt.timedelta(seconds=59)}, "eventTimeToLive"),
        ({"event_time_to_live": dt.timedelta(days=8)}, "eventTimeToLive"),
        ({"filters": [models.StringInFilter(key="a", values=["x"] * 26)]}, "25"),
    ],
)
def test_an_event_subscription_has_bounds(shop: Shop, given: dict[str, Any], about: str) -> None:
    assert about in str(refused(lambda: shop.subscribe(**given)))


def test_there_are_no_delivery_attributes_in_queue_mode(shop: Shop) -> None:
    shop.subscribe()
    found = shop.management.namespace_topic_event_subscriptions.get_delivery_attributes(
        GROUP, NAME, "orders", "billing"
    )
    assert found.value == []

"""Event subscriptions, as azure-mgmt-eventgrid makes, shows, changes and removes them."""

import datetime as dt
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.eventgrid import models

from tests.contracts.aws.sqs.client import Sqs
from tests.contracts.azure.namespaces import GROUP
from tests.contracts.azure.resources import CONTAINER, EVENT_GRID, STORAGE, Resources, refused

EXTENSION = "providers/Microsoft.EventGrid/eventSubscriptions"


@pytest.fixture
def scope(resources: Resources) -> str:
    """The id of a topic."""
    scope: str = resources.topic().id
    return scope


# ---- make and show -----------------------------------------------------------------------------------------------


def test_a_subscription_is_made_with_the_defaults_of_the_service(resources: Resources, scope: str) -> None:
    made = resources.client.event_subscriptions.begin_create_or_update(
        scope, "Billing", models.EventSubscription(destination=resources.webhook())
    ).result()
    assert (made.id, made.type) == (f"{scope}/{EXTENSION}/Billing", "Microsoft.EventGrid/eventSubscriptions")
    assert (made.topic, made.provisioning_state) == (scope, "Succeeded")
    assert (made.event_delivery_schema, made.labels) == ("EventGridSchema", [])
    assert made.retry_policy.as_dict() == {
        "max_delivery_attempts": 30,
        "event_time_to_live_in_minutes": 1440,
    }
    assert (made.destination.max_events_per_batch, made.destination.preferred_batch_size_in_kilobytes) == (
        1,
        64,
    )
    assert (made.filter.subject_begins_with, made.filter.included_event_types) == ("", None)


def test_everything_that_is_sent_is_shown_again(resources: Resources, scope: str) -> None:
    fields: dict[str, Any] = {
        "filter": models.EventSubscriptionFilter(
            subject_begins_with="/orders",
            included_event_types=["Order.Placed"],
            enable_advanced_filtering_on_arrays=True,
            advanced_filters=[
                models.NumberInRangeAdvancedFilter(key="data.total", values=[[1, 2], [5, 9]]),
                models.StringContainsAdvancedFilter(key="subject", values=["a", "b"]),
                models.IsNotNullAdvancedFilter(key="data.customer"),
            ],
        ),
        "labels": ["a", "b"],
        "expiration_time_utc": dt.datetime(2099, 1, 1, tzinfo=dt.UTC),
        "event_delivery_schema": "EventGridSchema",
        "retry_policy": models.RetryPolicy(max_delivery_attempts=5, event_time_to_live_in_minutes=30),
        "dead_letter_destination": models.StorageBlobDeadLetterDestination(**CONTAINER),
    }
    resources.subscribe(scope, **fields)
    shown = resources.shown(scope).as_dict()
    wanted = models.EventSubscription(**fields).as_dict()
    assert shown.pop("filter") == {"subject_ends_with": "", **wanted.pop("filter")}
    assert {name: shown[name] for name in wanted} == wanted


def test_both_forms_are_one_object(resources: Resources, scope: str) -> None:
    nested = resources.client.topic_event_subscriptions
    wanted = models.EventSubscription(destination=resources.webhook(), labels=["nested"])
    made = nested.begin_create_or_update(GROUP, "orders", "billing", wanted).result()
    assert (made.id, made.type) == (
        f"{scope}/eventSubscriptions/billing",
        "Microsoft.EventGrid/topics/eventSubscriptions",
    )
    assert resources.shown(scope).labels == ["nested"]
    resources.subscribe(scope, labels=["extension"])
    assert nested.get(GROUP, "orders", "billing").labels == ["extension"]
    assert len(list(nested.list(GROUP, "orders"))) == 1
    nested.begin_delete(GROUP, "orders", "billing").result()
    with pytest.raises(ResourceNotFoundError):
        resources.shown(scope)


def test_secrets_are_shown_to_who_asks_for_them(resources: Resources, scope: str) -> None:
    mappings = [
        models.StaticDeliveryAttributeMapping(name="x-key", value="s3cret", is_secret=True),
        models.StaticDeliveryAttributeMapping(name="x-plain", value="plain"),
        models.DynamicDeliveryAttributeMapping(name="x-order", source_field="data.order"),
    ]
    resources.subscribe(scope, destination=resources.webhook(delivery_attribute_mappings=mappings))
    destination = resources.shown(scope).destination
    assert (destination.endpoint_url, destination.endpoint_base_url) == (
        None,
        resources.hook.url.partition("?")[0],
    )
    assert [getattr(one, "value", None) for one in destination.delivery_attribute_mappings] == [
        "Hidden",
        "plain",
        None,
    ]
    subscriptions = resources.client.event_subscriptions
    assert subscriptions.get_full_url(scope, "billing").endpoint_url == resources.hook.url
    told = subscriptions.get_delivery_attributes(scope, "billing").value
    assert [(one.name, getattr(one, "value", None)) for one in told] == [
        ("x-key", "s3cret"),
        ("x-plain", "plain"),
        ("x-order", None),
    ]
    assert resources.hook.next().headers["x-key"] == "s3cret"


def test_lists_across_topics(resources: Resources, scope: str) -> None:
    resources.subscribe(scope, "billing")
    resources.subscribe(resources.domain().id, "shipping")
    resources.subscribe(
        STORAGE, "letters", dead_letter_destination=models.StorageBlobDeadLetterDestination(**CONTAINER)
    )
    found = resources.client.event_subscriptions

    def names(listed: Any) -> set[str]:
        return {one.name for one in listed}

    assert names(found.list_global_by_subscription()) == {"billing", "shipping", "letters"}
    assert names(found.list_global_by_resource_group(GROUP)) == {"billing", "shipping", "letters"}
    assert names(found.list_global_by_resource_group("other")) == set()
    of_type = found.list_global_by_subscription_for_topic_type
    assert names(of_type("Microsoft.Storage.StorageAccounts")) == {"letters"}
    assert names(found.list_regional_by_subscription("Local")) == {"billing", "shipping", "letters"}
    assert names(found.list_regional_by_resource_group(GROUP, "mars")) == {"letters"}
    assert names(found.list_by_resource(GROUP, "Microsoft.EventGrid", "topics", "orders")) == {"billing"}
    assert names(found.list_global_by_subscription(filter="name ne 'billing'", top=1)) == {
        "shipping",
        "letters",
    }


# ---- change and remove -------------------------------------------------------------------------------------------


def test_a_patch_changes_what_it_names(resources: Resources, scope: str) -> None:
    mapping = models.StaticDeliveryAttributeMapping(name="x-key", value="s3cret", is_secret=True)
    resources.subscribe(
        scope,
        labels=["a"],
        destination=resources.webhook(max_events_per_batch=10, delivery_attribute_mappings=[mapping]),
    )
    subscriptions = resources.client.event_subscriptions
    change = models.EventSubscriptionUpdateParameters(
        retry_policy=models.RetryPolicy(max_delivery_attempts=3, event_time_to_live_in_minutes=7)
    )
    changed = subscriptions.begin_update(scope, "billing", change).result()
    assert (changed.retry_policy.max_delivery_attempts, changed.labels) == (3, ["a"])
    as_shown = models.EventSubscriptionUpdateParameters(destination=resources.shown(scope).destination)
    changed = subscriptions.begin_update(scope, "billing", as_shown).result()
    assert changed.destination.max_events_per_batch == 10
    assert subscriptions.get_full_url(scope, "billing").endpoint_url == resources.hook.url
    assert subscriptions.get_delivery_attributes(scope, "billing").value[0].value == "s3cret"


def test_a_dead_letter_queue_comes_and_goes_with_its_destination(resources: Resources, scope: str) -> None:
    letters = models.StorageBlobDeadLetterDestination(**CONTAINER)
    resources.subscribe(scope, dead_letter_destination=letters)
    subscriptions = resources.client.event_subscriptions
    assert [one.name for one in subscriptions.list_global_by_subscription()] == ["billing"]
    resources.subscribe(scope)  # a PUT without one takes it away
    assert resources.shown(scope).dead_letter_destination is None
    resources.subscribe(scope, dead_letter_destination=letters)
    subscriptions.begin_delete(scope, "billing").result()
    assert [one.name for one in subscriptions.list_global_by_subscription()] == []


def test_an_expired_event_subscription_is_not_found(resources: Resources, scope: str) -> None:
    ends_at = dt.datetime.fromtimestamp(resources.server.now() + 3600, dt.UTC)
    resources.subscribe(scope, expiration_time_utc=ends_at)
    resources.server.advance(3599)
    assert resources.shown(scope).expiration_time_utc == ends_at
    resources.server.advance(1)
    with pytest.raises(ResourceNotFoundError):
        resources.shown(scope)
    assert list(resources.client.topic_event_subscriptions.list(GROUP, "orders")) == []


# ---- destinations ------------------------------------------------------------------------------------------------


def test_a_queue_of_this_servers_sqs(resources: Resources, scope: str) -> None:
    queue = Sqs(resources.server).queue()
    made = resources.subscribe(scope, destination=resources.webhook(endpoint_url=queue.arn))
    assert made.provisioning_state == "Creating"
    assert resources.shown(scope).provisioning_state == "Succeeded"
    assert resources.hook.asked.empty()
    gone = resources.webhook(endpoint_url=f"{queue.arn}-gone")
    assert "does not exist at this server" in refused(resources.subscribe, scope, destination=gone)[2]


def test_a_namespace_topic_can_be_a_destination(resources: Resources, scope: str) -> None:
    namespace = models.Namespace(location="local")
    resources.client.namespaces.begin_create_or_update(GROUP, "shop", namespace).result()
    topic = resources.client.namespace_topics.begin_create_or_update(
        GROUP, "shop", "orders", models.NamespaceTopic()
    ).result()
    destination = models.NamespaceTopicEventSubscriptionDestination(resource_id=topic.id)
    resources.subscribe(scope, destination=destination)
    assert resources.shown(scope).destination.resource_id == topic.id
    gone = models.NamespaceTopicEventSubscriptionDestination(resource_id=f"{topic.id}-gone")
    assert "does not exist" in refused(resources.subscribe, scope, destination=gone)[2]


def test_destinations_without_a_configured_endpoint_are_refused(resources: Resources, scope: str) -> None:
    bus = f"{EVENT_GRID.rpartition('/')[0]}/Microsoft.ServiceBus/namespaces/bus/queues/orders"
    elsewhere = (
        models.ServiceBusQueueEventSubscriptionDestination(resource_id=bus),
        models.StorageQueueEventSubscriptionDestination(resource_id=STORAGE, queue_name="orders"),
    )
    for destination in elsewhere:
        status, code, message = refused(resources.subscribe, scope, destination=destination)
        assert (status, code) == (400, "InvalidRequest")
        assert "--azure-endpoints" in message
    assert list(resources.client.topic_event_subscriptions.list(GROUP, "orders")) == []


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_a_refused_event_subscription_is_not_stored(resources: Resources, scope: str) -> None:
    status, code, _ = refused(resources.subscribe, scope, "x")
    assert (status, code) == (400, "InvalidRequest")
    letters = models.StorageBlobDeadLetterDestination(**{**CONTAINER, "blob_container_name": "No Name"})
    assert refused(resources.subscribe, scope, dead_letter_destination=letters)[0] == 400
    assert list(resources.client.topic_event_subscriptions.list(GROUP, "orders")) == []


def test_subscribing_to_a_scope_without_events_is_refused(resources: Resources) -> None:
    assert refused(resources.subscribe, f"{EVENT_GRID}/topics/none")[:2] == (404, "ResourceNotFound")
    status, _, message = refused(resources.subscribe, EVENT_GRID.partition("/providers")[0])
    assert (status, "publishes events at the scope" in message) == (400, True)

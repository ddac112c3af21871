"""A namespace's topic as the destination of another topic's event subscription."""

import pytest
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent
from azure.mgmt.eventgrid import models

from tests.contracts.azure.grid import Grid
from tests.contracts.azure.namespaces import GROUP, NAME, Shop
from tests.contracts.azure.resources import EVENT_GRID


@pytest.mark.parametrize("schema", ["CloudEventSchemaV1_0", "EventGridSchema"])
def test_events_of_a_topic_are_pulled_from_a_namespace(shop: Shop, grid: Grid, schema: str) -> None:
    shop.subscribe()
    topic = grid.topic(schema)
    destination = models.NamespaceTopicEventSubscriptionDestination(
        resource_id=f"{EVENT_GRID}/namespaces/{NAME}/topics/orders"
    )
    grid.resources.client.event_subscriptions.begin_create_or_update(
        topic.id,
        "forward",
        models.EventSubscription(destination=destination, event_delivery_schema="CloudEventSchemaV1_0"),
    ).result()
    if schema == "EventGridSchema":
        grid.publish(topic, [EventGridEvent("orders/1", "Order.Placed", {"order": 1}, "1.0")])
    else:
        grid.publish(topic, [CloudEvent("/shop", "Order.Placed", subject="orders/1", data={"order": 1})])
    consumer = shop.consumer()
    (received,) = shop.waiting(lambda: consumer.receive(max_wait_time=60))
    event = received.event
    assert (event.type, event.subject, event.data) == ("Order.Placed", "orders/1", {"order": 1})
    assert event.source == (topic.id if schema == "EventGridSchema" else "/shop")
    assert shop.management.namespace_topics.get(GROUP, NAME, "orders").provisioning_state == "Succeeded"

"""Deliveries to a subscriber of Event Grid: bodies, content types and headers, by schema and destination."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from redrive.azure.eventgrid import dialect
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, CUSTOM_EVENT_SCHEMA, CUSTOM_INPUT_SCHEMA
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from tests.azure.stage import EVENT, GROUP, TOPIC, Stage

INBOX = "arn:aws:sqs:us-east-1:000000000000:inbox"
INBOX_QUEUE = Queue(0, ResourceName("000000000000", "us-east-1", "inbox"))
CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "c-1",
    "source": "/shop",
    "type": "order.placed",
    "priority": 12345678901234567890123,
    "data": {"size": 5},
}
CUSTOM = {"kind": "placed", "size": 5}
MAPPED = {
    "id": "m-1",
    "topic": TOPIC.text,
    "subject": "orders",
    "eventType": "placed",
    "eventTime": "2026-01-02T03:04:05Z",
    "dataVersion": "1.0",
}


async def test_an_event_goes_in_an_array_with_its_headers(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    await stage.publish(topic, EVENT)
    await stage.pass_time(1)
    ((_, push_request),) = stage.web.pushed
    assert orjson.loads(push_request.body) == [EVENT]
    assert push_request.content_type == "application/json; charset=utf-8"
    assert push_request.endpoint == "https://example.org/hook"
    assert push_request.headers == {
        "aeg-event-type": "Notification",
        "aeg-subscription-name": "WATCHER",
        "aeg-delivery-count": "0",
        "aeg-output-event-id": "e-1",
        "aeg-data-version": "2.0",
        "aeg-metadata-version": "1",
        "Accept-Encoding": "gzip, deflate",
    }


async def test_a_cloud_event_goes_alone_as_it_was_published(stage: Stage) -> None:
    topic = await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    await stage.subscribe(topic, eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    body = '{"specversion":"1.0","id":"c-1","source":"/shop","type":"t","priority":12345678901234567890123}'
    await stage.publish_text(topic, body, schema=CLOUD_EVENT_SCHEMA)
    await stage.pass_time(1)
    ((_, push_request),) = stage.web.pushed
    assert push_request.body.decode() == body
    assert push_request.content_type == "application/cloudevents+json; charset=utf-8"
    assert push_request.headers["aeg-metadata-version"] == "1.0"
    assert (
        push_request.headers["Origin"]
        == push_request.headers["WebHook-Request-Origin"]
        == "eventgrid.azure.net"
    )
    assert "aeg-data-version" not in push_request.headers


async def test_an_event_as_a_cloud_event(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    await stage.publish(topic, EVENT | {"topic": TOPIC.text, "metadataVersion": "1"})
    await stage.pass_time(1)
    assert stage.web.bodies == [
        {
            "id": "e-1",
            "source": TOPIC.text,
            "specversion": "1.0",
            "type": "Order.Placed",
            "subject": "/orders/1",
            "time": "2026-01-02T03:04:05Z",
            "data": {"size": 5},
        }
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (CUSTOM_INPUT_SCHEMA, [CUSTOM]),
        ("EventGridSchema", [MAPPED | {"metadataVersion": "1", "data": CUSTOM}]),
        (
            CLOUD_EVENT_SCHEMA,
            {
                "id": "m-1",
                "source": TOPIC.text,
                "specversion": "1.0",
                "type": "placed",
                "subject": "orders",
                "time": "2026-01-02T03:04:05Z",
                "data": CUSTOM,
            },
        ),
    ],
)
async def test_a_custom_event_in_each_schema(stage: Stage, schema: str, expected: Any) -> None:
    topic = await stage.topic(inputSchema=CUSTOM_EVENT_SCHEMA)
    await stage.subscribe(topic, eventDeliverySchema=schema)
    await stage.publish(topic, CUSTOM, schema=CUSTOM_EVENT_SCHEMA, mapped=MAPPED)
    await stage.pass_time(1)
    assert stage.web.bodies == [expected]
    assert stage.web.pushed[0][1].headers["aeg-output-event-id"] == "m-1"


@pytest.mark.parametrize(
    ("kind", "protocol", "is_array"),
    [
        ("AzureFunction", "https", True),
        ("HybridConnection", "https", True),
        ("EventHub", "http", True),
        ("StorageQueue", "http", False),
        ("ServiceBusQueue", "http", False),
    ],
)
async def test_destinations_that_get_arrays(stage: Stage, kind: str, protocol: str, is_array: bool) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, kind=kind, protocol=protocol)
    await stage.publish(topic, EVENT)
    await stage.pass_time(1)
    assert stage.web.bodies == [[EVENT] if is_array else EVENT]


async def test_a_storage_queue_is_told_how_long_to_keep_a_message(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, kind="StorageQueue", destination={"queueMessageTimeToLiveInSeconds": 300})
    await stage.publish(topic, EVENT)
    await stage.pass_time(1)
    assert stage.web.pushed[0][1].headers["ttl-seconds"] == "300"


async def test_batches_go_together(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, destination={"maxEventsPerBatch": 3})
    await stage.publish(topic, *(EVENT | {"id": str(number)} for number in range(7)))
    await stage.pass_time(1)
    assert sorted(len(body) for body in stage.web.bodies) == [1, 3, 3]
    assert {event["id"] for body in stage.web.bodies for event in body} == set("0123456")
    together = next(
        push_request for _, push_request in stage.web.pushed if len(orjson.loads(push_request.body)) == 3
    )
    assert "aeg-output-event-id" not in together.headers


async def test_an_event_larger_than_a_batch_goes_alone(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, destination={"maxEventsPerBatch": 10, "preferredBatchSizeInKilobytes": 1})
    large = EVENT | {"data": "x" * 5000}
    await stage.publish(topic, EVENT, EVENT, large, EVENT)
    await stage.pass_time(1)
    assert sorted(len(body) for body in stage.web.bodies) == [1, 1, 2]


async def test_a_batch_of_cloud_events(stage: Stage) -> None:
    topic = await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    await stage.subscribe(
        topic, destination={"maxEventsPerBatch": 10}, eventDeliverySchema=CLOUD_EVENT_SCHEMA
    )
    event = {**CLOUD_EVENT, "priority": 1}
    await stage.publish(topic, event, event, schema=CLOUD_EVENT_SCHEMA)
    await stage.pass_time(1)
    ((_, push_request),) = stage.web.pushed
    assert orjson.loads(push_request.body) == [event, event]
    assert push_request.content_type == "application/cloudevents-batch+json; charset=utf-8"


async def test_delivery_attributes_become_headers(stage: Stage) -> None:
    topic = await stage.topic()
    said: list[dict[str, Any]] = [
        {"name": "x-static", "type": "Static", "properties": {"value": "one", "isSecret": True}},
        {"name": "x-size", "type": "Dynamic", "properties": {"sourceField": "data.size"}},
        {"name": "x-subject", "type": "Dynamic", "properties": {"sourceField": "$.subject"}},
        {"name": "x-missing", "type": "Dynamic", "properties": {"sourceField": "data.none"}},
        {"name": "x-object", "type": "Dynamic", "properties": {"sourceField": "data"}},
        {"name": "x-lines", "type": "Dynamic", "properties": {"sourceField": "data.lines"}},
    ]
    await stage.subscribe(topic, destination={"deliveryAttributeMappings": said})
    await stage.publish(topic, EVENT | {"data": {"size": 5, "lines": "a\r\nb: c"}})
    await stage.pass_time(1)
    headers = stage.web.pushed[0][1].headers
    found = {name: value for name, value in headers.items() if name.startswith("x-")}
    assert found == {"x-static": "one", "x-size": "5", "x-subject": "/orders/1"}


async def test_filters_decide_who_gets_it(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, "a", endpoint="https://a.example", wants={"includedEventTypes": ["x"]})
    await stage.subscribe(topic, "b", endpoint="https://b.example", wants={"subjectEndsWith": "/1"})
    await stage.publish(topic, EVENT)
    await stage.pass_time(1)
    assert [push_request.endpoint for _, push_request in stage.web.pushed] == ["https://b.example"]


async def test_a_queue_of_this_server_is_a_destination(stage: Stage) -> None:
    topic = await stage.topic()
    queue = await stage.engine.resources.queues.create(INBOX_QUEUE)
    await stage.subscribe(
        topic,
        protocol="queue",
        endpoint=INBOX,
        eventDeliverySchema=CLOUD_EVENT_SCHEMA,
    )
    await stage.publish(topic, EVENT)
    (delivery,) = await stage.engine.parts.store.peek(queue.id, 10)
    text, attributes = dialect.present(delivery)
    assert orjson.loads(text)["type"] == "Order.Placed"
    assert attributes == {}


async def test_deliveries_to_a_deleted_queue_are_retried_and_dead_lettered(
    stage: Stage,
) -> None:
    topic = await stage.topic()
    retry = {"maxDeliveryAttempts": 2}
    await stage.subscribe(topic, protocol="queue", endpoint=INBOX, retryPolicy=retry, dead_letters=True)
    await stage.publish(topic, EVENT)
    await stage.pass_time(4 * 60_000)
    queue = await stage.engine.resources.queues.create(INBOX_QUEUE)
    await stage.pass_time(2 * 60_000)  # it was asked once, and rested for five minutes
    assert len(await stage.engine.parts.store.peek(queue.id, 10)) == 1
    await stage.engine.resources.queues.delete(queue)
    await stage.publish(topic, EVENT)
    await stage.pass_time(20 * 60_000)
    (letter,) = stage.letters
    assert letter["deadLetterReason"] == "MaxDeliveryAttemptsExceeded"
    assert (letter["deliveryAttempts"], letter["lastDeliveryOutcome"]) == (2, "NotFound")


async def test_an_event_too_long_for_its_queue_is_dead_lettered_in_the_container(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.engine.resources.queues.create(replace(INBOX_QUEUE, body_bytes_max=10))
    await stage.subscribe(topic, protocol="queue", endpoint=INBOX, dead_letters=True)
    await stage.publish(topic, EVENT)
    await stage.pass_time(6 * 60_000)
    (letter,) = stage.letters
    assert letter["deadLetterReason"] == "UndeliverableDueToClientError"
    assert (letter["deliveryAttempts"], letter["lastDeliveryOutcome"]) == (1, "PayloadTooLarge")


async def test_dead_letters_of_a_deleted_queue_are_redriven_into_its_successor(stage: Stage) -> None:
    topic = await stage.topic()
    subscription = await stage.subscribe(
        topic,
        protocol="queue",
        endpoint=INBOX,
        destination={"maxEventsPerBatch": 10},
        retryPolicy={"maxDeliveryAttempts": 1},
        dead_letters=True,
    )
    await stage.publish(topic, EVENT, EVENT)
    await stage.pass_time(10 * 60_000)
    assert subscription.dead_letter is not None
    letters = await stage.engine.resources.queues.get(subscription.dead_letter)
    assert letters is not None
    seqs = [one.seq for one in await stage.engine.parts.store.peek(letters.id, 10)]
    assert len(seqs) == 2
    queue = await stage.engine.resources.queues.create(INBOX_QUEUE)
    await stage.engine.operations.moves.move(letters, seqs, None)
    await stage.pass_time(1000)
    assert len(await stage.engine.parts.store.peek(queue.id, 10)) == 2


async def test_another_topic_is_a_destination(stage: Stage) -> None:
    resource = GROUP._replace(parts=("namespaces", "N", "topics", "T"))
    topic = await stage.topic()
    other = await stage.topic(resource)
    await stage.subscribe(topic, "forward", kind="NamespaceTopic", protocol="topic", endpoint=resource.text)
    await stage.subscribe(other, "reader", eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    await stage.publish(topic, EVENT | {"topic": TOPIC.text})
    await stage.pass_time(1)
    assert stage.forwarded.pushed
    ((_, push_request),) = stage.web.pushed
    assert orjson.loads(push_request.body)["source"] == TOPIC.text

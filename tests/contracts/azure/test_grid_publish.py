"""Events published by azure-eventgrid and the CloudEvents SDK, and what websubscribers get of them."""

import datetime as dt
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import cloudevents.http
import orjson
import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent, EventGridPublisherClient, generate_sas
from azure.mgmt.eventgrid import models
from cloudevents.conversion import to_binary, to_structured

from tests.contracts.azure.grid import Grid, Subscriber
from tests.contracts.azure.resources import EVENT_GRID, STORAGE

CLOUD_EVENTS = "CloudEventSchemaV1_0"


@pytest.fixture
def subscriber() -> Iterator[Subscriber]:
    with Subscriber().serving() as subscriber:
        yield subscriber


def event(number: int, **fields: Any) -> EventGridEvent:
    fields = {"subject": f"/orders/{number}", "event_type": "Order.Placed", "data_version": "1.0", **fields}
    return EventGridEvent(data={"order": number}, **fields)


def test_events_of_the_sdk(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber)
    grid.publish(topic, [event(1), event(2)])
    hits = [subscriber.next(), subscriber.next()]
    assert sorted(hit.document[0]["data"]["order"] for hit in hits) == [1, 2]
    (read,) = [EventGridEvent.from_dict(one) for one in hits[0].document]
    assert read.topic == topic.id
    assert hits[0].headers["aeg-event-type"] == "Notification"
    assert hits[0].headers["aeg-subscription-name"] == "WATCHER"
    assert hits[0].headers["content-type"] == "application/json; charset=utf-8"


# The azure SDK asks the other one for JSON in an old way.
@pytest.mark.filterwarnings("ignore:to_json is deprecated:DeprecationWarning")
def test_cloud_events_of_both_sdks(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic(CLOUD_EVENTS)
    grid.subscribe(topic.id, subscriber, event_delivery_schema=CLOUD_EVENTS)
    attributes = {"source": "/shop", "type": "order.placed", "id": "c-1", "comexample": "x"}
    grid.publish(topic, CloudEvent(source="/shop", type="order.placed", data=b"\x00\x01"))
    assert subscriber.next().document["data_base64"] == "AAE="
    grid.publish(topic, [cloudevents.http.CloudEvent(attributes, {"order": 2})])
    hit = subscriber.next()
    assert hit.document["comexample"] == "x"
    assert hit.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    read = cloudevents.http.from_http(hit.headers, orjson.dumps(hit.document))
    assert (read["id"], read.data) == ("c-1", {"order": 2})


@pytest.mark.parametrize("convert", [to_structured, to_binary])
def test_cloud_events_in_either_mode(grid: Grid, subscriber: Subscriber, convert: Any) -> None:
    topic = grid.topic(CLOUD_EVENTS)
    grid.subscribe(topic.id, subscriber, event_delivery_schema=CLOUD_EVENTS)
    sent = cloudevents.http.CloudEvent(
        {"source": "/shop", "type": "order.placed", "datacontenttype": "application/json"}, {"order": 3}
    )
    headers, body = convert(sent)
    path = topic.endpoint.removeprefix(grid.server.url)
    assert grid.server.ask("POST", path, body, headers) == (200, b"")
    document = subscriber.next().document
    assert (document["id"], document["data"]) == (sent["id"], {"order": 3})


def test_custom_events_are_mapped_to_the_delivery_schema(grid: Grid, subscriber: Subscriber) -> None:
    mapping = models.JsonInputSchemaMapping(
        event_type=models.JsonFieldWithDefault(source_field="kind", default_value="order"),
        subject=models.JsonFieldWithDefault(default_value="orders"),
        data_version=models.JsonFieldWithDefault(default_value="1.0"),
    )
    topic = grid.topic("CustomEventSchema", input_schema_mapping=mapping)
    grid.subscribe(topic.id, subscriber, "custom", event_delivery_schema="CustomInputSchema")
    grid.publish(topic, [{"kind": "placed", "order": 4}])
    assert subscriber.next().document == [{"kind": "placed", "order": 4}]
    grid.subscribe(topic.id, subscriber, "custom", event_delivery_schema="EventGridSchema")
    grid.publish(topic, [{"kind": "placed", "order": 5}])
    (document,) = subscriber.next().document
    assert (document["eventType"], document["data"]["order"]) == ("placed", 5)


def test_events_of_a_domain_reach_the_subscriptions_of_their_topic(
    grid: Grid, subscriber: Subscriber
) -> None:
    domain = grid.resources.domain()
    grid.subscribe(f"{domain.id}/topics/orders", subscriber)
    grid.publish(domain, [event(1, topic="orders"), event(2, topic="bills")])
    (document,) = subscriber.next().document
    assert document["topic"] == f"{EVENT_GRID}/domains/shops/topics/orders"
    grid.publish(domain, [event(3, topic="orders")])
    assert subscriber.next().document[0]["data"] == {"order": 3}


def test_a_shared_access_signature_lets_a_publisher_in(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber)
    key = grid.resources.client.topics.list_shared_access_keys("rg", "orders").key1
    token = generate_sas(topic.endpoint, key, dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
    with EventGridPublisherClient(topic.endpoint, AzureSasCredential(token)) as client:
        client.send([event(1)])
    assert subscriber.next().document[0]["data"] == {"order": 1}


def test_refused_publications_raise_the_sdks_errors(grid: Grid) -> None:
    topic = grid.topic(CLOUD_EVENTS)
    with pytest.raises(HttpResponseError, match="configured to receive event in 'CloudEventV10' schema"):
        grid.publish(topic, [event(1)])
    grid.resources.client.topics.begin_delete("rg", "orders").result()
    with pytest.raises(ResourceNotFoundError):
        grid.publish(topic, [event(1)])


def test_an_event_with_a_malformed_time_is_refused(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber)
    sent = {"id": "1", "subject": "s", "eventType": "t", "dataVersion": "", "data": {}}
    with pytest.raises(HttpResponseError, match="requires 'eventTime' property to be a valid") as refused:
        grid.publish(topic, sent | {"eventTime": "12 o'clock"})
    assert refused.value.status_code == 400
    grid.publish(topic, sent | {"eventTime": "2026-01-02T03:04:05.1234567Z"})
    assert subscriber.next().document[0]["eventTime"] == "2026-01-02T03:04:05.1234567Z"
    assert subscriber.is_idle


def test_a_batch_of_the_wished_size(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber, destination={"max_events_per_batch": 10})
    grid.publish(topic, [event(number) for number in range(25)])
    sizes = [len(subscriber.next().document) for _ in range(3)]
    assert sorted(sizes) == [5, 10, 10]


def test_a_batch_of_the_preferred_bytes_alone(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    sizes = {"max_events_per_batch": None, "preferred_batch_size_in_kilobytes": 64}
    grid.subscribe(topic.id, subscriber, destination=sizes)
    grid.publish(topic, [event(number) for number in range(25)])
    assert len(subscriber.next().document) == 25


def test_filters_and_delivery_attributes(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    mappings = [
        models.StaticDeliveryAttributeMapping(name="x-shop", value="north", is_secret=True),
        models.DynamicDeliveryAttributeMapping(name="x-order", source_field="data.order"),
    ]
    wants = models.EventSubscriptionFilter(
        subject_begins_with="/ORDERS/",
        advanced_filters=[models.NumberInAdvancedFilter(key="data.order", values=[2])],
    )
    grid.subscribe(topic.id, subscriber, destination={"delivery_attribute_mappings": mappings}, filter=wants)
    grid.publish(topic, [event(1), event(2)])
    hit = subscriber.next()
    assert hit.document[0]["data"] == {"order": 2}
    assert (hit.headers["x-shop"], hit.headers["x-order"]) == ("north", "2")
    assert subscriber.is_idle


def test_a_dead_letter_reaches_its_container(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    told = Subscriber()
    with told.serving():
        grid.subscribe(topic.id, subscriber, container="dead")
        grid.subscribe(STORAGE, told, "letters")
        subscriber.status = 400
        grid.publish(topic, event(1))
        subscriber.next()
        grid.server.advance(6 * 60)
        (created,) = told.next().document
    assert created["eventType"] == "Microsoft.Storage.BlobCreated"
    container, _, path = created["subject"].rpartition("/blobs/WATCHER/")
    assert container == "/blobServices/default/containers/dead"
    blob = grid.server.log.parent / "redrive-blobs" / "letters" / "dead" / "WATCHER" / path
    assert created["data"]["contentLength"] == blob.stat().st_size > 0
    with urlopen(created["data"]["url"]) as answered:  # Azure's way to mend: read what the event names
        assert answered.read() == blob.read_bytes()
        assert answered.headers["ETag"].strip('"') == created["data"]["eTag"].strip('"')


def test_a_dead_letter_whose_container_does_not_exist_is_dropped_counted_and_told(
    grid: Grid, subscriber: Subscriber
) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber, container="dead")
    assert grid.resources.ask("DELETE", f"{STORAGE}/blobServices/default/containers/dead")[0] == 200
    subscriber.status = 400
    grid.publish(topic, event(1))
    subscriber.next()
    grid.server.advance(6 * 60)
    assert grid.letters("watcher") == []
    asked = "metricnames=DroppedEventCount,DeadLetteredCount&aggregation=total&api-version=2023-10-01"
    _, body = grid.server.ask("GET", f"{topic.id}/providers/Microsoft.Insights/metrics?{asked}")
    read = orjson.loads(body)["value"]
    totals = {
        one["name"]["value"]: sum(p["total"] for series in one["timeseries"] for p in series["data"])
        for one in read
    }
    assert totals == {"DroppedEventCount": 1, "DeadLetteredCount": 0}
    (warning,) = [line for line in grid.server.log.read_text().splitlines() if "ContainerNotFound" in line]
    assert "WARNING" in warning


def test_published_and_delivered_events_are_counted(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber)
    grid.publish(topic, [event(1), event(2)])
    subscriber.next()
    subscriber.next()
    asked = "metricnames=PublishSuccessCount,DeliverySuccessCount&aggregation=total&api-version=2023-10-01"
    grid.server.advance(60)
    path = f"{topic.id}/providers/Microsoft.Insights/metrics?{asked}"
    status, body = grid.server.ask("GET", path)
    assert status == 200, body
    read = orjson.loads(body)["value"]
    totals = {one["name"]["value"]: sum(p["total"] for p in one["timeseries"][0]["data"]) for one in read}
    assert totals == {"PublishSuccessCount": 2, "DeliverySuccessCount": 2}


def test_failures_are_in_the_logs(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    subscriber.status = 503
    grid.subscribe(topic.id, subscriber)
    grid.publish(topic, [event(1)])
    subscriber.next()
    grid.server.advance(1)
    logs = boto3.client(
        "logs",
        endpoint_url=grid.server.url,
        region_name="us-east-1",
        aws_access_key_id="000000000000",
        aws_secret_access_key="secret",
    )
    group = "/azure/eventgrid/rg/topics/orders/DeliveryFailures"
    (found,) = logs.filter_log_events(logGroupName=group)["events"]
    record = orjson.loads(found["message"])
    assert record["eventSubscriptionName"] == "WATCHER"
    assert record["message"].startswith("Message:outcome=Busy, ")


def test_an_event_is_retried_for_a_day_and_then_dead_lettered(grid: Grid, subscriber: Subscriber) -> None:
    topic = grid.topic()
    subscriber.status = 404
    grid.subscribe(topic.id, subscriber, "Billing-1", container="dead")
    grid.publish(topic, [event(1)])
    grid.server.advance(2 * 24 * 3600)
    attempts = [subscriber.next() for _ in range(11)]
    assert [hit.headers["aeg-delivery-count"] for hit in attempts] == [str(number) for number in range(11)]
    assert subscriber.is_idle
    (letter,) = grid.letters("Billing-1")
    assert list(letter) == [
        "id",
        "eventTime",
        "eventType",
        "dataVersion",
        "metadataVersion",
        "topic",
        "subject",
        "data",
        "deadLetterReason",
        "deliveryAttempts",
        "lastDeliveryOutcome",
        "publishTime",
        "lastDeliveryAttemptTime",
    ]
    assert letter["deadLetterReason"] == "TimeToLiveExceeded"
    assert (letter["deliveryAttempts"], letter["lastDeliveryOutcome"]) == (11, "NotFound")

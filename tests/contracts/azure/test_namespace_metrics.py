"""Azure Monitor's metrics of a namespace, its topics and their event subscriptions."""

import datetime as dt
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.contracts.azure.grid import Subscriber
from tests.contracts.azure.namespaces import GROUP, NAME, SUBSCRIPTION, Shop, make_container, tokens

NAMESPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.EventGrid/namespaces/{NAME}"
)
ORDERS = f"{NAMESPACE}/topics/orders"
MINUTE = 60


def read(shop: Shop, resource: str, name: str, **query: str) -> list[dict[str, Any]]:
    asked = "&".join(f"{key.replace('_', '$')}={quote(value)}" for key, value in query.items())
    path = f"{resource}/providers/Microsoft.Insights/metrics?metricnames={name}&timespan={_day(shop)}&{asked}"
    status, answer = shop.server.ask("GET", path)
    assert status == 200, answer
    (metric,) = orjson.loads(answer)["value"]
    series: list[dict[str, Any]] = metric["timeseries"]
    return series


def _day(shop: Shop) -> str:
    now = dt.datetime.fromtimestamp(shop.server.now(), dt.UTC)
    since, until = now - dt.timedelta(hours=12), now + dt.timedelta(minutes=2)
    return f"{since:%Y-%m-%dT%H:%M:%SZ}/{until:%Y-%m-%dT%H:%M:%SZ}"


def totals(shop: Shop, *names: str, of: str = NAMESPACE) -> list[float]:
    """Return each metric's total."""
    return [
        sum(
            point["total"] for series in read(shop, of, name, aggregation="Total") for point in series["data"]
        )
        for name in names
    ]


def by(shop: Shop, name: str, dimension: str) -> dict[str, float]:
    """Return a metric's totals by one of its dimensions."""
    series = read(shop, NAMESPACE, name, aggregation="Total", _filter=f"{dimension} eq '*'")
    return {one["metadatavalues"][0]["value"]: sum(point["total"] for point in one["data"]) for one in series}


def test_published_received_and_settled_events_are_counted(shop: Shop) -> None:
    shop.subscribe("Billing")
    shop.subscribe("picky", types=["none"])
    shop.publish(1, 2, 3)
    held = tokens(shop.receive(limit=2))
    consumer = shop.consumer()
    consumer.acknowledge(lock_tokens=[held[0], "nonsense"])
    consumer.acknowledge(lock_tokens=[held[0]])
    consumer.release(lock_tokens=[held[1], "nonsense"])
    published = ("SuccessfulPublishedEvents", "MatchedEventCount", "UnmatchedEventCount")
    assert totals(shop, *published) == totals(shop, *published, of=ORDERS) == [3, 3, 0]
    assert totals(shop, *published, of=f"{NAMESPACE}/topics/bills") == [0, 0, 0]
    settled = ("SuccessfulReceivedEvents", "SuccessfulAcknowledgedEvents", "SuccessfulReleasedEvents")
    for resource in (NAMESPACE, ORDERS, f"{ORDERS}/eventSubscriptions/billing"):
        assert totals(shop, *settled, of=resource) == [2, 1, 1]
    assert totals(shop, *settled, of=f"{ORDERS}/eventSubscriptions/picky") == [0, 0, 0]
    assert by(shop, "SuccessfulReceivedEvents", "EventSubscriptionName") == {"Billing": 2}
    assert by(shop, "FailedAcknowledgedEvents", "Error") == {"BadToken": 1, "TokenLost": 1}
    assert by(shop, "FailedReleasedEvents", "Error") == {"BadToken": 1}


def test_latencies_are_measured_for_each_operation(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    consumer = shop.consumer()
    (held,) = tokens(shop.receive())
    consumer.reject(lock_tokens=[held])
    consumer.acknowledge(lock_tokens=[held])
    for operation in ("Publish", "Receive", "Reject", "Acknowledge"):
        name = f"{operation}LatencyInMilliseconds"
        (series,) = read(shop, NAMESPACE, name, aggregation="Count,Average")
        assert sum(point.get("count", 0) for point in series["data"]) == 1


def test_refused_calls_are_counted_by_error(shop: Shop) -> None:
    shop.subscribe()
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders"
    batch = {"content-type": "application/cloudevents-batch+json"}
    assert shop.server.ask("POST", f"{path}:publish", b"[{}]", batch)[0] == 400
    assert shop.server.ask("POST", f"{path}:publish", b"[]")[0] == 415
    pulled = f"{path}/eventsubscriptions/billing"
    assert shop.server.ask("POST", f"{pulled}:receive?maxEvents=0")[0] == 400
    assert shop.server.ask("POST", f"{pulled}:acknowledge", b"{}")[0] == 400
    assert by(shop, "FailedPublishedEvents", "Error") == {"BadRequest": 1, "UnsupportedMediaType": 1}
    assert by(shop, "FailedReceivedEvents", "ErrorType") == {"ClientError": 1}
    assert by(shop, "FailedAcknowledgedEvents", "Error") == {"BadRequest": 1}


def test_dropped_and_dead_lettered_events_are_counted_by_reason(shop: Shop) -> None:
    shop.subscribe(max_delivery_count=1, event_time_to_live=dt.timedelta(minutes=5))
    make_container(shop.server)
    shop.subscribe("kept", letters=True)
    shop.publish(1, 2, 3)
    consumer = shop.consumer()
    consumer.reject(lock_tokens=tokens(shop.receive(limit=1)))
    shop.receive(limit=1)
    kept = shop.consumer("kept")
    kept.reject(lock_tokens=tokens(kept.receive()))
    shop.server.advance(2 * MINUTE)  # the lock of the second has run out
    shop.server.advance(20 * MINUTE)
    assert by(shop, "DroppedEventCount", "DropReason") == {
        "EventRejected": 1,
        "MaxDeliveryAttemptsExceeded": 1,
        "TimeToLiveExceeded": 1,
    }
    assert by(shop, "DroppedEventCount", "EventSubscriptionName") == {"billing": 3}
    assert by(shop, "DeadLetteredCount", "DeadLetterReason") == {"EventRejected": 1}


def test_unknown_metrics_are_refused(shop: Shop) -> None:
    for resource, name in ((NAMESPACE, "PublishSuccessCount"), (NAMESPACE, "Mqtt.Connections")):
        path = f"{resource}/providers/Microsoft.Insights/metrics?metricnames={name}"
        assert shop.server.ask("GET", path)[0] == 400


@pytest.mark.parametrize(("status", "expected"), [(200, [1, 0]), (503, [0, 1])])
def test_pushed_events_count_as_received(shop: Shop, status: int, expected: list[float]) -> None:
    with Subscriber().serving() as webhook:
        webhook.status = status
        _push(shop, webhook)
        shop.publish(1)
        webhook.next()
        shop.server.advance(0)
        assert totals(shop, "SuccessfulReceivedEvents", "FailedReceivedEvents") == expected


def _push(shop: Shop, webhook: Subscriber) -> None:
    destination = {"endpointType": "WebHook", "properties": {"endpointUrl": webhook.url}}
    wanted = {
        "properties": {
            "deliveryConfiguration": {"deliveryMode": "Push", "push": {"destination": destination}}
        }
    }
    path = f"{ORDERS}/eventSubscriptions/pushed?api-version=2025-02-15"
    status, answer = shop.server.ask("PUT", path, orjson.dumps(wanted), {"content-type": "application/json"})
    assert status in (200, 201), answer

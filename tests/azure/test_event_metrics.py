"""Metrics of topics and event subscriptions, read as Azure Monitor reads them, and the log of failures."""

import random
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import orjson
import pytest

from redrive.azure.arm.call import ArmCall
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.insights import METRICS, Insights
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.credentials import PublisherCredentials
from redrive.azure.eventgrid.documents import SYSTEM_TOPIC, SystemTopic
from redrive.azure.eventgrid.measures import FailureLog, Measures, PullMeasures
from redrive.azure.eventgrid.publishing import Publishers
from redrive.azure.eventgrid.refusals import Unacceptable
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import BearerCaller, TrustAllBearers
from redrive.model.http import Request
from redrive.model.names import ResourceName
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.metrics import Metrics
from redrive.testing import VirtualClock
from tests.azure.stage import ACCOUNT, EVENT, GROUP, TOPIC, Stage, answer

MINUTE_MS = 60_000
WATCHER = f"{TOPIC.text}/providers/Microsoft.EventGrid/eventSubscriptions/Watcher"


class Lines:
    """A sink that keeps lines."""

    def __init__(self) -> None:
        self.written: list[tuple[ResourceName, str]] = []

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        self.written.append((group, message))

    @property
    def records(self) -> list[Any]:
        return [orjson.loads(message) for _, message in self.written]


class Measured(Stage):
    """A stage whose listener counts."""

    def __init__(self, clock: VirtualClock, rng: random.Random) -> None:
        super().__init__(clock, rng)
        self.lines = Lines()
        self.metrics = Metrics(lambda: None)
        self.measures = Measures(self.metrics.add, FailureLog(self.lines, "node", "local"))
        for listener, hears in self.measures.listeners():
            self.engine.add_listener(listener, *hears)
        self.engine.add_listener(PullMeasures(self.measures.counter))
        sources = EventSources(self.engine, Subscribers(self.engine))
        self.insights = Insights(self.node_store, self.flush, sources.resource)
        credentials = PublisherCredentials(TrustAllBearers(), clock, required=False)
        self.publishers = Publishers(self.engine, credentials, self.measures)

    @property
    def node_store(self) -> SqliteStore:
        assert isinstance(self.engine.parts.store, SqliteStore)
        return self.engine.parts.store

    async def flush(self) -> None:
        await self.node_store.add_points(self.metrics.take())

    async def post(self, *events: object) -> None:
        body = orjson.dumps(events)
        await self.publishers.answer(Request("POST", names.publishing_path(TOPIC), "", {}, body))

    async def read(self, resource: str, **query: str) -> Any:
        request = Request("GET", f"{resource}/providers/Microsoft.Insights/metrics", "", {}, b"")
        asked = {name.replace("_", "$"): value for name, value in query.items()}
        call = ArmCall(
            request, {"scope": resource}, asked, BearerCaller(None), self.clock.now() + MINUTE_MS, ""
        )
        return orjson.loads((await self.insights.metrics(call)).body)

    async def total(self, resource: str, name: str, **query: str) -> float:
        answered = await self.read(resource, metricnames=name, aggregation="Total", **query)
        (metric,) = answered["value"]
        counted: list[float] = [point["total"] for series in metric["timeseries"] for point in series["data"]]
        return sum(counted)


@pytest.fixture
async def stage(clock: VirtualClock) -> AsyncIterator[Measured]:
    stage = Measured(clock, random.Random(1))
    await stage.engine.open()
    yield stage
    await stage.engine.close()


async def test_published_matched_and_delivered_events_are_counted(stage: Measured) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    await stage.subscribe(topic, "other", wants={"includedEventTypes": ["none"]})
    await stage.post(EVENT, EVENT, EVENT)
    await stage.pass_time(1)
    with pytest.raises(AzureError):
        await stage.post(EVENT, {})
    assert await stage.total(TOPIC.text, "PublishSuccessCount") == 3
    assert await stage.total(TOPIC.text, "MatchedEventCount") == 3
    assert await stage.total(TOPIC.text, "UnmatchedEventCount") == 0
    assert await stage.total(TOPIC.text, "PublishFailCount") == 1
    assert await stage.total(TOPIC.text, "DeliverySuccessCount") == 3
    assert await stage.total(WATCHER, "DeliverySuccessCount") == 3
    assert await stage.total(f"{TOPIC.text}/eventSubscriptions/other", "DeliverySuccessCount") == 0


async def test_failed_dead_lettered_and_dropped_events_are_counted(stage: Measured) -> None:
    topic = await stage.topic()
    retry = {"maxDeliveryAttempts": 2}
    await stage.subscribe(topic, retryPolicy=retry, dead_letters=True)
    await stage.subscribe(topic, "careless", retryPolicy=retry)
    stage.web.otherwise = answer(500)
    await stage.post(EVENT)
    await stage.pass_time(10 * MINUTE_MS)
    assert await stage.total(TOPIC.text, "DeliveryAttemptFailCount") == 4
    assert await stage.total(WATCHER, "DeliveryAttemptFailCount") == 2
    assert await stage.total(WATCHER, "DeadLetteredCount") == 1
    assert await stage.total(WATCHER, "DroppedEventCount") == 0
    assert await stage.total(TOPIC.text, "DroppedEventCount") == 1
    divided = await stage.read(TOPIC.text, metricnames="DroppedEventCount", _filter="DropReason eq '*'")
    (series,) = divided["value"][0]["timeseries"]
    assert series["metadatavalues"] == [
        {
            "name": {"value": "dropreason", "localizedValue": "DropReason"},
            "value": "MaxDeliveryAttemptsExceeded",
        }
    ]


async def test_a_dead_letter_store_that_stays_away_drops(stage: Measured) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    stage.web.otherwise, stage.blobs.otherwise = answer(400), answer(500)
    await stage.post(EVENT)
    await stage.pass_time(5 * 60 * MINUTE_MS)
    day = "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"
    assert await stage.total(WATCHER, "DroppedEventCount", timespan=day) == 1
    assert await stage.total(WATCHER, "DeadLetteredCount", timespan=day) == 0


async def test_evaluated_advanced_filters_are_counted(stage: Measured) -> None:
    """The first that an event does not pass is the last that is asked, and none is where its type is not wanted."""
    topic = await stage.topic()
    sizes = [
        {"operatorType": "NumberGreaterThan", "key": "data.size", "value": least} for least in (1, 2, 10, 11)
    ]
    await stage.subscribe(topic, wants={"advancedFilters": sizes})
    await stage.subscribe(topic, "Large", wants={"advancedFilters": sizes[3:]})
    await stage.subscribe(topic, "others", wants={"advancedFilters": sizes, "includedEventTypes": ["none"]})
    await stage.subscribe(topic, "all", wants={"subjectBeginsWith": "/"})
    for size in (0, 5, 20):
        await stage.post(EVENT | {"data": {"size": size}})
    assert await stage.total(WATCHER, "AdvancedFilterEvaluationCount") == 1 + 3 + 4
    divided = await stage.read(
        TOPIC.text, metricnames="AdvancedFilterEvaluationCount", _filter="EventSubscriptionName eq '*'"
    )
    counted = {
        one["metadatavalues"][0]["value"]: sum(point["total"] for point in one["data"])
        for one in divided["value"][0]["timeseries"]
    }
    assert counted == {"Watcher": 8, "Large": 3}


async def test_unmatched_events_are_counted(stage: Measured) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, "other", wants={"includedEventTypes": ["none"]})
    await stage.post(EVENT, EVENT)
    await stage.pass_time(1)
    assert await stage.total(TOPIC.text, "MatchedEventCount") == 0
    assert await stage.total(TOPIC.text, "UnmatchedEventCount") == 2


async def test_a_domains_topics_count_as_the_domains(stage: Measured) -> None:
    resource = GROUP._replace(parts=("domains", "Shop"))
    orders = await stage.topic(resource.child("topics", "orders"))
    await stage.subscribe(orders)
    await stage.publish(orders, EVENT)
    await stage.pass_time(1)
    assert await stage.total(resource.text, "DeliverySuccessCount") == 1
    assert await stage.total(f"{resource.text}/topics/orders", "DeliverySuccessCount") == 1
    assert await stage.total(f"{resource.text}/topics/bills", "DeliverySuccessCount") == 0
    assert await stage.total(resource.text, "PublishSuccessCount") == 0
    assert await stage.total(resource.text, "MatchedEventCount") == 1


async def test_the_form_of_an_answer(stage: Measured) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    await stage.post(EVENT)
    await stage.pass_time(1)
    answered = await stage.read(
        TOPIC.text,
        metricnames="deliverysuccesscount,DestinationProcessingDurationInMs",
        timespan="2026-01-01T00:00:00Z/2026-01-01T00:03:00Z",
        interval="PT1M",
    )
    assert answered["timespan"] == "2026-01-01T00:00:00Z/2026-01-01T00:03:00Z"
    assert answered["namespace"] == "Microsoft.EventGrid/topics"
    counted, measured = answered["value"]
    assert counted["id"] == f"{TOPIC.text}/providers/Microsoft.Insights/metrics/DeliverySuccessCount"
    assert counted["unit"] == "Count"
    assert counted["timeseries"][0]["data"] == [
        {"timeStamp": "2026-01-01T00:00:00Z", "total": 1.0},
        {"timeStamp": "2026-01-01T00:01:00Z", "total": 0.0},
        {"timeStamp": "2026-01-01T00:02:00Z", "total": 0.0},
    ]
    assert measured["unit"] == "MilliSeconds"
    assert measured["timeseries"][0]["data"][1] == {"timeStamp": "2026-01-01T00:01:00Z"}
    assert measured["timeseries"][0]["data"][0]["average"] == 1.0


async def test_without_names_every_metric_is_told(stage: Measured) -> None:
    await stage.topic()
    answered = await stage.read(TOPIC.text)
    assert [one["name"]["value"] for one in answered["value"]] == list(METRICS)


@pytest.mark.parametrize(
    "query",
    [
        {"metricnames": "Nothing"},
        {"interval": "PT2M"},
        {"aggregation": "Median"},
        {"timespan": "yesterday/today"},
        {"timespan": "2026-01-01T00:00:00Z/2026-02-01T00:00:00Z"},
        {"timespan": "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z"},
        {"_filter": "Error like 'x'"},
    ],
)
async def test_malformed_metrics_queries_are_refused(stage: Measured, query: dict[str, str]) -> None:
    with pytest.raises(AzureError) as refusal:
        await stage.read(TOPIC.text, **query)
    assert refusal.value.status == 400


async def test_strangers_write_a_line_a_minute_into_a_topics_log(stage: Measured) -> None:
    topic = await stage.topic()
    stranger = Unacceptable("The key is not one of this resource's.", status=HTTPStatus.UNAUTHORIZED)
    publisher = Unacceptable("This is no event.")
    failures = FailureLog(stage.lines, "node", "local")
    for second in (0, 1, 59, 60, 61):
        failures.add_publication(topic, stranger, second * 1000)
        failures.add_publication(topic, publisher, second * 1000)
    told = [record["message"] for record in stage.lines.records]
    assert sum("is no event" in message for message in told) == 5
    assert sum("not one of this resource" in message for message in told) == 2


async def test_a_resource_without_metrics(stage: Measured) -> None:
    with pytest.raises(AzureError) as refusal:
        await stage.read(GROUP._replace(parts=("partnerTopics", "x")).text)
    assert refusal.value.status == 400


async def test_a_system_topic_is_a_name_for_its_account(stage: Measured) -> None:
    resource = GROUP._replace(parts=("systemTopics", "blobs"))
    named = SystemTopic.from_document(
        {
            "id": resource.text,
            "source": ACCOUNT.text,
            "topic_type": "Microsoft.Storage.StorageAccounts",
            "document": {},
        }
    )
    await stage.engine.resources.documents.create(SYSTEM_TOPIC, named.name.key, named)
    account = await stage.topic(ACCOUNT)
    await stage.subscribe(account)
    await stage.publish(account, EVENT)
    await stage.pass_time(1)
    assert await stage.total(resource.text, "DeliverySuccessCount") == 1
    assert await stage.total(f"{resource.text}/eventSubscriptions/watcher", "DeliverySuccessCount") == 1
    assert (await stage.read(resource.text))["namespace"] == "Microsoft.EventGrid/systemTopics"


async def test_failures_are_written_down(stage: Measured) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, endpoint="https://user:s3cret@example.org/hook?code=s3cret")
    stage.web.script.append(answer(500))
    await stage.post(EVENT)
    await stage.pass_time(1)
    with pytest.raises(AzureError):
        await stage.post({})
    delivery, publishing = stage.lines.records
    groups = [group for group, _ in stage.lines.written]
    assert [group.name for group in groups] == [
        "/azure/eventgrid/rg/topics/orders/DeliveryFailures",
        "/azure/eventgrid/rg/topics/orders/PublishFailures",
    ]
    assert {(group.account, group.region) for group in groups} == {("000000000000", "local")}
    assert list(delivery) == [
        "time",
        "resourceId",
        "category",
        "operationName",
        "eventSubscriptionName",
        "message",
    ]
    assert delivery["resourceId"] == TOPIC.text.upper()
    assert (delivery["eventSubscriptionName"], delivery["operationName"]) == ("WATCHER", "Deliver")
    assert delivery["message"].startswith("Message:outcome=GenericError, latencyInMs=1, id=e-1, systemId=")
    assert "state=RETRY" in delivery["message"]
    assert "s3cret" not in delivery["message"]
    assert publishing["category"] == "PublishFailures"
    assert "httpStatusCode=BadRequest, errorType=InputJsonInvalid" in publishing["message"]

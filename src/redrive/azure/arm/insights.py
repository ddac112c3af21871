"""Reading metrics, as Azure Monitor answers it.

    GET /{resource}/providers/Microsoft.Insights/metrics
        ?metricnames=DeliverySuccessCount,DroppedEventCount &timespan=<from>/<until> &interval=PT1M
        &aggregation=Total,Count &$filter=EventSubscriptionName eq '*'

A resource is a topic, a domain, a namespace or a topic of one, a storage account or its system topic, or an event
subscription of one of them. A filter
chooses by dimensions; a dimension whose value is `'*'` divides the series. Without a timespan it is the last hour,
without an interval a minute, without an aggregation what the metric is usually read by.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.measures import RESOURCE, SUBSCRIPTION, series_of
from redrive.azure.wire.answers import invalid, json_answer, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import TelemetryStore
from redrive.model.durations import HOUR_MS
from redrive.model.http import Response
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series, SeriesQuery, Statistics
from redrive.model.names import ResourceName

_INTERVALS_MS: Final[Mapping[str, int]] = {
    "PT1M": MINUTE_MS,
    "PT5M": 5 * MINUTE_MS,
    "PT15M": 15 * MINUTE_MS,
    "PT30M": 30 * MINUTE_MS,
    "PT1H": HOUR_MS,
    "PT6H": 6 * HOUR_MS,
    "PT12H": 12 * HOUR_MS,
    "P1D": 24 * HOUR_MS,
}
_PERIODS_MAX: Final = 20_160  # two weeks of minutes, which is as long as they are kept
_SERIES_MAX: Final = 10_000
_COUNT: Final = ("Count", "Total")
_MILLISECONDS: Final = ("MilliSeconds", "Average")
#: Unit and usual aggregation of each.
METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "PublishSuccessCount": _COUNT,
    "MatchedEventCount": _COUNT,
    "UnmatchedEventCount": _COUNT,
    "AdvancedFilterEvaluationCount": _COUNT,
    "PublishFailCount": _COUNT,
    "PublishSuccessLatencyInMs": ("MilliSeconds", "Total"),
    "DeliverySuccessCount": _COUNT,
    "DeliveryAttemptFailCount": _COUNT,
    "DestinationProcessingDurationInMs": _MILLISECONDS,
    "DeadLetteredCount": _COUNT,
    "DroppedEventCount": _COUNT,
}
NAMESPACE_METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "SuccessfulPublishedEvents": _COUNT,
    "FailedPublishedEvents": _COUNT,
    "PublishLatencyInMilliseconds": _MILLISECONDS,
    "MatchedEventCount": _COUNT,
    "UnmatchedEventCount": _COUNT,
    "SuccessfulReceivedEvents": _COUNT,
    "FailedReceivedEvents": _COUNT,
    "ReceiveLatencyInMilliseconds": _MILLISECONDS,
    "SuccessfulAcknowledgedEvents": _COUNT,
    "FailedAcknowledgedEvents": _COUNT,
    "AcknowledgeLatencyInMilliseconds": _MILLISECONDS,
    "SuccessfulReleasedEvents": _COUNT,
    "FailedReleasedEvents": _COUNT,
    "RejectLatencyInMilliseconds": _MILLISECONDS,
    "DeadLetteredCount": _COUNT,
    "DroppedEventCount": _COUNT,
}
_AGGREGATIONS: Final[Mapping[str, Callable[[Statistics], float]]] = {
    "total": lambda statistics: statistics.total,
    "count": lambda statistics: statistics.samples,
    "average": lambda statistics: statistics.average,
    "minimum": lambda statistics: statistics.least,
    "maximum": lambda statistics: statistics.greatest,
}
_CONDITION: Final = re.compile(r"\s*(\w+)\s+eq\s+'([^']*)'\s*", re.IGNORECASE)
_EVERY: Final = "*"
_NAMESPACE: Final = "microsoft.eventgrid/namespaces"
#: What is counted of the resource above it, by a dimension.
_WITHIN: Final = frozenset({"microsoft.eventgrid/domains/topics", f"{_NAMESPACE}/topics"})

Dimensions = tuple[tuple[str, str], ...]
SourceOf = Callable[[ArmId | None, str], Awaitable[ArmId]]


@dataclass(frozen=True, slots=True)
class _MetricsQuery:
    """A query for the metrics of a resource, read from its request."""

    resource: str  # Resource of the metrics
    topic: ResourceName  # Engine topic that they are stored under
    own_dimensions: Dimensions  # Dimensions that the resource itself stands for
    since: int  # From then (ms)
    until: int  # Before then (ms)
    interval: str  # As it was spelt, of `_INTERVALS_MS`
    aggregations: Sequence[str]  # In lower case; empty: the usual
    # Dimensions by their names in lower case, with the value they must have, or `*`.
    conditions: Mapping[str, str]

    @property
    def metrics(self) -> Mapping[str, tuple[str, str]]:
        """Those that the resource has."""
        return NAMESPACE_METRICS if self.topic.name.startswith("namespaces:") else METRICS

    def wants(self, series: Series) -> bool:
        """True if a series is part of the answer."""
        values = {name.lower(): value.lower() for name, value in series.dimensions}
        conditions = {
            name.lower(): value.lower() for name, value in (*self.own_dimensions, *self.conditions.items())
        }
        return all(name in values and value in (_EVERY, values[name]) for name, value in conditions.items())

    def grouping(self, series: Series) -> Dimensions:
        """The dimensions of a series that the answer is divided by."""
        return tuple(pair for pair in series.dimensions if self.conditions.get(pair[0].lower()) == _EVERY)


class Insights:
    """Metrics of Event Grid's resources (`redrive.azure.arm.service.Operations`)."""

    def __init__(self, store: TelemetryStore, flush: Callable[[], Awaitable[None]], source: SourceOf) -> None:
        self._store = store
        self._flush = flush
        self._source = source

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {"GET /{scope...}/providers/Microsoft.Insights/metrics": self.metrics}

    async def metrics(self, call: ArmCall) -> Response:
        """Metrics of a resource: https://learn.microsoft.com/rest/api/monitor/metrics/list."""
        query = await self._read_query(call)
        names = call.query.get("metricnames")
        known = query.metrics
        metrics = list(known) if names is None else [_metric(each, known) for each in names.split(",")]
        await self._flush()
        return json_answer(
            {
                "cost": 0,
                "timespan": f"{_moment(query.since)}/{_moment(query.until)}",
                "interval": query.interval,
                "value": [await self._metric_document(query, name) for name in metrics],
                "namespace": series_of(query.topic, metrics[0]).namespace,
                "resourceregion": "local",
            }
        )

    async def _metric_document(self, query: _MetricsQuery, name: str) -> dict[str, Any]:
        """A metric as it is shown: a time series for each group that the query's dimensions make."""
        unit, default_aggregation = query.metrics[name]
        aggregations = query.aggregations or (default_aggregation.lower(),)
        groups: dict[Dimensions, list[Series]] = {}
        for series in await self._series(query, name):
            groups.setdefault(query.grouping(series), []).append(series)
        if not groups and _EVERY not in query.conditions.values():
            groups[()] = []  # an undivided metric is shown, though it has no points yet
        return {
            "id": f"{query.resource}/providers/Microsoft.Insights/metrics/{name}",
            "type": "Microsoft.Insights/metrics",
            "name": {"value": name, "localizedValue": name},
            "unit": unit,
            "timeseries": [
                {
                    "metadatavalues": [_label_document(*pair) for pair in dimensions],
                    "data": await self._data(query, series_list, aggregations, counts=unit == "Count"),
                }
                for dimensions, series_list in sorted(groups.items())
            ],
            "errorCode": "Success",
        }

    async def _series(self, query: _MetricsQuery, name: str) -> list[Series]:
        """The resource's series of a metric that the query's conditions allow."""
        pattern = series_of(query.topic, name)
        resource = dict(pattern.dimensions)[RESOURCE]
        series_query = SeriesQuery(pattern.account, pattern.region, _SERIES_MAX, pattern.namespace, name)
        series = await self._store.find_series(series_query)
        return [
            each for each in series if dict(each.dimensions).get(RESOURCE) == resource and query.wants(each)
        ]

    async def _data(
        self,
        query: _MetricsQuery,
        series_list: Sequence[Series],
        aggregations: Sequence[str],
        *,
        counts: bool,
    ) -> list[dict[str, Any]]:
        """Every interval; of a count, also those in which nothing was counted."""
        period_ms = _INTERVALS_MS[query.interval]
        buckets: dict[int, PeriodStatistics] = {}
        if series_list:
            point_query = PointQuery(series_list, query.since, query.until, period_ms)
            buckets = {point.at: point for point in await self._store.find_points(point_query)}
        values = {at: _values(bucket.statistics, aggregations) for at, bucket in buckets.items()}
        without_points = _values(Statistics(0, 0, 0, 0), aggregations) if counts else {}
        return [
            {"timeStamp": _moment(at), **values.get(at, without_points)}
            for at in range(query.since, query.until, period_ms)
        ]

    # ---- what is asked for ------------------------------------------------------------------------------

    async def _read_query(self, call: ArmCall) -> _MetricsQuery:
        """The query of a call, its beginning at a whole interval; raises AzureError if a part of it is invalid."""
        resource = f"/{call.params['scope'].strip('/')}"
        topic, own_dimensions = await self._topic_and_dimensions(resource)
        interval = call.query.get("interval", "PT1M").upper()
        if interval not in _INTERVALS_MS:
            raise invalid(
                f"The interval '{interval}' is not one of {', '.join(_INTERVALS_MS)}.", "BadRequest"
            )
        period_ms = _INTERVALS_MS[interval]
        since, until = _timespan(call.query.get("timespan"), call.now)
        if until <= since or (until - since) // period_ms > _PERIODS_MAX:
            raise invalid("The timespan is empty, or too long for its interval.", "BadRequest")
        return _MetricsQuery(
            resource=resource,
            topic=topic,
            own_dimensions=own_dimensions,
            since=since - since % period_ms,
            until=until,
            interval=interval,
            aggregations=_aggregations(call.query.get("aggregation", "")),
            conditions=dict(_conditions(call.query.get("$filter", ""))),
        )

    async def _topic_and_dimensions(self, resource: str) -> tuple[ResourceName, Dimensions]:
        """The engine topic whose metrics a resource's are among, and what distinguishes them there."""
        above, separator, subscription = _split_at_mark(resource, "/eventsubscriptions/")
        if separator:
            above, _, _ = _split_at_mark(above, "/providers/microsoft.eventgrid", last=True)
        scope = ArmId.parse(above)
        if scope is not None and scope.type == _NAMESPACE:
            return names.place_of(scope, f"namespaces:{scope.name}"), ()
        source = await self._source(scope, above)
        topic = names.topic_name(source)
        if topic is None:
            raise not_found(f"There are no metrics of '{resource}'.")
        own_dimensions: Dimensions = ((SUBSCRIPTION, subscription),) if separator else ()
        if source.type in _WITHIN:
            own_dimensions = (*own_dimensions, ("Topic", source.name))
        return topic, own_dimensions


def _values(statistics: Statistics, aggregations: Sequence[str]) -> dict[str, float]:
    return {name: _AGGREGATIONS[name](statistics) for name in aggregations}


def _label_document(name: str, value: str) -> dict[str, Any]:
    return {"name": {"value": name.lower(), "localizedValue": name}, "value": value}


# ---- what is asked for -------------------------------------------------------------------------------------------


def _split_at_mark(text: str, mark: str, *, last: bool = False) -> tuple[str, bool, str]:
    """A text before and behind a mark, without regard to case; with `last`, only where the mark ends the text."""
    at = text.lower().rfind(mark)
    if at <= 0 or (last and at + len(mark) != len(text)):
        return text, False, ""
    return text[:at], True, text[at + len(mark) :]


def _metric(name: str, metrics: Iterable[str]) -> str:
    metric = next((each for each in metrics if each.lower() == name.strip().lower()), None)
    if metric is None:
        raise invalid(f"'{name}' is not one of the metrics {', '.join(metrics)}.", "BadRequest")
    return metric


def _aggregations(text: str) -> list[str]:
    """The aggregations that are asked for, in lower case; raises AzureError for an unknown one."""
    names = [each.strip().lower() for each in text.split(",") if each.strip()]
    unknown = [each for each in names if each not in _AGGREGATIONS]
    if unknown:
        raise invalid(f"'{unknown[0]}' is not an aggregation.", "BadRequest")
    return names


def _conditions(text: str) -> Iterator[tuple[str, str]]:
    """The names, in lower case, and values of `NAME eq 'VALUE' and …`; raises AzureError."""
    if not text.strip():
        return
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise invalid(f"The filter '{part}' is not of the form NAME eq 'VALUE'.", "BadRequest")
        yield match[1].lower(), match[2]


def _timespan(text: str | None, now: int) -> tuple[int, int]:
    if text is None:
        return now - HOUR_MS, now
    since, _, until = unquote(text).partition("/")  # `az monitor metrics list` encodes it twice
    return _milliseconds(since), _milliseconds(until)


def _milliseconds(text: str) -> int:
    """A moment in ISO 8601, of UTC where it names no zone, in milliseconds; raises AzureError."""
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus that a URL made a blank of
    except ValueError:
        raise invalid(f"'{text}' is not a time.", "BadRequest") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

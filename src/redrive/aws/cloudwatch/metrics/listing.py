"""ListMetrics: which series there are, page by page."""

from collections.abc import AsyncIterator
from dataclasses import replace
from heapq import nsmallest
from itertools import chain

import orjson

from redrive.aws.cloudwatch.metrics.errors import PAGES, invalid
from redrive.aws.cloudwatch.metrics.own_metrics import NAMESPACES, MetricName, names_of
from redrive.aws.cloudwatch.metrics.reading import MetricReader
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, Series, SeriesQuery
from redrive.model.queue import DAY_MS

PAGE_MAX = 500
_SERIES_PER_READ = 1_000
_PAGES = replace(PAGES, refusal=lambda _: invalid("Request parameter NextToken is invalid."))
_ACTIVE_MS = 14 * DAY_MS  # "metrics that have not reported data in the past two weeks do not appear"
_RECENTLY_MS = {"PT3H": 180 * MINUTE_MS}


class MetricListing:
    """Lists metrics."""

    def __init__(self, store: TelemetryStore, reading: MetricReader) -> None:
        self._store = store
        self._reading = reading

    async def list_metrics(self, call: Call, params: Structure) -> Structure:
        try:
            after = _behind(_PAGES.after("ListMetrics", params))
        except ValueError:  # a forged token
            raise _PAGES.refusal(params["NextToken"]) from None
        await self._reading.settle()
        names = await self._select(call, params, after)
        page = names[:PAGE_MAX]
        ending = _PAGES.ending("ListMetrics", _key(page[-1]) if len(names) > PAGE_MAX else "")
        answer: Structure = {"Metrics": [_as_structure(metric) for metric in page], **ending}
        if params.get("IncludeLinkedAccounts"):
            answer["OwningAccounts"] = [call.account] * len(page)
        return answer

    async def _select(self, call: Call, params: Structure, after: MetricName | None) -> list[MetricName]:
        """The first metrics behind one of those that are asked for, in order; one more than a page, if there are more.

        Several series may be one metric, so all are looked through: a thousand in a turn of the event loop, since
        whoever may write metrics may have a million of them.
        """
        since = call.now - _RECENTLY_MS.get(params.get("RecentlyActive") or "", _ACTIVE_MS)
        namespace: str | None = params.get("Namespace")
        own_namespace = NAMESPACES.get(namespace or "")
        series_name: str | None = None if namespace is None else params.get("MetricName")
        query = SeriesQuery(call.account, call.region, _SERIES_PER_READ, namespace, series_name, since)
        if own_namespace:  # its series have other names than its metrics
            query = replace(query, namespace=own_namespace.series, name=None)
        dimensions = {
            (dimension["Name"], dimension.get("Value")) for dimension in params.get("Dimensions") or ()
        }
        names: set[MetricName] = set()
        async for series in self._series(query):
            metrics = (metric for each in series for metric in names_of(each))
            names.update(
                metric
                for metric in metrics
                if (after is None or after < metric)
                and _is_match(metric, params.get("MetricName"), dimensions)
            )
            names = set(nsmallest(PAGE_MAX + 1, names))
        return sorted(names)

    async def _series(self, query: SeriesQuery) -> AsyncIterator[list[Series]]:
        """The series page by page; others run between two."""
        while True:
            page = await self._store.find_series(query)
            yield page
            if len(page) < query.limit:
                return
            query = replace(query, after=page[-1])


def _is_match(metric: MetricName, name: str | None, dimensions: set[tuple[str, str | None]]) -> bool:
    """True if a metric has a name (None: any) and dimensions, where None stands for any value."""
    if name is not None and metric.name != name:
        return False
    values = dict(metric.dimensions)
    return all(
        dimension in values and (value is None or values[dimension] == value)
        for dimension, value in dimensions
    )


def _as_structure(metric: MetricName) -> Structure:
    return {
        "Namespace": metric.namespace,
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
    }


def _key(metric: MetricName) -> str:
    return orjson.dumps([metric.namespace, metric.name, *chain.from_iterable(metric.dimensions)]).decode()


def _behind(key: str) -> MetricName | None:
    """The metric that a page begins behind; raises ValueError if it is not the key of a metric."""
    if not key:
        return None
    texts = orjson.loads(key)
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ValueError("not a list of strings")
    namespace, name, *dimensions = texts
    return MetricName(namespace, name, tuple(zip(dimensions[::2], dimensions[1::2], strict=True)))

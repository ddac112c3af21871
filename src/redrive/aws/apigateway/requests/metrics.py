"""Metrics of APIs, in `AWS/ApiGateway`: by API, by stage, and by method where the stage asks for it.

Count                       requests
4XXError, 5XXError          of REST APIs, and 4xx and 5xx of HTTP APIs: 1 of an answer of the class, else 0
Latency                     from the request to the answer (ms)
IntegrationLatency          of that, in what is behind the method (ms)

Besides, for the console, which asks which route fails: a sample of the latency of each request to a declared route, by
the class of its answer (`route_series`), whether or not the stage wants its methods counted.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from redrive.aws.apigateway.control.exchange import StagePlace
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics

NAMESPACE: Final = "AWS/ApiGateway"
Count = Callable[[Sequence[MetricPoint]], None]
_MILLISECONDS: Final = frozenset({"Latency", "IntegrationLatency"})
_CLIENT, _SERVER = 4, 5

ROUTES: Final = ":routes"  # no account's, so that nobody finds it among the metrics of one
#: The names of the series of a route, by the class of the answers that they count.
CLASSES: Final = {_CLIENT: "4xx", _SERVER: "5xx"}
OTHERS: Final = "others"


@lru_cache(maxsize=4_096)
def route_series(account: str, region: str, api: str, route: str, answers: str) -> Series:
    """The latencies (ms) of requests to a route over all stages.

    Args:
        account: The API's.
        region: Where it is.
        api: Its id.
        route: As HTTP APIs name it: `GET /orders/{id}`.
        answers: Those that are counted: a value of `CLASSES`, or `OTHERS`.
    """
    dimensions = (("account", account), ("api", api), ("region", region), ("route", route))
    return Series("", "", ROUTES, answers, dimensions)


class ApiMetrics:
    """Counts requests to APIs."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def add(
        self,
        api_place: StagePlace,
        status: int,
        at: int,
        latency: int,
        integration_latency: int | None,
        *,
        route: str = "",
        method: tuple[str, str] | None = None,
        is_rest: bool = True,
    ) -> None:
        """Count a request that was answered.

        Args:
            api_place: The stage.
            status: Of the answer.
            at: When it came (ms).
            latency: How long it took (ms).
            integration_latency: Of that behind the method; None: it did not come so far.
            route: The declared route that it found: `GET /orders/{id}`; empty: it found none.
            method: The path and the name of the method, where its stage wants that counted.
            is_rest: False for HTTP APIs, whose metrics have other names.
        """
        names = ("4XXError", "5XXError") if is_rest else ("4xx", "5xx")
        values = {
            "Count": 1,
            names[0]: int(status // 100 == _CLIENT),
            names[1]: int(status // 100 == _SERVER),
            "Latency": latency,
        }
        if integration_latency is not None:
            values["IntegrationLatency"] = integration_latency
        minute = at - at % MINUTE_MS
        points = []
        for metric, value in values.items():
            unit, statistics = "Milliseconds" if metric in _MILLISECONDS else "Count", Statistics.of(value)
            points += [
                MetricPoint(series, minute, unit, statistics)
                for series in _series(
                    api_place.account,
                    api_place.region,
                    api_place.api,
                    api_place.name,
                    api_place.stage,
                    method,
                    metric,
                    is_rest,
                )
            ]
        if route:
            answers = CLASSES.get(status // 100, OTHERS)
            series = route_series(api_place.account, api_place.region, api_place.api, route, answers)
            points.append(MetricPoint(series, minute, "", Statistics.of(latency)))
        self._count(points)


# To make them takes longer than to count by them.
@lru_cache(maxsize=4_096)
def _series(
    account: str,
    region: str,
    api: str,
    name: str,
    stage: str,
    method: tuple[str, str] | None,
    metric: str,
    is_rest: bool,  # noqa: FBT001 - of a remembered function
) -> tuple[Series, ...]:
    own = ("ApiName", name) if is_rest else ("ApiId", api)
    dimensions: list[tuple[tuple[str, str], ...]] = [(own,), (own, ("Stage", stage))]
    if method is not None:
        dimensions.append((own, ("Method", method[1]), ("Resource", method[0]), ("Stage", stage)))
    return tuple(Series(account, region, NAMESPACE, metric, each) for each in dimensions)

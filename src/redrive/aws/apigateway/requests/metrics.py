"""Metrics and access logs of APIs; metrics are in `AWS/ApiGateway`, by API, by stage, and by method if the stage asks.

Count                       requests
4XXError, 5XXError          of REST APIs, and 4xx and 5xx of HTTP APIs: 1 of an answer of the class, else 0
Latency                     from the request to the answer (ms)
IntegrationLatency          of that, in what is behind the method (ms)

Besides, for the console, which asks which route fails: a sample of the latency of each request to a declared route, by
the class of its answer (`route_series`), and by the span of time that it took (`route_span_series`), whether or not the
stage wants its methods counted.

An access log is one line for each request, in the format of its stage, in a group of CloudWatch Logs.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.exchange import Exchange, StagePlace
from redrive.aws.apigateway.mapping.sources import at_path
from redrive.engine.ports import LogSink
from redrive.model.metric import MINUTE_MS, SPANS_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName

NAMESPACE: Final = "AWS/ApiGateway"
Count = Callable[[Sequence[MetricPoint]], None]
_MILLISECONDS: Final = frozenset({"Latency", "IntegrationLatency"})
_CLIENT, _SERVER = 4, 5

ROUTES: Final = ":routes"  # of no account, so that no account lists them among its metrics
#: The names of the series of a route, by the class of the answers that they count.
CLASSES: Final = {_CLIENT: "4xx", _SERVER: "5xx"}
OTHERS: Final = "others"


@lru_cache(maxsize=4_096)
def route_series(account: str, region: str, api: str, route: str, answers: str) -> Series:
    """The latencies (ms) of a route, such as `GET /orders/{id}`, in all stages; `answers`: of `CLASSES`, or `OTHERS`."""
    dimensions = (("account", account), ("api", api), ("region", region), ("route", route))
    return Series("", "", ROUTES, answers, dimensions)


@lru_cache(maxsize=16_384)
def route_span_series(account: str, region: str, api: str, route: str, span: int) -> Series:
    """The latencies (ms) of a route that are within one of `SPANS_MS`: of all answers, so that percentiles are known."""
    all_spans = route_series(account, region, api, route, "by_span")
    return all_spans._replace(dimensions=(*all_spans.dimensions, ("span", str(span))))


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
        """Count an answered request.

        - `at`: when it arrived (ms).
        - `latency`: until the answer (ms).
        - `integration_latency`: of that the integration's; None: it was not called.
        - `route`: the declared route that matched: `GET /orders/{id}`; empty: none did.
        - `method`: the path and the name of the method, if its stage counts it.
        - `is_rest`: False for HTTP APIs, whose metrics have other names.
        """
        client_errors, server_errors = ("4XXError", "5XXError") if is_rest else ("4xx", "5xx")
        values = {
            "Count": 1,
            client_errors: int(status // 100 == _CLIENT),
            server_errors: int(status // 100 == _SERVER),
            "Latency": latency,
        }
        if integration_latency is not None:
            values["IntegrationLatency"] = integration_latency
        minute = at - at % MINUTE_MS
        points = []
        for metric, value in values.items():
            unit = "Milliseconds" if metric in _MILLISECONDS else "Count"
            points += [
                MetricPoint(series, minute, unit, Statistics.of(value))
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
            owner = (api_place.account, api_place.region, api_place.api, route)
            points += [
                MetricPoint(series, minute, "", Statistics.of(latency))
                for series in (
                    route_series(*owner, CLASSES.get(status // 100, OTHERS)),
                    route_span_series(*owner, bisect_left(SPANS_MS, latency)),
                )
            ]
        self._count(points)


# Creating series takes longer than counting with them.
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
    """The series of a metric: of the API, of its stage and, where `method` (path, verb) is given, of the method."""
    of_api = ("ApiName", name) if is_rest else ("ApiId", api)
    dimensions: list[tuple[tuple[str, str], ...]] = [(of_api,), (of_api, ("Stage", stage))]
    if method is not None:
        path, verb = method
        dimensions.append((of_api, ("Method", verb), ("Resource", path), ("Stage", stage)))
    return tuple(Series(account, region, NAMESPACE, metric, each) for each in dimensions)


_VARIABLE: Final = re.compile(r"\$context\.([A-Za-z0-9_.-]*[A-Za-z0-9_])")
_GROUP: Final = re.compile(r"arn:aws[a-z-]*:logs:([a-z0-9-]+):(\d{12}):log-group:([^:*]+)(?::\*)?")
_ABSENT_TEXT: Final = "-"


class AccessLog:
    """Writes access logs."""

    def __init__(self, sink: LogSink, stream: str) -> None:
        self._sink = sink
        self._stream = stream

    def write(
        self, settings: Mapping[str, Any] | None, exchange: Exchange, status: int, length: int, now: int
    ) -> None:
        """Write the line of an answered request, if its stage has a log.

        - `settings`: `destinationArn` and `format`; None: there is no log.
        - `length`: of the answer's body (bytes).
        """
        group = group_of((settings or {}).get("destinationArn") or "")
        if settings is None or group is None or group.account != exchange.stage_place.account:
            return
        context = exchange.context()
        context |= {
            "status": status,
            "responseLength": length,
            "responseLatency": now - exchange.now,
            "routeKey": exchange.route,
            "integrationErrorMessage": exchange.integration.get("error"),
            "integrationLatency": exchange.integration.get("latency"),
            "integrationStatus": exchange.integration.get("status"),
            "awsEndpointRequestId": exchange.id,
        }
        line = _VARIABLE.sub(
            lambda match: at_path(context, match[1]) or _ABSENT_TEXT, settings.get("format") or ""
        )
        self._sink.write(group, self._stream, now, line)


def refusal_of(arn: str, account: str) -> str:
    """The reason why an account's API cannot log to a destination, as to another account's group; empty: it can."""
    group = group_of(arn)
    if group is None:
        return f"Redrive does not offer access logs to {arn}; it writes them to groups of CloudWatch Logs."
    if group.account != account:
        return f"Invalid ARN specified in the request. {arn} belongs to another account."
    return ""


def check_destination(arn: str | None, account: str) -> None:
    """Refuse a destination to which an API of this account cannot log; None or empty: nothing is logged.

    Raises:
        AwsError: `BadRequestException`.
    """
    if arn and (refusal := refusal_of(arn, account)):
        raise bad_request(refusal)


def group_of(arn: str) -> ResourceName | None:
    """The log group of an ARN; None: it is not the ARN of one."""
    match = _GROUP.fullmatch(arn)
    return None if match is None else ResourceName(match[2], match[1], match[3])

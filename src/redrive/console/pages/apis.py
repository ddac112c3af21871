"""API Gateway: which route fails, and one route with its mappings, which can be tried."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from redrive.aws.apigateway.control.records import STAGES
from redrive.aws.apigateway.requests.metrics import CLASSES, OTHERS
from redrive.aws.wire.errors import AwsError
from redrive.console import json_text
from redrive.console.api_routes import (
    ApiRoute,
    apis_of,
    failure_links,
    invoke_url,
    name_of,
    routes_of,
    target_of,
)
from redrive.console.charts import TimeChart
from redrive.console.commands import aws_command
from redrive.console.health import share_text, span_text, span_within
from redrive.console.hour import Hour, last_hour
from redrive.console.sorting import Row, sorted_page
from redrive.console.visit import REFUSED, Missing, Page, Visit
from redrive.model.metric import PointQuery

ROUTES_MAX: Final = 1000
_CLIENT, _SERVER = CLASSES.values()


async def listing(visit: Visit) -> Page:
    """The routes of all APIs, those that fail first."""
    api_id, text = visit.parameter("api"), visit.parameter("filter").strip()
    apis = await apis_of(visit.engine.resources.documents, visit.scope)
    routes = [
        route
        for api in apis
        if api_id in ("", api.id)
        for route in routes_of(api)
        if text.lower() in f"{name_of(api)} {route.key}".lower()
    ][:ROUTES_MAX]
    hour = await _hour(visit, routes)
    rows: list[Row] = [_row(visit, route, hour) for route in routes]
    # By a row's link; of all rows only if they are sorted by it.
    p99 = await _p99(visit, rows, hour) if visit.parameter("sort").removeprefix("-") == "p99" else {}
    columns: dict[str, Callable[[Row], Any]] = {
        "route": lambda row: row["route"].key.partition(" ")[::-1],  # by path, then by method
        "api": lambda row: row["api"],
        "requests": lambda row: row["requests"],
        "client": lambda row: row["client"],
        "server": lambda row: row["server"],
        "slowest": lambda row: row["slowest"] or 0.0,
        "p99": lambda row: p99.get(row["link"], -1),
    }
    page = sorted_page(visit, sorted(rows, key=_urgency), columns, "apis", api=api_id, filter=text)
    p99 = p99 or await _p99(visit, page.rows, hour)
    values = {
        "page": page,
        "p99": {link: span_text(span) for link, span in p99.items()},
        "apis": [(api.id, name_of(api), visit.link("apis", api=api.id, filter=text)) for api in apis],
        "everything": visit.link("apis", filter=text),
        "api": api_id,
        "filter": text,
        "form": visit.link("apis"),
        "start": aws_command(
            visit, "apigatewayv2", "create-api", "--name", "orders", "--protocol-type", "HTTP"
        ),
    }
    return Page("apis.html", values, live_seconds=5)


async def _hour(visit: Visit, routes: Sequence[ApiRoute]) -> Hour:
    await visit.installation.settle()
    series = [each for route in routes for each in route.series.values()]
    return await last_hour(visit.installation.telemetry, series, visit.now)


async def _p99(visit: Visit, rows: Sequence[Row], hour: Hour) -> dict[str, int]:
    """The span that 99 % of the requests of each route with requests are within, by its link: one read, a row a span."""
    spans = {row["link"]: row["route"].spans for row in rows if row["requests"]}
    if not spans:
        return {}
    series = [each for of_route in spans.values() for each in of_route]
    query = PointQuery(series, hour.since, hour.until, hour.until - hour.since)
    total = Hour(hour.since, hour.until, await visit.installation.telemetry.find_points_each(query))
    numbers = {link: [total.tally(each).samples for each in of_route] for link, of_route in spans.items()}
    return {link: span_within(each, 0.99) for link, each in numbers.items() if any(each)}


def _row(visit: Visit, route: ApiRoute, hour: Hour) -> dict[str, Any]:
    """The row of a route: its target, and its requests and failures in the hour."""
    series = route.series
    all_answers = hour.tally(*series.values())
    failed = hour.tally(series[_SERVER]).samples
    requests = all_answers.samples
    return {
        "route": route,
        "api": name_of(route.api),
        "target": target_of(visit, route),
        "requests": requests,
        "client": hour.tally(series[_CLIENT]).samples,
        "server": failed,
        "share": share_text(failed, requests) if failed else "",
        "mean": all_answers.mean,
        "slowest": all_answers.greatest,
        "drawn": hour.sparkline(
            f"{requests:,} requests in the last hour, minute by minute", *series.values()
        ),
        "link": visit.link("apis", route.api.id, "route", key=route.key),
    }


def _urgency(row: Row) -> tuple[float, int, int, str]:
    """The order of routes: the greatest share of failures first, then what clients did wrong, then what is asked most."""
    requests = row["requests"] or 1
    return -row["server"] / requests, -row["client"], -row["requests"], row["route"].key


async def one(visit: Visit) -> Page:
    """A route: its figures, and how it maps requests and answers."""
    route = await _route(visit)
    return await _page(visit, route, {"path": route.key.partition(" ")[2], "body": "", "headers": ""})


async def try_it(visit: Visit) -> Page:
    """Ask a REST API's method as it is edited now, without a deployment: what it calls is really called."""
    route = await _route(visit)
    inputs = {
        name: visit.parameter(name).replace("\r\n", "\n") for name in ("path", "headers", "body", "method")
    }
    if not route.is_rest:
        return await _page(
            visit, route, {**inputs, "notice": "Only methods of REST APIs can be tested."}, REFUSED
        )
    method = route.key.partition(" ")[0]
    params = {
        "restApiId": route.api.id,
        "resourceId": route.resource,
        "httpMethod": method,
        "pathWithQueryString": inputs["path"],
        "headers": dict(_headers(inputs["headers"])),
        "body": inputs["body"],
    }
    try:
        answer = await visit.call("apigateway", "TestInvokeMethod", params)
    except AwsError as error:
        return await _page(visit, route, {**inputs, "notice": error.message}, REFUSED)
    did = f"{method} {inputs['path'].partition('?')[0]} answered {answer['status']}"
    return await _page(visit, route, {**inputs, "answer": _answer(visit, answer)}, did=did)


def _headers(text: str) -> list[tuple[str, str]]:
    """Headers as they were typed, one a line."""
    lines = (line.partition(":") for line in text.splitlines() if ":" in line)
    return [(name.strip(), value.strip()) for name, _, value in lines if name.strip()]


async def _route(visit: Visit) -> ApiRoute:
    """The route that the address names; raises Missing if there is none."""
    key, api_id = visit.parameter("key"), visit.args["api"]
    for api in await apis_of(visit.engine.resources.documents, visit.scope):
        routes = routes_of(api) if api.id == api_id else ()
        for route in routes:
            if route.key == key:
                return route
    raise Missing(f"There is no route {key[:100]} of an API {api_id[:40]}.")


async def _page(
    visit: Visit, route: ApiRoute, typed: Mapping[str, Any], status: int = 200, did: str = ""
) -> Page:
    """The page of a route; `typed`: the values of the form for a test call, or the answer to it."""
    hour = await _hour(visit, [route])
    url = invoke_url(visit, route)
    row = _row(visit, route, hour)
    p99 = await _p99(visit, [row], hour)
    values = {
        **row,
        "p99": span_text(p99[row["link"]]) if p99 else "",
        "failures": failure_links(visit, route) if row["server"] or row["client"] else [],
        "chart": _chart(hour, route),
        "url": url,
        "command": _curl(route, url) if url else "",
        "stages": sorted(route.api.tree.get(STAGES) or ()),
        "request": _mappings(route.integration, "requestTemplates", "requestParameters"),
        "responses": [
            (
                name,
                response.get("selectionPattern") or "",
                _mappings(response, "responseTemplates", "responseParameters"),
            )
            for name, response in sorted((route.integration.get("integrationResponses") or {}).items())
        ],
        "here": visit.link("apis", route.api.id, "route", key=route.key),
        "notice": "",
        "answer": None,
        "method": "",
        **typed,
    }
    return Page("api_route.html", values, status, did=did)


def _chart(hour: Hour, route: ApiRoute) -> TimeChart | None:
    series = route.series
    return hour.line_chart({"Answered": [series[OTHERS]], "4xx": [series[_CLIENT]], "5xx": [series[_SERVER]]})


def _mappings(part: Mapping[str, Any], templates: str, parameters: str) -> list[tuple[str, str]]:
    """The mapping of a request or an answer: each parameter and each template with its name."""
    names = part.get(parameters) or part.get("RequestParameters") or {}
    return [*sorted(names.items()), *sorted((part.get(templates) or {}).items())]


def _curl(route: ApiRoute, url: str) -> str:
    method = route.key.partition(" ")[0]
    name = "POST" if method in ("ANY", "$default") else method
    body = " -d '{}'" if name in ("POST", "PUT", "PATCH") else ""
    return f"curl -i -X {name}{body} {shlex.quote(url)}"


def _answer(visit: Visit, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a test call; its body and log only where bodies are shown."""
    body = str(answer.get("body") or "")
    return {
        "status": answer["status"],
        "latency": int(answer["latency"]),
        "headers": sorted((answer.get("headers") or {}).items()),
        "body": (json_text.pretty(body) or body) if visit.bodies_shown else None,
        "log": str(answer.get("log") or "") if visit.bodies_shown else None,
    }

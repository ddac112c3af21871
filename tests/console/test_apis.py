"""API Gateway: routes by what they answered, one with its mappings, and the test of a method."""

import re
from urllib.parse import quote, unquote_plus

import pytest

from redrive.aws.apigateway.control.exchange import StagePlace
from redrive.aws.apigateway.requests.metrics import ApiMetrics, route_series, route_span_series
from redrive.model.http import Request, Response
from redrive.model.metric import MetricPoint, Statistics
from tests.console.services import Services, make_apis, make_function
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, Visitor, visiting


async def made(visitor: Visitor) -> Services:
    services = Services(visitor)
    await make_function(services)
    await make_apis(services)
    return services


def route_link(services: Services, number: int) -> str:
    api, key = services.routes[number]
    return f"{ROOM}/apis/{api}/route?key={quote(key)}"


async def test_the_route_that_fails_most_is_the_first_by_its_share() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        now = visitor.server.core.engine.clock.now()
        answers = {0: {"others": 9, "4xx": 1}, 1: {"others": 3, "5xx": 1}}
        points = [
            MetricPoint(
                route_series(SCOPE.account, SCOPE.region, *services.routes[which], answer),
                now,
                "",
                Statistics.of(40, number),
            )
            for which, counts in answers.items()
            for answer, number in counts.items()
        ]
        await visitor.server.core.store.add_points(points)
        page = text(await visitor.get(f"{ROOM}/apis"))
        failing = "GET /bills/{id} Failing bills text HTTP bill lambda 4 0 1 (25.0 %) 40 ms"
        refusing = "POST / Refusing shop text REST lost sqs 10 1 0 40 ms"
        assert page.index(failing) < page.index(refusing)
        by_requests = text(await visitor.get(f"{ROOM}/apis?sort=requests"))
        assert by_requests.index(refusing) < by_requests.index(failing)
        alone = text(await visitor.get(f"{ROOM}/apis?filter=bills"))
        assert failing in alone
        assert refusing not in alone
        assert "10 over all stages" in text(await visitor.get(route_link(services, 0)))
        failed = (await visitor.get(route_link(services, 1))).body.decode()
        assert f'<a href="{ROOM}/functions/bill">the invocations of the function</a>' in failed


async def test_routes_are_sorted_by_the_time_that_most_of_their_requests_take() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        now = visitor.server.core.engine.clock.now()
        spans = {0: {2: 100}, 1: {2: 98, 9: 2}}
        points = []
        for which, counts in spans.items():
            route = (SCOPE.account, SCOPE.region, *services.routes[which])
            points.append(MetricPoint(route_series(*route, "others"), now, "", Statistics.of(40, 100)))
            points += [
                MetricPoint(route_span_series(*route, span), now, "", Statistics.of(1, number))
                for span, number in counts.items()
            ]
        await visitor.server.core.store.add_points(points)
        (_, quick), (_, slow) = services.routes[:2]
        for sort, order in (("p99", [slow, quick]), ("-p99", [quick, slow])):
            page = (await visitor.get(f"{ROOM}/apis?sort={sort}")).body.decode()
            keys = map(unquote_plus, re.findall(r"/route\?key=([^\"]+)", page))
            assert [key for key in keys if key in (quick, slow)] == order


async def test_requests_are_counted_by_the_route_that_they_found() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        api, _ = services.routes[1]
        for path in ("/bills/7", "/absent"):
            host = {"host": f"{api}.execute-api.{SCOPE.region}.localhost:4566"}
            answer = visitor.server.router.answer(Request("GET", path, "", host, b""))
            response = answer if isinstance(answer, Response) else await answer
            assert response.status == (404 if path == "/absent" else 200)
        await visitor.server.core.telemetry.flush()
        assert "GET /bills/{id} Healthy bills text HTTP bill lambda 1 0 0" in text(
            await visitor.get(f"{ROOM}/apis")
        )


async def test_a_route_says_what_99_percent_of_its_requests_stayed_within() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        now, (api, key) = visitor.server.core.engine.clock.now(), services.routes[1]
        owner = StagePlace(SCOPE.account, SCOPE.region, api, "bills", "$default")
        metrics = ApiMetrics(visitor.server.core.telemetry.count)
        for latency in [4] * 900 + [30] * 91 + [4000] * 9:
            metrics.add(owner, 200, now, latency, None, route=key, is_rest=False)
        await visitor.server.core.telemetry.flush()
        page = text(await visitor.get(f"{ROOM}/apis"))
        assert "GET /bills/{id} Healthy bills text HTTP bill lambda 1,000 0 0 4 s 33 ms" in page
        assert "99 % in 33 ms or less" in text(await visitor.get(route_link(services, 1)))


async def test_a_test_shows_the_request_to_the_integration_and_both_answers() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        link = route_link(services, 0)
        shown = text(await visitor.get(link))
        assert "application/json Action=SendMessage&MessageBody=$util.urlEncode($input.body)" in shown
        form = {"path": "/", "headers": "content-type: application/json", "body": '{"city":"Oslo"}'}
        tried = text(await visitor.post(link, form))
        assert "The method answered 200" in tried
        assert '{ "taken": true }' in tried
        mapped = "Action=SendMessage&MessageBody=%7B%22city%22%3A%22Oslo%22%7D"
        assert f"Endpoint request body after transformations: {mapped}" in tried
        assert re.search(r"Endpoint response body before transformations: .*SendMessageResponse", tried)
        received = await services.call("sqs", "ReceiveMessage", QueueUrl=f"http://x/{SCOPE.account}/lost")
        assert [each["Body"] for each in received["Messages"]] == ['{"city":"Oslo"}']


@pytest.mark.parametrize("key", ["GET /absent", ""])
async def test_a_route_that_is_not_there_is_not_found(key: str) -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await made(visitor)
        assert (
            await visitor.get(f"{ROOM}/apis/{services.routes[0][0]}/route?key={quote(key)}")
        ).status == 404

"""Event sources: what feeds which function, how its batches ended, and a tester of its filter."""

from urllib.parse import quote

from redrive.aws.lambda_.documents.records import MAPPING
from redrive.aws.lambda_.invocations.metrics import FAILED, SUCCEEDED, batch_series
from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from tests.console.services import Services, make_function
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, visiting

QUEUE = "work"
WORK = f"http://x/{SCOPE.account}/{QUEUE}"


async def test_a_mapping_shows_its_backlog_its_batches_and_the_last_result() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        await make_function(services)
        core = visitor.server.core
        (mapping,) = await core.engine.resources.documents.find(MAPPING, f"{SCOPE.account}/{SCOPE.region}/")
        now = core.engine.clock.now() // MINUTE_MS * MINUTE_MS
        points = [
            MetricPoint(batch_series(mapping, SUCCEEDED), now - MINUTE_MS, "", Statistics.of(10, 3)),
            MetricPoint(batch_series(mapping, FAILED), now, "", Statistics.of(4)),
        ]
        await core.store.add_points(points)
        for body in ("1", "2"):
            await services.call("sqs", "SendMessage", QueueUrl=WORK, MessageBody=body)
        page = text(await visitor.get(f"{ROOM}/event-sources"))
        assert "work Switched off bill 2 10 4 1 1 of 1 failed" in page
        one = text(await visitor.get(f"{ROOM}/event-sources/{mapping.id}"))
        assert "Batches, 1 h 4 34 messages" in one
        assert (await visitor.get(f"{ROOM}/event-sources/absent")).status == 404


async def test_batches_are_counted_by_their_result() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        await make_function(services)
        (mapping,) = services.mappings
        await services.call(
            "lambda", "UpdateEventSourceMapping", UUID=mapping, Enabled=True, FilterCriteria={}
        )
        for body in ("1", "2"):
            await services.call("sqs", "SendMessage", QueueUrl=WORK, MessageBody=body)
        assert visitor.server.time is not None
        await visitor.server.time.advance(MINUTE_MS)
        page = text(await visitor.get(f"{ROOM}/event-sources"))
        assert "work Healthy bill 0 10" in page
        assert "OK, 2 messages" in page


async def test_a_filter_tells_of_a_body_whether_it_passes() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        await make_function(services, "Oslo")
        (mapping,) = services.mappings
        link = f"{ROOM}/event-sources/{mapping}?record="
        passes = quote('{"city": "Oslo"}')
        assert "It goes to the function." in text(await visitor.get(link + passes))
        refused = text(await visitor.get(link + quote('{"city": "Rome"}')))
        assert "No pattern matches: it would be deleted from the queue" in refused
        assert "patterns see it as text" in text(await visitor.get(f"{link}Oslo"))


async def test_a_mapping_is_switched_from_the_list_and_back() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        await make_function(services)
        link = f"{ROOM}/event-sources/{services.mappings[0]}"
        assert (await visitor.post(link, {"do": "enable"})).status == 303
        page = await visitor.get(f"{ROOM}/event-sources")
        assert "work is consumed from now on Undo" in text(page)
        assert (await visitor.post(link, {"do": "disable"})).status == 303
        assert "Switched off" in text(await visitor.get(f"{ROOM}/event-sources"))

"""Logs on pages: groups, streams, events by pattern and time, and the rows of one message."""

import re
from urllib.parse import quote, urlencode

from redrive.console.charts import NOTHING
from tests.console.services import GROUP, Services, make_function
from tests.console.test_schedules import text as words
from tests.console.world import ROOM, Visitor, visiting

EVENTS = f"{ROOM}/logs/group"


async def page(visitor: Visitor, **parameter: str) -> str:
    response = await visitor.get(f"{EVENTS}?{urlencode(parameter)}")
    return response.body.decode()


async def test_groups_lead_to_their_streams_and_events() -> None:
    async with visiting(functions="on") as visitor:
        await make_function(Services(visitor))
        groups = (await visitor.get(f"{ROOM}/logs")).body.decode()
        assert f"{EVENTS}?name={quote(GROUP, safe='')}" in groups
        assert GROUP not in (await visitor.get(f"{ROOM}/logs?pattern=absent")).body.decode()
        matching = (await visitor.get(f"{ROOM}/logs?pattern={GROUP[1:4]}")).body.decode()
        assert GROUP in matching
        assert "after=" not in matching, "the one page there is"
        streams = (await visitor.get(f"{ROOM}/logs/streams?name={GROUP}")).body.decode()
        assert "2026/11/22/[$LATEST]ab" in streams
        assert "MARKED text" in await page(visitor, name=GROUP, stream="2026/11/22/[$LATEST]ab")
        gone = await visitor.get(f"{EVENTS}?name=sns/us-east-1/0/x")
        assert gone.status == 404
        assert "delivery-status attributes name a role" in gone.body.decode()
        assert (await visitor.get(f"{EVENTS}?name={GROUP}&stream=absent")).status == 404


async def test_the_list_of_groups_counts_lines_and_errors_of_the_last_hour() -> None:
    for bodies in ("shown", "hidden"):
        async with visiting(clock="simulated", console_bodies=bodies) as visitor:
            services = Services(visitor)
            services.log("ERROR long ago", group="g")
            await visitor.server.time.advance(7_200_000)  # type: ignore[union-attr]  # simulated
            services.log("ERROR one", "fine", '{"level": "error", "of": "json"}', "no ERRORS", group="g")
            services.log("quiet", group="quiet")
            page = words(await visitor.get(f"{ROOM}/logs"))
            assert " g 4 " in page
            assert (' g 4 2 {"level": "error", "of": "json"}' in page) is (bodies == "shown")
            assert (f"g 4 {NOTHING} " in page) is (bodies == "hidden")
            assert f" quiet 1 {'0' if bodies == 'shown' else NOTHING} " in page


async def test_events_are_found_by_pattern_and_time() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        services.log("old line", group="g")
        await visitor.server.time.advance(7_200_000)  # type: ignore[union-attr]  # simulated
        services.log('{"status": "FAILURE", "n": 12345678901234567890}', "ERROR at last", group="g")
        both = await page(visitor, name="g")
        assert both.index("ERROR at last") < both.index("1234567890") < both.index("old line")
        assert "  &#34;n&#34;: 12345678901234567890" in both
        assert "old line" not in await page(visitor, name="g", last="1 h")
        assert "at last" not in await page(visitor, name="g", pattern='{ $.status = "FAILURE" }')
        assert "old line" in await page(visitor, name="g", until="2026-01-01T01:00")
        assert "old line" not in await page(visitor, name="g", since="2026-01-01T01:00")
        assert "old line" in await page(visitor, name="g", since="2026-01-01T01:00+02:00")
        for unusable in ({"since": "tomorrow"}, {"after": "x"}):
            assert "cannot be used" in await page(visitor, name="g", **unusable)
        assert "Invalid filter pattern" in await page(visitor, name="g", pattern="{ $.a = ")


async def test_an_event_that_was_found_leads_to_those_around_it() -> None:
    async with visiting(clock="simulated") as visitor:
        lines = [f"line {number:03}" for number in range(100)]
        Services(visitor).log(*lines[:50], "needle", *lines[50:], group="g")
        found = await page(visitor, name="g", pattern="needle")
        (link,) = re.findall(r'<a href="([^"]+)" title="The events before and after this one">', found)
        around = (await visitor.get(link.replace("&amp;", "&"))).body.decode()
        shown = re.findall(r"<code>([^<]+)</code></td>", around)
        assert shown[:21] == [*reversed(lines[50:70]), "needle"]
        assert shown[21:] == list(reversed(lines[21:50]))
        (chosen,) = re.findall(r'<tr class=" chosen" aria-current="true">.*?</tr>', around, re.DOTALL)
        assert "needle" in chosen
        few = await page(visitor, name="g", pattern="099")
        (link,) = re.findall(r'<a href="([^"]+)" title="The events before and after this one">', few)
        newest = (await visitor.get(link.replace("&amp;", "&"))).body.decode()
        assert re.findall(r"<code>([^<]+)</code></td>", newest)[:2] == ["line 099", "line 098"]


async def test_a_long_log_is_looked_through_in_slices() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        services.log("needle", *(f"line {number}" for number in range(450)), group="g")
        first = await page(visitor, name="g", pattern="needle")
        assert "Nothing found so far that matches" in first
        link = first.split('id="next" href="')[1].split('"')[0].replace("&amp;", "&")
        second = (await visitor.get(link)).body.decode()
        assert "<code>needle</code>" in second
        assert 'id="next"' not in second


async def test_logs_are_hidden_with_bodies_and_not_searched() -> None:
    async with visiting(console_bodies="hidden") as visitor:
        Services(visitor).log("MARKED", group="g")
        shown = await page(visitor, name="g")
        assert "MARKED" not in shown
        assert "not shown" in shown
        assert "cannot be used" in await page(visitor, name="g", pattern="MARKED")


async def test_a_message_leads_to_its_rows_in_the_log_of_its_topic() -> None:
    async with visiting() as visitor:
        services = Services(visitor)
        role = "arn:aws:iam::000000000000:role/f"
        attributes = {"SQSSuccessFeedbackRoleArn": role, "SQSSuccessFeedbackSampleRate": "100"}
        topic = await services.call("sns", "CreateTopic", Name="Rentals", Attributes=attributes)
        await services.call("sqs", "CreateQueue", QueueName="orders")
        arn = "arn:aws:sqs:us-east-1:000000000000:orders"
        await services.call("sns", "Subscribe", TopicArn=topic["TopicArn"], Protocol="sqs", Endpoint=arn)
        assert "</svg>Delivered</a>" in (await visitor.get(f"{ROOM}/topics/Rentals")).body.decode()
        published = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": "hello"})
        life = (await visitor.get(published.headers["Location"])).body.decode()
        (link,) = re.findall(r'href="([^"]+)">delivered<', life)
        rows = (await visitor.get(link.replace("&amp;", "&"))).body.decode()
        assert "SUCCESS" in rows
        assert published.headers["Location"].split("/")[-1].split("?")[0] in rows


async def test_levels_are_counted_by_time_and_an_id_leads_to_its_trace() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        request = "6f1c2a9e-41d7-4be0-9c2f-0d9be671c04f"
        services.log("ERROR of a kind", '{"level": "warning", "msg": "slow"}', "no Error in words", group="g")
        await visitor.server.time.advance(600_000)  # type: ignore[union-attr]  # simulated
        services.log(f"START RequestId: {request}", group="g")
        shown = await page(visitor, name="g")
        assert "4 events, of them" not in shown
        assert "Events by time: 4, of them 1 errors and 1 warnings" in shown
        (first, second) = re.findall(r'<a href="([^"]+)" aria-label="[^"]+Z: (?:1|3) events?', shown)
        one = (await visitor.get(first.replace("&amp;", "&"))).body.decode()
        assert "ERROR of a kind" in one
        assert request not in one
        assert request in (await visitor.get(second.replace("&amp;", "&"))).body.decode()
        assert f'href="{ROOM}/messages/{request}"' in shown
        assert shown.count('class="l-error"') == shown.count('class="l-warn"') == 1

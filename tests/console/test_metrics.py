"""Metrics as lines, without a browser."""

import re
from collections import Counter
from html import unescape
from typing import Any

import pytest

from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.topic import Message
from redrive.stores.sqlite.store import SqliteStore
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, Visitor, make_world, visiting

PAGE = f"{ROOM}/metrics"


async def measured(visitor: Visitor, name: str, *values: float, of: str = "billing") -> None:
    """Points of a metric of a function, one a minute, the last of them a minute ago."""
    engine, store = visitor.server.core.engine, visitor.server.core.store
    series = Series(SCOPE.account, SCOPE.region, "AWS/Lambda", name, (("FunctionName", of),))
    last = engine.clock.now() // MINUTE_MS * MINUTE_MS - MINUTE_MS
    points = [
        MetricPoint(series, last - MINUTE_MS * age, "Count", Statistics.of(value))
        for age, value in enumerate(reversed(values))
    ]
    await store.add_points(points)


async def test_the_metrics_of_a_queue_are_drawn() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.engine.messages.send(
            world.orders, [Message(bytes(16), "a"), Message(bytes(15) + b"b", "b")]
        )
        page = text(await visitor.get(f"{PAGE}?of=orders&metric=NumberOfMessagesSent"))
        assert "· QueueName orders" in page
        assert "As a table" in page
        assert "cloudwatch put-metric-alarm --alarm-name NAME" in page
        queue = (await visitor.get(f"{ROOM}/queues/orders")).body.decode()
        assert f'href="{PAGE}?of=orders"' in queue
        assert f'href="{ROOM}/tail?of=orders"' in queue
        assert "No matching metrics" in text(await visitor.get(f"{PAGE}?of=nobody"))


async def test_changes_are_numbered_on_the_charts_and_a_link_keeps_their_time() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        (first,) = await world.die("order 1")
        await visitor.post(f"{ROOM}/dead-letters/orders-dead/set-aside", {"id": first, "cause": "all"})
        time = visitor.server.time
        assert time is not None
        await time.advance(5 * MINUTE_MS)
        page = (await visitor.get(f"{PAGE}?of=orders")).body.decode()
        assert '<line class="mark"' in page
        assert "; 1 change meanwhile" in page
        assert "orders-dead : 1 of 1 set aside" in " ".join(
            text(await visitor.get(f"{PAGE}?of=orders")).split()
        )
        audit = unescape(re.findall(r'href="([^"]+)" aria-label="Audit of change 1"', page)[0])
        assert "set-aside orders-dead 1 of 1 set aside" in text(await visitor.get(audit))
        link = f"{PAGE}?of=orders&amp;since=1h&amp;until=2026-01-01T00%3A05Z"
        assert f'href="{link}" data-freezes' in page
        await time.advance(3 * 60 * MINUTE_MS)
        assert "1 change meanwhile" not in (await visitor.get(f"{PAGE}?of=orders&again")).body.decode()
        later = (await visitor.get(link.replace("&amp;", "&"))).body.decode()
        assert "; 1 change meanwhile" in later
        assert "data-every" not in later.partition('id="live"')[2].partition(">")[0]
        assert (await visitor.get(f"{PAGE}?until=soon")).status == 400


async def test_statistics_and_spans_are_chosen() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        await measured(visitor, "Errors", 1, 5, 3)
        summed = text(await visitor.get(f"{PAGE}?namespace=AWS/Lambda"))
        assert "Sum" in summed
        assert (
            "alarms/new?of=function&amp;thing=billing&amp;watched=errors"
            in (await visitor.get(f"{PAGE}?namespace=AWS/Lambda&x")).body.decode()
        )
        six = (await visitor.get(f"{PAGE}?namespace=AWS/Lambda&since=6h&stat=Maximum")).body
        assert b">5<" in six
        assert b'value="6h"' in six
        assert (await visitor.get(f"{PAGE}?since=99d&stat=p17")).status == 200


async def test_many_metrics_are_bounded_and_two_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(verb: str) -> Any:
        real = getattr(SqliteStore, verb)

        async def count(store: SqliteStore, *args: Any) -> Any:
            calls[verb] += 1
            return await real(store, *args)

        return count

    async with visiting() as visitor:
        await make_world(visitor)
        for number in range(130):
            await measured(visitor, "Invocations", 1, of=f"f{number:03d}")
        await visitor.get(f"{ROOM}/queues")  # the navigation has counted then
        for verb in ("find_series", "find_points", "find_points_each", "find_values"):
            monkeypatch.setattr(SqliteStore, verb, counted(verb))
        response = await visitor.get(f"{PAGE}?namespace=AWS/Lambda")
        assert response.body.count(b"<figure") == 8
        assert "22 more: choose a metric" in text(response)
        assert calls == {"find_series": 1, "find_points_each": 1}


async def test_names_of_strangers_metrics_are_escaped() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        await measured(visitor, "<x-evil>", 1, of="<x-evil of='")
        assert b"<x-evil" not in (await visitor.get(PAGE)).body


async def test_the_page_begins_with_six_charts_of_the_account_and_region() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        await world.die("a", "b")
        sent = [Message(world.engine.runtime.message_id(), "m") for _ in range(120)]
        await world.engine.messages.send(world.orders, sent)
        for _ in range(2):
            await time.advance(5 * MINUTE_MS)
        page = (await visitor.get(PAGE)).body.decode()
        assert re.findall(r'<h2 id="place-\d">([^<]+)</h2>', page) == [
            *("In", "Out", "Failed attempts", "Waiting", "Oldest message", "Dead letters")
        ]
        figures = text(await visitor.get(f"{PAGE}?figures"))
        assert "Waiting 120 120 120" in figures
        assert "Oldest message 5 min 6.5 min 8 min" in figures
        assert "Dead letters 2 2 2" in figures
        assert "Out 0/s 0/s 0.03/s" in figures
        assert "Failed attempts 0" not in figures
        assert page.count("As a table") == 0
        for span in ("6h", "24h", "15d"):
            shown = (await visitor.get(f"{PAGE}?since={span}")).body
            assert len(shown) <= 60 * 1024
            assert (await visitor.get(f"{PAGE}?since={span}")).status == 200

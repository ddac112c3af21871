"""Costs of a page: store calls and rows; `python -m benchmarks console` measures them at a million dead letters."""

from typing import Final

import pytest

from redrive.console import counting
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import Queue
from redrive.model.topic import Message
from tests.console.store_calls import counting as counted_calls
from tests.console.world import ROOT, SCOPE, make_world, pages_of, visiting

CALLS_MAX: Final = 6
ROWS_MAX: Final = 130  # two ends of each cause, and a page with its notes
DIED: Final = 120


async def test_a_page_asks_the_store_a_few_times_whatever_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "_KEPT_MS", 3_600_000)  # a slow machine takes over 5 s for two pages
    async with visiting() as visitor:
        world = await make_world(visitor)
        for first in range(0, DIED, 10):
            seqs = await world.die(*(f'{{"order": {first + each}}}' for each in range(10)))
        with counted_calls() as store:
            for path in pages_of(world, seqs[0]):
                await visitor.get(
                    f"{path}{'&' if '?' in path else '?'}first"
                )  # documents are remembered then
                store.clear()
                response = await visitor.get(path)
                assert response.status == 200, path
                assert store.calls.total() <= CALLS_MAX, (path, store.calls)
                most = ROWS_MAX + (DIED if "q=" in path else 0)  # a search looks at a slice
                assert store.rows <= most, (path, store.rows)


async def test_overview_asks_the_store_as_rarely_when_a_redrive_failed_and_when_nothing_stands_there() -> (
    None
):
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        queues, time = world.engine.resources.queues, visitor.server.time
        assert time is not None
        with counted_calls() as store:
            await visitor.get(f"{ROOT}/?first")
            store.clear()
            assert b"No dead letter in" in (await visitor.get(f"{ROOT}/")).body
            assert store.calls.total() <= CALLS_MAX, store.calls
            await world.die("order 1", "order 2")
            await world.engine.messages.send(world.orders, [Message(bytes(16), "order 3")])
            elsewhere = await queues.create(Queue(0, SCOPE._replace(name="elsewhere")))
            await world.engine.operations.redrives.start(world.dead, elsewhere, 1)
            await queues.delete(elsewhere)
            await time.advance(15 * MINUTE_MS)
            await visitor.get(f"{ROOT}/?second")
            store.clear()
            page = (await visitor.get(f"{ROOT}/?third")).body
            assert all(told in page for told in (b"2 dead letters", b"Failed", b"No receives for"))
            assert store.calls.total() <= CALLS_MAX, store.calls

"""The cost of the console's pages at a million dead letters and ten thousand queues, and of fifty people who look.

The letters are put into the store by its own verb, in batches; then pages are asked for in this process, where calls and
rows can be counted, and from a server, where `send` is measured with and without people in turn.
"""

import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import uvloop
from tests.console.store_calls import StoreCalls, counting
from tests.console.world import ROOM, ROOT, SCOPE, Visitor

from benchmarks.bench import Bench
from benchmarks.figures import Figure, at_least, at_most, under
from benchmarks.load import Run, put_load
from benchmarks.lookers import People
from benchmarks.servers import Redrive, redrive
from redrive.app import assembled
from redrive.console.pages.queues import ALL, flow_series
from redrive.engine.engine import Engine
from redrive.engine.ports import AttemptNote, NewDelivery
from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.settings import Settings

CALLS_MAX: Final = 6
ROWS_MAX: Final = 2_200  # a slice of a search; pages without one have 150
PAGE_MS_MAX: Final = 60.0  # a page without a search, with what fills its templates
PAGE_KIB_MAX: Final = 60.0
CAUSES_MS_MAX: Final = 60.0
SLICE_MS_MAX: Final = 200.0
SPEED_MIN: Final = 0.97
P99_MS_MAX: Final = 2.0

#: The rooms that have nothing here, beside those with a name of their own.
_ROOMS: Final = (
    *(
        "topics",
        "redrives",
        "messages",
        "event-grid",
        "apis",
        "functions",
        "event-sources",
        "tail",
        "metrics",
    ),
    *("logs", "alarms", "stacks", "schedules", "kms", "audit", "views"),
)
DEAD: Final = f"{ROOM}/dead-letters/orders-dead"
_ORIGINS: Final = 5
_STATUSES: Final = (503, 500, 502, 400, 404)
_BATCH: Final = 5_000
_LOOKS: Final = 9
_LETTERS_PER_QUEUE: Final = 100  # of the other queues: so many fewer there are of them than of letters
_BUSY: Final = 50  # of them have an hour of points, as many as a page shows
_MINUTES: Final = 60
_URL: Final = "http://127.0.0.1:4566"


def counters(bench: Bench) -> Iterator[Figure]:
    """Calls, rows and times of each page; then the speed of `send` while people look."""
    number = bench.scale.backlog_messages
    with redrive(bench, lambda store: uvloop.run(fill(store, number))) as server:
        yield from _while_people_look(bench, server)
        server.server.stop()
        yield from uvloop.run(_pages(server.store, number))


# ---- filling -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _opened(store: str) -> AsyncIterator[Visitor]:
    async with assembled(Settings(store=store), _URL) as server:
        await server.open()
        yield Visitor(server)


async def fill(store: str, number: int) -> None:
    """Let messages of five queues die of five causes each, evenly, none of them just now."""
    async with _opened(store) as visitor:
        engine = visitor.server.core.engine
        dead = await engine.resources.queues.create(Queue(0, SCOPE._replace(name="orders-dead")))
        target = DeadLetterTarget(dead.name, 3)
        sources = [
            await engine.resources.queues.create(
                Queue(0, SCOPE._replace(name=f"orders-{each}"), dead_letter=target)
            )
            for each in range(_ORIGINS)
        ]
        for start in range(0, number, _BATCH):
            batch = range(start, min(start + _BATCH, number))
            await visitor.server.core.store.enqueue([_letter(engine, dead, sources, each) for each in batch])
        fleet = [SCOPE._replace(name=f"fleet-{each:05}") for each in range(number // _LETTERS_PER_QUEUE)]
        for name in fleet:
            await engine.resources.queues.create(Queue(0, name))
        minute = engine.clock.now() // MINUTE_MS * MINUTE_MS
        points = (
            MetricPoint(series, minute - each * MINUTE_MS, "", Statistics.of(each + 1))
            for series in flow_series([*(source.name for source in sources), *fleet[:_BUSY]], ALL)
            for each in range(_MINUTES)
        )
        await visitor.server.core.store.add_points(list(points))


def _letter(engine: Engine, dead: Queue, sources: list[Queue], number: int) -> NewDelivery:
    now = engine.clock.now()
    status = _STATUSES[number // _ORIGINS % len(_STATUSES)]
    reason = "server_error" if status >= 500 else "client_error"
    note = AttemptNote(4, now, 23, reason, status, "upstream connect error or disconnect before headers")
    body = f'{{"order":{number},"customer":"c-{number % 977}","total":"129.90","currency":"EUR"}}'
    origin = sources[number % _ORIGINS].id
    return NewDelivery(dead.id, engine.runtime.message_id(), body, None, now, now, origin=origin, note=note)


# ---- pages -------------------------------------------------------------------------------------------------------


async def _pages(store: str, number: int) -> list[Figure]:
    async with _opened(store) as visitor:
        engine = visitor.server.core.engine
        dead = await engine.resources.queues.get(SCOPE._replace(name="orders-dead"))
        assert dead is not None
        (last,) = await engine.messages.peek(dead, 1)
        cause = f"{last.origin}:{last.failure}".replace(" ", "%20")
        paths = {
            "overview": f"{ROOT}/",
            "dead-letter queues": f"{ROOM}/dead-letters",
            "workbench": DEAD,
            "one cause": f"{DEAD}?cause={cause}&order=oldest",
            "first slice of a search": f"{DEAD}?cause=all&q=body.order%3A{number // 2}",
            "plan": f"{DEAD}/plan?what=all&cause={cause}",
            "one dead letter": f"{DEAD}/{last.seq}",
            "queues": f"{ROOM}/queues",
            "queue": f"{ROOM}/queues/orders-dead",
            "messages": f"{ROOM}/queues/orders-dead/messages?order=newest",
            "endpoints": f"{ROOM}/endpoints?state=all",
            **{room: f"{ROOM}/{room}" for room in _ROOMS},
            "queue of a source": f"{ROOM}/queues/orders-0",
            "queues by name": f"{ROOM}/queues?prefix=fleet",
            "palette": f"{ROOT}/find?q=fleet",
            "settings": f"{ROOT}/settings",
            "navigation": f"{ROOT}/navigation",
        }
        with counting() as calls:
            found = [
                figure
                for what, path in paths.items()
                for figure in await _measured(visitor, calls, what, path)
            ]
        times = [
            await _timed(engine.operations.dead_letters.cause_counts(dead, 50, 100_000))
            for _ in range(_LOOKS)
        ]
        shown = f"25 causes of {number:,} dead letters"
        return [*found, Figure(shown, min(times), "ms", f"best of {_LOOKS}", under(CAUSES_MS_MAX))]


async def _measured(visitor: Visitor, calls: StoreCalls, what: str, path: str) -> list[Figure]:
    """A page's calls, rows and time; each look is another URL, since the same is rendered once a second."""
    times = []
    for look in range(_LOOKS):
        calls.clear()
        asked = f"{path}{'&' if '?' in path else '?'}look={look}"
        began = time.perf_counter()
        answer = await visitor.get(asked)
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status == HTTPStatus.OK, (what, answer.status)
    detail = f"{min(times):.1f} ms at best, {statistics.median(times):.1f} in the middle; {dict(calls.calls)}"
    figures = [
        Figure(f"{what}, store calls", calls.calls.total(), "", detail, under(CALLS_MAX + 1)),
        Figure(f"{what}, rows", calls.rows, "", "", under(ROWS_MAX)),
        Figure(f"{what}, size", len(answer.body) / 1024, "KiB", "", at_most(PAGE_KIB_MAX)),
    ]
    most = SLICE_MS_MAX if "search" in what else PAGE_MS_MAX
    return [*figures, Figure(what, statistics.median(times), "ms", "", at_most(most))]


async def _timed(answer: Awaitable[object]) -> float:
    """The time (ms) until an answer came."""
    began = time.perf_counter()
    await answer
    return (time.perf_counter() - began) * 1000


# ---- people ------------------------------------------------------------------------------------------------------


def _while_people_look(bench: Bench, server: Redrive) -> Iterator[Figure]:
    queue = server.new_queue()
    name = queue.rpartition("/")[2]
    people = People(
        server.url,
        {
            f"{ROOT}/": 5.0,
            DEAD: 10.0,
            f"{ROOM}/queues": 5.0,
            f"{ROOM}/queues/{name}": 5.0,
            f"{ROOM}/queues/{name}/messages?order=newest": 2.0,
        },
        random.Random(1),
    )
    connections = bench.scale.connections[0]
    alone: list[Run] = []
    watched: list[Run] = []
    for _ in range(bench.scale.rounds):
        alone.append(put_load(server, "send", queue, connections, bench.scale.seconds))
        with people.looking():
            watched.append(put_load(server, "send", queue, connections, bench.scale.seconds))
    ratio = statistics.median(run.per_second for run in watched) / statistics.median(
        run.per_second for run in alone
    )
    later = statistics.median(run.p99_ms for run in watched) - statistics.median(run.p99_ms for run in alone)
    answers = f"{people.answers:,} answers, {people.unchanged:,} of them 304"
    detail = f"{answers}; last alone {alone[-1]}, watched {watched[-1]}"
    what = f"{people.number} people look, send, {connections} connections"
    yield Figure(what, ratio, "x", detail, at_least(SPEED_MIN))
    yield Figure(f"{what}, p99", later, "ms more", "", under(P99_MS_MAX))
    dearer = statistics.median(run.cpu_us for run in watched) - statistics.median(run.cpu_us for run in alone)
    yield Figure(f"{what}, processor", dearer, "us more", "of the server for a message")

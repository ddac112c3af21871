"""The cost of a verb grows with what it takes, and never with the backlog, the groups or what is in flight."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from redrive.engine.ports import Cause, LookRequest, NewDelivery, Swept
from redrive.model.delivery import Limits
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, fresh_id, fresh_token
from tests.contracts.stores.conftest import make_home
from tests.contracts.stores.costs import of_postgres, of_sqlite
from tests.contracts.stores.homes import Home

BACKLOG = 100_000
PLAIN_ID, FIFO_ID, FAIR_ID, OTHER_ID, DEAD_ID = 1001, 1002, 1003, 1004, 1005

# What a verb may touch when it takes ten deliveries: half as much again as the dearest, settling in a fair queue,
# which includes its claim. One that reads its queue's 100,000 rows touches 300,000 steps or 2,500 pages.
STEPS_MAX = 4_600
PAGES_MAX = 750

# The queues' deliveries arrive in turn. Every fifth is in flight, every other fifth delayed. Of 50,000 groups each has
# one in line and one behind it.
FILL = """
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
    INSERT INTO deliveries (queue_id, seq, available_at, attempts, token, enqueued_at, sent_at, message_id, group_id,
        place, body, origin, failure)
    SELECT {queue_id}, 5 * i + {queue_id} - 1000000,
        CASE WHEN i < {in_flight} THEN {lapse} WHEN i < {delayed} THEN {lapse} + 1 ELSE {noon} - {last} + i END,
        CASE WHEN i < {in_flight} THEN 1 ELSE 0 END, CASE WHEN i < {in_flight} THEN 7 END,
        {noon} - {last} + i, {noon}, CAST('m' AS {bytes}), {group}, {place},
        'a message like any other', {origin}, {failure}
    FROM n
"""


async def fill_queues(home: Home) -> None:
    by_group = {"group": "'g' || (i % 50000)", "place": "CASE WHEN i < 50000 THEN 2 ELSE 0 END"}
    await fill(home, PLAIN_ID, in_flight=20_000, delayed=40_000, group="NULL", place="1")
    await fill(home, FIFO_ID, in_flight=20_000, delayed=40_000, **by_group)
    await fill(home, FAIR_ID, in_flight=0, delayed=0, **by_group)


async def fill(home: Home, queue_id: int, **others: object) -> None:
    statement = FILL.format(
        **{"origin": "NULL", "failure": "NULL", **others},
        queue_id=queue_id,
        last=BACKLOG - 1,
        noon=NOON,
        lapse=NOON + LEASE_MS,
        bytes="bytea" if home.kind == "postgres" else "BLOB",
    )
    await home.query(statement)


async def claim(queue: Bench) -> None:
    assert len(await queue.claim()) == 10


async def settle(queue: Bench) -> None:
    for delivery in await queue.claim():
        await queue.settle(delivery)


async def extend(queue: Bench) -> None:
    for delivery in await queue.claim():
        await queue.extend(delivery, NOON + 5)


async def send(queue: Bench) -> None:
    new_deliveries: list[NewDelivery] = [
        queue.new_delivery("a", group="g7", deduplication_key=f"{fresh_token()}", deduplicate_until=NOON + 1)
        for _ in range(10)
    ]
    await queue.store.enqueue(new_deliveries)


async def move(queue: Bench) -> None:
    moved, _ = await queue.move(limit=10, seq_max=10**9, destination=Bench(queue.store, OTHER_ID).target)
    assert moved.total == 10


TIMED_OUT = Cause(OTHER_ID, "timed_out")


async def move_cause(queue: Bench) -> None:
    moved, _ = await queue.move(limit=10, seq_max=10**9, cause=TIMED_OUT, origins={OTHER_ID: queue.target})
    assert moved.total == 10


async def look_at_cause(queue: Bench) -> None:
    for newest_first in (True, False):
        page = LookRequest(queue.id, 10, -(10**7), newest_first=newest_first, cause=TIMED_OUT)
        assert len(await queue.store.look(page)) == 10
    causes = await queue.store.causes(queue.id, 10, 10)
    assert [(cause.number, cause.capped) for cause in causes] == [(10, True), (10, True)]


async def purge(queue: Bench) -> None:
    assert await queue.store.purge(queue.id, 0, 10) == 10


async def delay(queue: Bench) -> None:
    assert await queue.store.delay(queue.id, 0, -(10**7), 10) is not None


async def sweep(queue: Bench) -> None:
    assert await queue.store.sweep(queue.id, NOON, NOON, 10) == Swept(10, has_more=True)


async def occupied(queue: Bench) -> None:
    assert queue.id in [kept.queue_id for kept in await queue.store.occupied(0, 10)]


async def end(queue: Bench) -> None:
    ended = await queue.request(limit=10, limits=Limits(retention_ms=1), claims_nothing=True)
    assert ended.expired == 10


async def peek(queue: Bench) -> None:
    assert len(await queue.peek(10, -950_000)) == 10
    await queue.store.notes(queue.id, fresh_id())
    await queue.store.notes_of_each([(queue.id, fresh_id())])
    assert await queue.store.locate([queue.id], fresh_id(), b"-", 10) == ([], True)
    await queue.store.count(queue.id, NOON, 10)
    newest = LookRequest(queue.id, 10, -(10**7), before_seq=-950_000, newest_first=True)
    assert len(await queue.store.look(newest)) == 10


Verb = Callable[[Bench], Awaitable[None]]
LINE, GROUPS, SCOPE, FAILURES = (
    "deliveries by deliveries_" + index for index in ("line", "groups", "pkey", "failures")
)
# A queue in order of arrival: PostgreSQL's primary key, and in SQLite, whose key is the order of all arrivals, an index.
ARRIVAL = "deliveries by deliveries_queue"
IN_POSTGRES = {ARRIVAL: SCOPE, LINE: "deliveries by deliveries_waiting"}


VERBS: Final[tuple[tuple[int, Verb, set[str]], ...]] = (
    (PLAIN_ID, claim, {LINE}),
    (FIFO_ID, claim, {LINE, GROUPS}),
    (FAIR_ID, claim, {LINE, GROUPS}),
    (PLAIN_ID, settle, {LINE, SCOPE}),
    (FIFO_ID, settle, {LINE, GROUPS, SCOPE}),
    (FAIR_ID, settle, {LINE, GROUPS, SCOPE}),
    (PLAIN_ID, extend, {LINE, SCOPE}),
    (FIFO_ID, extend, {LINE, GROUPS, SCOPE}),
    (FIFO_ID, send, {GROUPS}),
    (FAIR_ID, send, {GROUPS}),
    (PLAIN_ID, move, {LINE, SCOPE}),
    (FIFO_ID, move, {LINE, GROUPS, SCOPE}),
    (PLAIN_ID, purge, {ARRIVAL}),
    (FIFO_ID, purge, {ARRIVAL, GROUPS}),
    (FIFO_ID, delay, {ARRIVAL}),
    (FIFO_ID, sweep, {ARRIVAL, GROUPS, "deduplication by deduplication_until", "attempts by attempts_at"}),
    (FIFO_ID, occupied, {ARRIVAL, "deduplication by deduplication_until", "paces by paces_pkey"}),
    (PLAIN_ID, end, {LINE, SCOPE}),
    (PLAIN_ID, peek, {ARRIVAL}),
)
OF_CAUSES: Final[tuple[tuple[int, Verb, set[str]], ...]] = (
    (DEAD_ID, move_cause, {FAILURES, SCOPE}),
    (DEAD_ID, look_at_cause, {FAILURES}),
)


# PostgreSQL's statistics of a table that was empty when it last looked, and that it was about to grow since.
MISLEAD = (
    "UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE relname IN ('deliveries', 'deduplication')"
)


@pytest.fixture
def emptied_database(schema_database: str) -> str:
    """Of a test's own: PostgreSQL's statistics of it are changed."""
    return schema_database


@pytest.mark.parametrize(
    ("kind", "before"),
    [("sqlite-memory", ""), ("postgres", ""), ("postgres", "ANALYZE"), ("postgres", MISLEAD)],
)
async def test_a_verb_touches_what_it_takes(
    kind: str, before: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _measure(kind, before, fill_queues, VERBS, request, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "before"), [("sqlite-memory", ""), ("postgres", "ANALYZE"), ("postgres", MISLEAD)]
)
async def test_dead_letters_of_one_cause_are_reached_by_it(
    kind: str, before: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _measure(kind, before, fill_causes, OF_CAUSES, request, tmp_path, monkeypatch)


async def fill_causes(home: Home) -> None:
    """The front of the queue died of another cause than the rest."""
    why = {
        "origin": str(OTHER_ID),
        "failure": "CASE WHEN i < 50000 THEN 'client_error 400' ELSE 'timed_out' END",
    }
    await fill(home, DEAD_ID, in_flight=0, delayed=0, group="NULL", place="1", **why)


async def _measure(
    kind: str,
    before: str,
    fill_home: Callable[[Home], Awaitable[None]],
    verbs: tuple[tuple[int, Verb, set[str]], ...],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = make_home(kind, request, tmp_path)
    costs = of_postgres(monkeypatch)
    store = await home.open()
    if isinstance(store, SqliteStore):
        costs = of_sqlite(store)
    await fill_home(home)
    if before:
        await home.query(before)
    for queue_id, verb, ways in verbs:
        queue = Bench(store, queue_id, ordered=queue_id == FIFO_ID)
        await verb(queue)  # the first time, connections ask the database for its types
        costs.clear()
        await verb(queue)
        case = f"{verb.__name__} in {queue_id}: {costs}"
        assert costs.touched <= (STEPS_MAX if isinstance(store, SqliteStore) else PAGES_MAX), case
        assert not costs.readings, case
        expected = ways if isinstance(store, SqliteStore) else {IN_POSTGRES.get(way, way) for way in ways}
        assert expected <= set(costs.ways), case
    await home.leave()

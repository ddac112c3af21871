"""A SQLite store copied, looked through, and taken over by PostgreSQL with all that is under way in it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from redrive.composition.store import transfer
from redrive.engine.ports import AttemptNote, Put
from redrive.model.delivery import Outcome
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent, LogQuery
from redrive.model.metric import MetricPoint, Series, Statistics
from redrive.runtime.machine import SystemClock
from redrive.stores.contents import TABLES, ContentsTally, StoreContents
from redrive.stores.postgres import contents as postgres_contents
from redrive.stores.postgres.store import PostgresStore
from redrive.stores.sqlite.backup import back_up, look_through, rows_of
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import FIVE_MINUTES_MS, LEASE_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Rows, in_postgres

RETRY_MS = 5000
NO_TABLE = "SELECT relname FROM pg_class WHERE relname = 'deliveries'"


class Busy:
    """A SQLite store with something of everything under way."""

    def __init__(self, file: Path) -> None:
        self.file = file

    async def open(self) -> None:
        self.store = SqliteStore(self.file, alone=True)
        await self.store.open()
        ids = [await self.store.new_id() for _ in range(4)]
        self.plain, self.fifo, self.dead, self.pushed = (
            Bench(self.store, number, ordered=number == ids[1]) for number in ids
        )
        await self._send()
        await self._push()
        await self.store.write([Put("move_task", "one", {"moved": 3}), Put("queue", "q", {"name": "Grüße"})])
        series = Series("1", "eu", "ns", "sent", (("queue", "a"),))
        await self.store.add_points([MetricPoint(series, 0, "", Statistics.of(0.1), {0.1: 2.0})])
        await self.store.add_events([LogEvent(1, 2, NOON, NOON, "with a \0 in it")])

    async def _send(self) -> None:
        await self.plain.bury("died", into=self.dead)
        await self.plain.send("is claimed", "waits")
        await self.plain.send("is delayed", delay_ms=60_000)
        self.claimed = await self.plain.claim_one()
        await self.fifo.send("a1", "a2", group="a")
        await self.fifo.send("b1", "b2", group="b")
        self.once = await self.fifo.send_once("a3", "key", group="a")
        (self.of_group,) = await self.fifo.claim(limit=1, attempt_id="attempt")

    async def _push(self) -> None:
        await self.pushed.send("is retried")
        note = AttemptNote(1, NOON, 12, "server_error", 503, "busy")
        await self.pushed.settle(
            await self.pushed.claim_one(), outcome=Outcome.RETRY, available_at=NOON + RETRY_MS, note=note
        )
        await self.pushed.send("is throttled")
        await self.pushed.request(rate_max=1)

    async def close(self) -> StoreContents:
        await self.store.close()
        return look_through(self.file)


@pytest.fixture
async def busy(tmp_path: Path) -> Busy:
    store = Busy(tmp_path / "redrive.db")
    await store.open()
    return store


@pytest.fixture
async def taken_over(busy: Busy, postgres_database: str) -> AsyncIterator[PostgresStore]:
    """The database's store, with what was in the file; the benches stand on it."""
    before = await busy.close()
    assert await transfer(busy.file, postgres_database, ignored) == before
    assert look_through(busy.file) == before
    assert await postgres_contents.look_through(postgres_database) == before
    home = in_postgres(postgres_database)
    store = await home.open()
    assert isinstance(store, PostgresStore)
    for bench in (busy.plain, busy.fifo, busy.dead, busy.pushed):
        bench.store = store
    yield store
    await home.leave()


def ignored(_: object) -> None:
    """The tables that were filled are of no interest."""


async def ask(url: str, statement: str) -> Rows:
    return await in_postgres(url).query(statement)


def copies(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("copy*"))


# ---- what is under way goes on -----------------------------------------------------------------------------------


async def test_every_table_had_something_to_take_over(busy: Busy) -> None:
    contents = await busy.close()
    assert [table.name for table in contents.tables if not table.rows] == []
    assert contents.documents == {"move_task": 1, "queue": 1}
    assert (contents.queues, contents.groups, contents.faults) == (4, 2, [])


async def test_claims_hold_and_are_settled_by_their_tokens(busy: Busy, taken_over: PostgresStore) -> None:
    assert bodies(await busy.plain.claim()) == ["waits"]
    assert (await busy.plain.settle(busy.claimed)).done
    assert (await busy.fifo.settle(busy.of_group)).done
    assert bodies(await busy.plain.claim(NOON + LEASE_MS)) == ["waits"]


async def test_groups_keep_their_order_and_their_locks(busy: Busy, taken_over: PostgresStore) -> None:
    assert bodies(await busy.fifo.claim()) == ["b1", "b2"]
    await busy.fifo.settle(busy.of_group)
    assert bodies(await busy.fifo.claim()) == ["a2", "a3"]
    (seq,) = await busy.fifo.send("a4", group="a")
    assert seq > busy.once.seq


async def test_delays_retries_notes_and_paces_go_on(busy: Busy, taken_over: PostgresStore) -> None:
    assert "is delayed" in bodies(await busy.plain.claim(NOON + 60_000))
    assert (await busy.pushed.request(NOON, rate_max=1)).next_at == NOON + 1000
    retried = await busy.pushed.claim_one(NOON + RETRY_MS)
    assert (retried.body, retried.attempts) == ("is retried", 2)
    (note,) = await taken_over.notes(busy.pushed.id, retried.message_id)
    assert (note.status, note.response) == (503, "busy")


async def test_repetitions_are_known(busy: Busy, taken_over: PostgresStore) -> None:
    again = await busy.fifo.send_once("a3", "key", NOON + FIVE_MINUTES_MS - 1, group="a")
    assert (again.repeated, again.message_id) == (True, busy.once.message_id)
    (same,) = await busy.fifo.claim(limit=1, attempt_id="attempt")
    assert same.seq == busy.of_group.seq


async def test_documents_dead_letters_and_logs_are_there(busy: Busy, taken_over: PostgresStore) -> None:
    task = await taken_over.get("move_task", "one")
    assert task is not None
    assert (task.version, task.document) == (1, {"moved": 3})
    (letter,) = await busy.dead.peek()
    assert (letter.body, letter.origin, letter.failure) == ("died", busy.plain.id, "rejected")
    (event,) = await taken_over.find_events(LogQuery(1, 10))
    assert event.message == "with a \N{REPLACEMENT CHARACTER} in it"


async def test_new_numbers_are_greater_than_all_before(busy: Busy, taken_over: PostgresStore) -> None:
    assert await taken_over.new_id() > busy.once.seq
    assert await busy.plain.send("new") > [busy.once.seq]


# ---- refusals ----------------------------------------------------------------------------------------------------


async def test_a_file_that_is_served_is_refused(busy: Busy, postgres_database: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"another server has .* open"):
        await transfer(busy.file, postgres_database, ignored)
    await busy.close()
    assert await ask(postgres_database, NO_TABLE) == []


async def test_a_database_that_is_served_or_filled_is_refused(busy: Busy, postgres_database: str) -> None:
    await busy.close()
    store = PostgresStore(postgres_database, SystemClock(), "one")
    await store.open()
    with pytest.raises(
        StoreUnavailable, match=r"in use by redrive schema-\d+ one: stop the servers, and migrate then"
    ):
        await transfer(busy.file, postgres_database, ignored)
    await store.write([Put("queue", "q", {})])
    await store.close()
    with pytest.raises(StoreUnavailable, match="rows in resources: migrate into an empty database"):
        await transfer(busy.file, postgres_database, ignored)


async def test_a_row_that_is_refused_leaves_the_database_empty(busy: Busy, postgres_database: str) -> None:
    await busy.close()
    connection = apsw.Connection(str(busy.file))
    connection.execute("UPDATE attempts SET reason = 'a' || char(0)")
    connection.close()
    with pytest.raises(StoreUnavailable, match="invalid byte sequence"):
        await transfer(busy.file, postgres_database, ignored)
    assert await ask(postgres_database, NO_TABLE) == []


async def test_a_row_that_arrives_otherwise_is_refused(busy: Busy, postgres_database: str) -> None:
    await busy.close()
    store = PostgresStore(postgres_database, SystemClock(), "one")
    await store.open()
    await store.close()
    spoiling = "BEGIN NEW.body = NEW.body || chr(33); RETURN NEW; END"
    await ask(
        postgres_database,
        f"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS '{spoiling}'",
    )
    await ask(
        postgres_database,
        "CREATE TRIGGER spoiling BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION spoil()",
    )
    with pytest.raises(StoreUnavailable, match=r"rows of deliveries with the digest .* nothing was kept"):
        await transfer(busy.file, postgres_database, ignored)
    assert await ask(postgres_database, "SELECT count(*) FROM resources") == [(0,)]


def test_a_file_that_is_none_or_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "redrive.db"
    with pytest.raises(StoreUnavailable, match="there is no store at"):
        look_through(file)
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE other (number)")
    with pytest.raises(StoreUnavailable, match="is not a store of Redrive"):
        look_through(file)
    connection.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreUnavailable, match="is at step 1, and this version's at"):
        look_through(file)
    connection.close()


# ---- copies and damage -------------------------------------------------------------------------------------------


async def test_a_copy_made_beside_senders_is_one_moment(busy: Busy, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copying = asyncio.create_task(asyncio.to_thread(back_up, busy.file, copy))
    sent = 0
    while not copying.done():
        await busy.dead.send(f"beside {sent}")
        sent += 1
    contents = await copying
    assert contents == look_through(copy)
    assert copy.stat().st_mode & 0o077 == 0
    assert copies(tmp_path) == ["copy.db"]
    await busy.close()
    restored = SqliteStore(copy)
    await restored.open()
    there = [body for body in bodies(await Bench(restored, busy.dead.id).peek(100_000)) if body != "died"]
    assert there == [f"beside {number}" for number in range(len(there))]
    assert len(there) <= sent
    await restored.close()
    with pytest.raises(StoreUnavailable, match="is there already"):
        back_up(busy.file, copy)


async def test_a_damaged_file_is_told_and_not_backed_up(busy: Busy, tmp_path: Path) -> None:
    await busy.close()
    content = bytearray(busy.file.read_bytes())
    content[4096 * 3 : 4096 * 4] = bytes(4096)
    busy.file.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"is damaged|malformed"):
        look_through(busy.file)
    with pytest.raises(StoreUnavailable):
        back_up(busy.file, tmp_path / "copy.db")
    assert copies(tmp_path) == []


async def test_a_group_that_stands_still_is_a_fault(busy: Busy) -> None:
    await busy.close()
    connection = apsw.Connection(str(busy.file))
    connection.execute("UPDATE deliveries SET place = 0 WHERE group_id = 'b'")
    connection.execute("UPDATE deliveries SET place = 2 WHERE group_id = 'a'")
    connection.close()
    stuck, torn = look_through(busy.file).faults
    assert "1 message groups have nobody at their head" in stuck
    assert "1 message groups have several at their head" in torn


async def test_digests_are_of_the_rows_in_any_order(busy: Busy) -> None:
    await busy.close()
    connection = apsw.Connection(str(busy.file))
    for table in TABLES:
        rows = list(rows_of(connection, table))
        more = (*rows[0][:-1], 77)
        passings = ([*rows, more], [more, *reversed(rows)], [*rows, rows[0]])
        tally = ContentsTally()
        for passing in passings:
            assert list(tally.through(table, passing)) == passing
        first, second, other = tally.tables
        assert first == second != other
    connection.close()

"""Notices between nodes: deliveries arrived in a queue, a document changed.

News of deliveries is sent after the commit it tells of, on its own connection and a few times a second at most,
because transactions with a NOTIFY in them wait for each other's commits, over all of the database. A node that dies
in between leaves the others to look for themselves when their waits end. Documents are remembered without end, so
their news must not get lost: it goes with the transaction that changes them, of which there are few.

The same connection listens. When it is lost nobody knows what is missed, and the node is told that anything may have
happened: at once, every few seconds until it hears again (the database may have no session to spare for that, and answer
calls all the while), and then once more. A connection that is dead without a word is found out by asking it something,
for whose answer it has `PATIENCE_SECONDS`. So a node knows what another wrote at most 20 s before.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import asyncpg
import orjson

from redrive.engine.ports import Clock
from redrive.model.errors import StoreUnavailable
from redrive.stores.postgres.connecting import connect, describe
from redrive.stores.postgres.connections import LOST
from redrive.stores.postgres.pooling import session_of

logger = logging.getLogger(__name__)

_CHANNEL: Final = "redrive"
_NOTIFY: Final = "SELECT pg_notify($1, news) FROM unnest($2::text[]) AS news"

# Between two sendings: costs a long poll on another node 5 ms, and a busy node 200 statements a second.
GAP_MS: Final = 5
PING_MS: Final = 10_000  # a connection that says nothing may be dead without anybody having been told
DOUBT_MS: Final = 5_000  # between two times that a node which hears nothing forgets what it remembers
# Before each attempt to connect again; the last for all others.
BACKOFF_MS: Final = (100, 200, 500, 1000, 2000, 5000)

_NOTICE_BYTES_MAX: Final = 7999  # PostgreSQL's own limit
_QUEUES_PER_NOTICE: Final = 300  # a queue's number has at most 20 bytes


class Notices:
    """The news of one node: what it tells, and what it hears."""

    def __init__(self, url: str, clock: Clock, name: str) -> None:
        """Name the database; nothing is connected yet."""
        self._url = url
        self._clock = clock
        self._name = name
        self._on_arrival: Callable[[int], None] = lambda _: None
        self._on_change: Callable[[str, str], None] = lambda *_: None
        self._queues: set[int] = set()
        self._pid = 0  # of the session that listens: by it others' news is told from our own
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hear(self, on_arrival: Callable[[int], None], on_change: Callable[[str, str], None]) -> None:
        """Say whom to tell; see `Store.listen`."""
        self._on_arrival, self._on_change = on_arrival, on_change

    def arrived(self, queue_id: int) -> None:
        """Tell the other nodes that a queue has something to claim, now or sooner than they knew."""
        self._queues.add(queue_id)
        self._wake.set()

    def arrived_late(self, queue_id: int) -> None:
        """Tell this node, too: nobody has waited here for these deliveries to arrive."""
        self._on_arrival(queue_id)
        self.arrived(queue_id)

    async def tell_changes(
        self, connection: asyncpg.Connection, documents: Iterable[tuple[str, str]]
    ) -> None:
        """Tell the other nodes which documents changed: when the transaction of this connection commits."""
        notices = {self._notice_of(kind, key) for kind, key in documents}
        if notices:
            await connection.execute(_NOTIFY, _CHANNEL, sorted(notices))

    def _notice_of(self, kind: str, key: str) -> str:
        notice = orjson.dumps({"kind": kind, "key": key, "from": self._pid})
        if len(notice) > _NOTICE_BYTES_MAX:
            notice = orjson.dumps({"kind": kind, "key": "", "from": self._pid})
        return notice.decode()

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        try:
            connection = await self._connect()
        except (*LOST, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"the database cannot be reached: {describe(error)}") from error
        self._task = asyncio.create_task(self._run(connection), name="redrive-notices")

    async def close(self) -> None:
        """Send what is left to be sent, and listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _connect(self) -> asyncpg.Connection:
        """Connect and listen; the loss of the connection wakes who sends on it."""
        # News need not be on disk.
        connection = await connect(self._url, self._name, synchronous_commit="off")
        connection.add_termination_listener(lambda _: self._wake.set())
        try:
            await connection.add_listener(_CHANNEL, self._heard)
            self._pid = await session_of(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    # ---- telling -----------------------------------------------------------------------------------------

    async def _run(self, connection: asyncpg.Connection) -> None:
        """Send and hear news until cancelled; after a lost connection, anything may have changed."""
        while True:
            try:
                await self._tell_from(connection)
            except asyncio.CancelledError:
                await self._say_goodbye(connection)
                raise
            except (*LOST, asyncpg.PostgresError) as error:
                logger.warning("store.deaf error=%s: reconnecting", describe(error))
            connection.terminate()
            connection = await self._connect_again()
            logger.warning("store.hears_again: looking for missed changes")
            self._hear_anything()

    async def _tell_from(self, connection: asyncpg.Connection) -> None:
        """Send news as it comes, until the connection is lost."""
        while True:
            timer = self._clock.call_at(self._clock.now() + PING_MS, self._wake.set)
            await self._wake.wait()
            timer.cancel()
            self._wake.clear()
            await self._send(connection)
            await self._clock.sleep_until(self._clock.now() + GAP_MS)

    async def _send(self, connection: asyncpg.Connection) -> None:
        """Send what is to be announced; if that fails, it is sent with the next."""
        queues, self._queues = self._queues, set()
        try:
            await connection.execute(_NOTIFY, _CHANNEL, _notices(queues))
        except BaseException:
            self._queues |= queues
            raise

    async def _say_goodbye(self, connection: asyncpg.Connection) -> None:
        """Send what is left, if that is possible, and close the connection."""
        try:
            with contextlib.suppress(*LOST, asyncpg.PostgresError):  # then others look for themselves
                await self._send(connection)
                await connection.close()
        finally:
            connection.terminate()

    async def _connect_again(self) -> asyncpg.Connection:
        """Connect, however long it takes; meanwhile anything may change at any time."""
        doubt_task = asyncio.create_task(self._doubt(), name="redrive-doubt")
        try:
            return await self._try_to_connect()
        finally:
            doubt_task.cancel()

    async def _doubt(self) -> None:
        """Say again and again that anything may have happened: nobody else tells this node, for however long."""
        while True:
            self._hear_anything()
            await self._clock.sleep_until(self._clock.now() + DOUBT_MS)

    async def _try_to_connect(self) -> asyncpg.Connection:
        """Try to connect, ever more seldom, until it succeeds."""
        tries = 0
        while True:
            await self._clock.sleep_until(self._clock.now() + BACKOFF_MS[min(tries, len(BACKOFF_MS) - 1)])
            try:
                return await self._connect()
            except (*LOST, asyncpg.PostgresError) as error:
                tries += 1
                logger.info("store.still_deaf tries=%d error=%s", tries, describe(error))

    # ---- hearing -----------------------------------------------------------------------------------------

    def _hear_anything(self) -> None:
        self._on_arrival(0)
        self._on_change("", "")

    def _heard(self, _connection: Any, pid: int, _channel: str, payload: str) -> None:
        """Take another node's news: a changed document, or a list of queues with arrivals."""
        news = orjson.loads(payload)
        if isinstance(news, dict):
            if news.get("from") != self._pid:
                self._on_change(news["kind"], news["key"])
        elif pid != self._pid:
            for queue_id in news:
                self._on_arrival(queue_id)


def _notices(queues: set[int]) -> list[str]:
    """News of queues in as few notices as it fits in."""
    numbers = sorted(queues)
    return [
        orjson.dumps(numbers[begin : begin + _QUEUES_PER_NOTICE]).decode()
        for begin in range(0, len(numbers), _QUEUES_PER_NOTICE)
    ]

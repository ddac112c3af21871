"""The store of several nodes: stateless Redrive processes on one PostgreSQL database, or on Citus.

Everything a node knows is in the database; nodes meet in its locks. Calls of one kind go together (`call_lanes`), on a
few connections that are made again when they are lost (`connections`); what other nodes may be waiting for is told
to them (`listening`). Durability is PostgreSQL's own: an answer follows a commit.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from asyncpg import Connection
from typing_extensions import override

from redrive.engine.ports import (
    UNMEASURED,
    Change,
    Claim,
    ClaimRequest,
    ClaimResult,
    Clock,
    CommitMeter,
    Enqueued,
    Moved,
    MoveRequest,
    NewDelivery,
    NodeStore,
    Occupied,
    OrderedPublication,
    Resource,
    Settled,
    Settlement,
    refuse_repeated,
)
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from redrive.stores.postgres import arrivals, documents, inserting, inspection, moving, rows, sweeping
from redrive.stores.postgres.call_lanes import CallLanes
from redrive.stores.postgres.claiming import Claimer
from redrive.stores.postgres.connections import Connections, on_connection
from redrive.stores.postgres.listening import Notices
from redrive.stores.postgres.migrate import drop_outdated, migrate, older_node, session_name
from redrive.stores.postgres.notes import read as read_notes
from redrive.stores.postgres.notes import read_each as read_notes_of_each
from redrive.stores.postgres.outbox import Outbox
from redrive.stores.postgres.pooling import SESSIONS, examine_way
from redrive.stores.postgres.settling import ClaimSettler, EndCall, ExtendCall
from redrive.stores.postgres.telemetry import PostgresTelemetry, add_log_events
from redrive.stores.seal import UNSEALED, Seal

_IDS_RESERVED: Final = 32  # as many as one record of the sequence in the database's log stands for
_DROP_PAUSE_MS: Final = 20_000  # as long as nodes take that are exchanged
_NEW_IDS: Final = "SELECT nextval('resource_ids') FROM generate_series(1, $1)"
# A write that changes nothing: a standby refuses it, a full disk may.
_TOUCH: Final = (
    "INSERT INTO resources (kind, key, version, document) VALUES ('check', 'check', 1, '{}')"
    " ON CONFLICT (kind, key) DO UPDATE SET version = resources.version"
)
_LAST_SEQ: Final = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM delivery_seq"


class PostgresStore(PostgresTelemetry, NodeStore):
    """All that a node keeps, in a PostgreSQL database."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        node: str,
        connections: int = SESSIONS - 1,
        seal: Seal = UNSEALED,
        meter: CommitMeter = UNMEASURED,
    ) -> None:
        """Name the database; nothing is connected yet.

        Args:
            url: `postgresql://user@host:port/database`.
            clock: For the pauses between news, and between attempts to listen again or to drop what is outdated; no
                delivery depends on it.
            node: Shown in the database's list of connections.
            connections: At most so many, and one more for news.
            seal: Documents are kept as it has them.
            meter: Measures calls that go together, from the statement to the end of its transaction.
        """
        name = session_name(node)
        self.connections = Connections(url, clock, name, connections, meter)
        self._notices = Notices(url, clock, name)
        self._plain = CallLanes(self.connections, self._enqueue_plain, 2, key=self._queue_on_citus)
        self._special = CallLanes(self.connections, self._enqueue, 1, key=self._queue_on_citus)
        self._publications = CallLanes(self.connections, arrivals.publish, 1)
        self._outbox = Outbox(self.connections, clock, self._notices.arrived_late)
        self._ids: list[int] = []  # reserved for this node; the rest is lost when it ends
        self._claimer = Claimer(self.connections)
        self._settler = ClaimSettler(self.connections, self._notices)
        self._seal = seal
        self._clock = clock
        self._drop_task: asyncio.Task[None] | None = None
        self.has_older_nodes = True  # unless it is known that there are none

    @override
    async def open(self) -> None:
        """Connect, and bring the schema up to date; a store that cannot be opened leaves no connection."""
        try:
            await examine_way(self.connections)
            await self.connections.run(migrate)
            if not await self.connections.run(self._finish_upgrade):
                self._drop_task = asyncio.create_task(self._drop_outdated(), name="redrive-drop-outdated")
            if self._seal.prefix:
                await self.connections.run(lambda connection: documents.reseal(connection, self._seal))
            await self._notices.open()
            if self.connections.is_citus:
                self._outbox.open()
        except BaseException:
            await self.connections.close()
            raise

    @override
    async def close(self) -> None:
        """Finish the waiting calls, tell the last news and disconnect."""
        if self._drop_task is not None:
            self._drop_task.cancel()
            await asyncio.wait([self._drop_task])
        await self.flush()
        await self._outbox.close()
        await self.connections.close()
        await self._notices.close()

    async def _drop_outdated(self) -> None:
        """Try again as long as a node of an older version is there."""
        is_done = False
        while not is_done:
            await self._clock.sleep_until(self._clock.now() + _DROP_PAUSE_MS)
            with contextlib.suppress(StoreUnavailable):
                is_done = await self.connections.run(self._finish_upgrade)

    async def _finish_upgrade(self, connection: Connection) -> bool:
        """Do what waits until no node of an older version is there; False if that is to be tried again."""
        self.has_older_nodes = await older_node(connection) is not None
        return await drop_outdated(connection) and not self.has_older_nodes

    @property
    @override
    def is_idle(self) -> bool:
        """See `Store.is_idle`: it is not looked at in how many places a call may be."""
        return False

    @override
    async def flush(self) -> None:
        for lanes in (self._plain, self._special, self._publications, self._claimer, self._settler):
            await lanes.idle()
        await self._outbox.idle()
        await self.connections.idle()

    @override
    def deferring(self) -> contextlib.AbstractAsyncContextManager[None]:
        """See `Store.deferring`: the database has every call on disk at once."""
        return contextlib.nullcontext()

    @override
    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        self._notices.hear(arrived, changed)

    @override
    async def check(self) -> None:
        await self.connections.run(lambda connection: connection.execute(_TOUCH))

    # ---- documents --------------------------------------------------------------------------------------

    @override
    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        refuse_repeated(changes)
        sealed_changes = self._seal.closed(changes)

        async def run(connection: Connection) -> list[int]:
            async with connection.transaction():
                await rows.lock_groups(connection, arrivals.groups_of(new_deliveries))
                versions = await documents.write(connection, sealed_changes)
                if new_deliveries:
                    await arrivals.add_locked(connection, new_deliveries)
                if log_events:
                    await add_log_events(connection, log_events)
                await self._notices.tell_changes(connection, documents.changed(changes, versions))
            return versions

        versions = await self.connections.run(run)
        for new_delivery in new_deliveries:
            self._notices.arrived(new_delivery.queue_id)
        return versions

    @override
    async def get(self, kind: str, key: str) -> Resource | None:
        resource = await self.connections.run(lambda connection: documents.get(connection, kind, key))
        return None if resource is None else self._seal.opened(resource)

    @override
    async def get_each(self, keys: Sequence[tuple[str, str]]) -> list[Resource]:
        resources = await self.connections.run(lambda connection: documents.get_each(connection, keys))
        return [self._seal.opened(resource) for resource in resources]

    @override
    async def find(self, kind: str, prefix: str, after: str = "", limit: int | None = None) -> list[Resource]:
        resources = await self.connections.run(
            lambda connection: documents.find(connection, kind, prefix, after, limit)
        )
        return [self._seal.opened(resource) for resource in resources]

    @override
    async def kinds(self) -> set[str]:
        return await self.connections.run(documents.kinds)

    @override
    async def new_id(self) -> int:
        if not self._ids:
            self._ids.extend(await self.connections.run(_reserve_ids))
        return self._ids.pop()

    # ---- deliveries -------------------------------------------------------------------------------------

    def _queue_on_citus(self, new_deliveries: Sequence[NewDelivery]) -> int | None:
        """The queue of a call on Citus, which goes together with others to that queue; None: with any others."""
        if not self.connections.is_citus:
            return None
        queues = {new_delivery.queue_id for new_delivery in new_deliveries}
        return queues.pop() if len(queues) == 1 else None

    async def _enqueue_plain(
        self, connection: Connection, calls: Sequence[Sequence[NewDelivery]]
    ) -> list[list[Enqueued]]:
        if self._queue_on_citus(calls[0]) is None or sum(map(len, calls)) > inserting.QUICKER_MAX:
            return await arrivals.enqueue_plain(connection, calls)
        return await arrivals.enqueue_plain_by_values(connection, calls)

    async def _enqueue(
        self, connection: Connection, calls: Sequence[Sequence[NewDelivery]]
    ) -> list[list[Enqueued]]:
        by_values = self._queue_on_citus(calls[0]) is not None
        return await arrivals.enqueue(connection, calls, by_values=by_values)

    @override
    async def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
        """See `MessageStore.enqueue`; on Citus, plain deliveries of several queues enter by the outbox."""
        is_plain = arrivals.are_plain(new_deliveries)
        if is_plain and self.connections.is_citus and self._queue_on_citus(new_deliveries) is None:
            return await self._outbox.add(new_deliveries)
        lanes = self._plain if is_plain else self._special
        answers = await lanes.submit(new_deliveries)
        for new_delivery in new_deliveries:
            self._notices.arrived(new_delivery.queue_id)
        return answers

    @override
    async def publish(self, publications: Sequence[OrderedPublication]) -> list[Enqueued]:
        answers = await self._publications.submit(publications)
        for publication in publications:
            for new_delivery in publication.new_deliveries:
                self._notices.arrived(new_delivery.queue_id)
        return answers

    @override
    async def claim(self, request: ClaimRequest) -> ClaimResult:
        claimed = await self._claimer.claim(request)
        if claimed.dead_lettered and request.dead_letters_to is not None:
            self._notices.arrived(request.dead_letters_to.queue_id)
            if request.dead_letters_to.copies is not None:
                self._notices.arrived(request.dead_letters_to.copies.queue_id)
        return claimed

    @override
    async def settle(
        self,
        queue_id: int,
        settlements: Sequence[Settlement],
        now: int,
        *,
        ordered: bool,
        strict_lease: bool = False,
    ) -> list[Settled]:
        strict = ordered or strict_lease
        return await self._settler.settle(EndCall(queue_id, settlements, now, ordered, strict))

    @override
    async def extend(
        self, queue_id: int, claims: Sequence[Claim], now: int, *, ordered: bool, strict_lease: bool = False
    ) -> list[Settled]:
        strict = ordered or strict_lease
        return await self._settler.extend(ExtendCall(queue_id, claims, now, ordered, strict))

    @override
    async def move(self, request: MoveRequest) -> Moved:
        moved = await self.connections.run(lambda connection: moving.move(connection, request))
        for queue_id in moved.per_queue:
            self._notices.arrived(queue_id)
        return moved

    peek = on_connection(inspection.peek)
    look = on_connection(inspection.look)
    first_of_each = on_connection(inspection.first_of_each)
    causes = on_connection(inspection.causes)
    locate = on_connection(inspection.locate)
    notes = on_connection(read_notes)
    notes_of_each = on_connection(read_notes_of_each)
    count = on_connection(inspection.count)
    count_each = on_connection(inspection.count_each)

    @override
    async def oldest(self, queue_id: int) -> Delivery | None:
        first = await self.peek(queue_id, 1)
        return first[0] if first else None

    @override
    async def last_seq(self) -> int:

        async def run(connection: Connection) -> int:
            return int(await connection.fetchval(_LAST_SEQ))

        return await self.connections.run(run)

    purge = on_connection(sweeping.purge)

    @override
    async def delay(self, queue_id: int, delay_ms: int, after_seq: int, limit: int) -> int | None:
        last = await self.connections.run(
            lambda connection: arrivals.delay(connection, queue_id, delay_ms, after_seq, limit)
        )
        self._notices.arrived(
            queue_id
        )  # with a shorter delay, receivers on other nodes may have something now
        return last

    @override
    async def occupied(self, after: int, limit: int) -> list[Occupied]:
        return await self.connections.run(
            lambda connection: inspection.occupied(
                connection, after, limit, distributed=self.connections.is_citus
            )
        )

    sweep = on_connection(sweeping.sweep)


async def _reserve_ids(connection: Connection) -> list[int]:
    return [number for (number,) in await connection.fetch(_NEW_IDS, _IDS_RESERVED)][::-1]

"""Publications to several queues on Citus: on the coordinator's disk first, in their queues soon after.

A transaction over several nodes is committed in two phases, and each waits for all of the nodes and their disks: 90 ms on
a busy machine, for one publication or for a hundred. So a publication is acknowledged when the coordinator alone has it,
and its deliveries enter their queues up to 2,048 at a time. One statement takes them out of the outbox and puts them into
the queues, in a transaction over all nodes that are concerned, so each enters once.

    publish ──► outbox (one commit, then the answer) ──► queues (two phases, many publications at once)

A node moves what it has added, and looks every second for what another left that ended in between.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from asyncpg import Connection

from redrive.engine.ports import Clock, Enqueued, NewDelivery
from redrive.model.errors import StoreUnavailable
from redrive.stores.postgres import arrivals
from redrive.stores.postgres.call_lanes import CallLanes
from redrive.stores.postgres.connections import Connections

logger = logging.getLogger(__name__)

LOOK_MS: Final = 1000
_ROWS_MAX: Final = 2048  # moved by one statement: 0.1 ms for each, beside 80 ms for the two phases
# Beyond so many deliveries of this node a publication waits for room: 20 statements, some seconds.
_WAITING_MAX: Final = 20 * _ROWS_MAX

_COLUMNS: Final = "queue_id, available_at, enqueued_at, message_id, deduplication_id, headers, body, sealed"
_ADD: Final = (
    f"INSERT INTO outbox (seq, {_COLUMNS}) SELECT nextval('delivery_seq'), {_COLUMNS}"
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::bytea[], $7::text[],"
    f" $8::bytea[]) AS new ({_COLUMNS}) RETURNING seq"
)
# Of queue $2, or of all but those in $3.
_MOVE: Final = f"""
    WITH leaving AS (
        DELETE FROM outbox WHERE seq = ANY (ARRAY(
            SELECT seq FROM outbox WHERE ($2::bigint IS NULL OR queue_id = $2) AND queue_id <> ALL ($3::bigint[])
            ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
        )) RETURNING *
    ) {arrivals.DELIVERIES_INTO} SELECT queue_id, seq, available_at, 0, enqueued_at, enqueued_at, message_id,
        deduplication_id, headers, body, sealed, 1 FROM leaving
"""
# As rows of `redrive.stores.contents.DELIVERIES`: whoever counts these counts what has not entered its queue, too.
AS_DELIVERIES: Final = (
    "SELECT queue_id, seq, available_at, 0, NULL, enqueued_at, enqueued_at, NULL, message_id, NULL, deduplication_id,"
    " NULL, headers, body, NULL, sealed, 1 FROM outbox"
)
_QUEUES: Final = "SELECT DISTINCT queue_id FROM (SELECT queue_id FROM outbox ORDER BY seq LIMIT $1) AS oldest"


class Outbox:
    """Publications that this node has acknowledged and not moved yet, and those that others left."""

    def __init__(self, connections: Connections, clock: Clock, entered: Callable[[int], None]) -> None:
        """Nothing is moved before `open`; `entered` is told of each queue that has got deliveries."""
        self._connections = connections
        self._clock = clock
        self._entered = entered
        self._lanes: CallLanes[Sequence[NewDelivery], list[Enqueued]] = CallLanes(connections, _add, 2)
        self._queues: set[int] = set()  # whose deliveries are to be moved by the next statement
        self._stuck: dict[int, None] = {}  # queues that could not be moved to; the first is tried first
        self._waiting = 0  # deliveries that this node has added and nobody moved, as far as it knows
        self._look_at = clock.now()
        self._is_failing = False
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()  # a step has ended: there may be room
        self._all_moved = asyncio.Event()  # nothing is left that the next step could move
        self._all_moved.set()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to move, first what is there from before."""
        self._all_moved.clear()
        self._wake.set()
        self._task = asyncio.create_task(self._run(), name="redrive-outbox")

    async def close(self) -> None:
        """Move no more; what is left is for other nodes, or for this one when it starts again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def add(self, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
        """Add deliveries, which enter their queues soon after.

        Raises:
            StoreUnavailable: They cannot be written, or too many wait for a node that does not answer.
        """
        await self._room()
        answers = await self._lanes.submit(new_deliveries)
        self._waiting += len(new_deliveries)
        self._queues.update(new_delivery.queue_id for new_delivery in new_deliveries)
        self._all_moved.clear()
        self._wake.set()
        return answers

    async def idle(self) -> None:
        """Return when all that was added has entered its queue, or could not."""
        await self._lanes.idle()
        await self._all_moved.wait()

    async def _room(self) -> None:
        """Wait until fewer deliveries than `_WAITING_MAX` wait to be moved."""
        while self._waiting >= _WAITING_MAX:
            if self._is_failing:
                raise StoreUnavailable(f"{self._waiting} deliveries wait for nodes of the database's cluster")
            self._moved.clear()
            await self._moved.wait()

    # ---- moving -----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Move whenever something was added, and look every second for what other nodes left."""
        while True:
            timer = self._clock.call_at(self._look_at, self._wake.set)
            await self._wake.wait()
            timer.cancel()
            self._wake.clear()
            await self._step()

    async def _step(self) -> None:
        """Look for what is there if that is due, and move once."""
        try:
            if self._clock.now() >= self._look_at:
                self._look_at = self._clock.now() + LOOK_MS
                await self._retry()
                self._queues.update(await self._connections.run(_queues_of_oldest))
            queues, self._queues = self._queues, set()
            if queues:
                await self._move(queues)
        except StoreUnavailable:  # which `connections` has told of: the next look tries again
            self._is_failing = True
        except Exception:
            logger.exception("store.outbox_failed: tried again in a second")
            self._is_failing = True
        else:
            self._is_failing = bool(self._stuck)
            if self._queues:
                self._wake.set()
            elif not self._stuck:
                self._waiting = 0
        if self._is_failing or not self._queues:  # nothing is left that could be moved now
            self._all_moved.set()
        self._moved.set()

    async def _retry(self) -> None:
        """Try the queues that could not be moved to, up to the first that fails again."""
        while self._stuck and await self._move_one(next(iter(self._stuck))):
            pass

    async def _move(self, queues: set[int]) -> None:
        """Move the oldest deliveries, those of these queues among them."""
        try:
            number = await self._move_rows(None, list(self._stuck))
        except StoreUnavailable:
            for queue_id in queues:
                await self._move_one(queue_id)
            return
        if number == _ROWS_MAX:
            self._queues |= queues
        for queue_id in queues:
            self._entered(queue_id)

    async def _move_one(self, queue_id: int) -> bool:
        """Move the deliveries of one queue; False if that fails."""
        self._stuck.pop(queue_id, None)
        try:
            while await self._move_rows(queue_id, ()) == _ROWS_MAX:
                pass
        except StoreUnavailable:
            self._stuck[queue_id] = None
            return False
        self._entered(queue_id)
        return True

    async def _move_rows(self, queue_id: int | None, excluded_queues: Sequence[int]) -> int:
        """Move up to `_ROWS_MAX` deliveries to one queue, or to all but these (None); how many were moved."""
        status: str = await self._connections.run(
            lambda connection: connection.execute(_MOVE, _ROWS_MAX, queue_id, excluded_queues)
        )
        number = int(status.rpartition(" ")[2])
        self._waiting = max(0, self._waiting - number)
        return number


async def _add(connection: Connection, calls: Sequence[Sequence[NewDelivery]]) -> list[list[Enqueued]]:
    return await arrivals.enqueue_plain(connection, calls, _ADD)


async def _queues_of_oldest(connection: Connection) -> list[int]:
    return [queue_id for (queue_id,) in await connection.fetch(_QUEUES, _ROWS_MAX)]

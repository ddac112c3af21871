"""Dead letters go on to another queue: back as new messages, or aside as they are."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from asyncpg import Connection

from redrive.engine.ports import Moved, MovedTo, MoveRequest
from redrive.model.claiming import Placed
from redrive.model.delivery import Delivery, LinePosition
from redrive.stores.postgres import arrivals, rows
from redrive.stores.postgres.access_paths import each, in_failures

# $4: only those of these origins; NULL: all.
_LINE: Final = rows.front(
    "place, group_id, origin",
    "available_at <= $2 AND seq <= $3 AND ($4::bigint[] IS NULL OR origin = ANY($4::bigint[]))",
    "$5",
)
_CHOSEN: Final = (
    "SELECT found.seq, found.place, found.group_id, found.origin FROM unnest($4::bigint[]) AS one (seq)"
    f" {each('seq, place, group_id, origin, available_at')}"
    " WHERE found.available_at <= $2 AND found.seq <= $3 LIMIT $5"
)
_OF_GROUP: Final = (
    "SELECT seq, place, group_id, origin FROM deliveries"
    f" WHERE queue_id = $1 AND {in_failures('$4', '$5')}"
    " AND available_at <= $2 AND seq <= $3 AND seq <> ALL ($6::bigint[])"
    " ORDER BY origin, failure, seq LIMIT $7"
)


async def move(connection: Connection, request: MoveRequest) -> Moved:
    """Send waiting deliveries of a queue onwards, oldest first; see `MoveRequest`."""
    async with rows.GroupLocks(connection) as locks:
        return await _MovePass(connection, request, locks).move()


class _MovePass:
    """One batch on its way."""

    def __init__(self, connection: Connection, request: MoveRequest, locks: rows.GroupLocks) -> None:
        self._connection = connection
        self._request = request
        self._origins = None if request.destination is not None else list(request.origins)
        self._ids = iter(request.message_ids)
        self._per_queue: Counter[int] = Counter()
        self._became: dict[int, MovedTo] = {}  # by the number that each had in its old queue
        self._locks = locks

    async def move(self) -> Moved:
        """Move batch after batch, up to the limit; `has_more` if the line was not at its end."""
        request = self._request
        while room := request.limit - self._per_queue.total():
            line = await self._line(room)
            free = await self._lock(line)
            if request.chooses:
                candidates = await rows.waiting(self._connection, request.queue_id, free, request.now)
                deliveries = sorted(candidates, key=lambda placed: placed[0].seq)
            else:
                line_part = await rows.due(self._connection, request.queue_id, free, request.now)
                deliveries = await self._with_followers(line_part, room)
            await self._send_on(deliveries)
            if not deliveries:
                return Moved(self._per_queue, has_more=bool(line), became=self._became)
        return Moved(self._per_queue, has_more=True, became=self._became)

    async def _line(self, room: int) -> list[Any]:
        """The deliveries that may go next; those whose origin is unknown stay, and hold up only their group."""
        request = self._request
        bounds = (request.queue_id, request.now, request.seq_max)
        if request.seqs is not None:
            records = await self._connection.fetch(_CHOSEN, *bounds, list(request.seqs), room)
            return [record for record in records if request.goes_home(record["origin"])]
        if request.cause is None:
            candidates: list[Any] = await self._connection.fetch(_LINE, *bounds, self._origins, room)
            return candidates
        if not request.goes_home(request.cause.origin):
            return []
        exceptions = list(request.excepted)
        of_group: list[Any] = await self._connection.fetch(
            _OF_GROUP, *bounds, *request.cause, exceptions, room
        )
        return of_group

    async def _lock(self, line: Sequence[Any]) -> list[int]:
        """Lock the groups here and where they go; the places of those deliveries that may be moved now."""
        groups_by_seq: dict[int, rows.Groups] = {}
        for record in line:
            group_id, target = record["group_id"], self._request.target(record["origin"])
            queue_ids = () if group_id is None else (self._request.queue_id, target.queue_id)
            groups_by_seq[record["seq"]] = {(queue_id, group_id) for queue_id in queue_ids}
        return await self._locks.lock(groups_by_seq)

    async def _with_followers(self, line: Sequence[Placed], room: int) -> list[Placed]:
        """The deliveries of a line; behind each that heads its group, those of the group that may go with it."""
        request = self._request
        names = [delivery.group_id for delivery, turn in line if turn == LinePosition.HEAD]
        behind: dict[str | None, list[Delivery]] = {}
        if names:
            for record in await self._connection.fetch(rows.FOLLOWERS, request.queue_id, names, room, room):
                follower = rows.delivery_of(record)
                behind.setdefault(follower.group_id, []).append(follower)
        deliveries: list[Placed] = []
        for delivery, turn in line:
            deliveries.append((delivery, turn))
            if turn == LinePosition.HEAD:
                followers = self._next(behind.get(delivery.group_id, ()), delivery)
                deliveries += [(follower, LinePosition.BEHIND) for follower in followers]
        return deliveries[:room]

    def _next(self, behind: Sequence[Delivery], head: Delivery) -> list[Delivery]:
        """The followers up to the first that stays, or that would go to a queue whose group is not locked."""
        request = self._request
        for index, delivery in enumerate(behind):
            is_locked = request.destination is not None or delivery.origin == head.origin
            if not is_locked or delivery.available_at > request.now or delivery.seq > request.seq_max:
                return list(behind[:index])
        return list(behind)

    async def _send_on(self, deliveries: Sequence[Placed]) -> None:
        """Remove these deliveries, give their groups' turns to the next, and let them enter where they go."""
        request, connection = self._request, self._connection
        await connection.execute(rows.REMOVE, request.queue_id, [delivery.seq for delivery, _ in deliveries])
        groups_left = {
            delivery.group_id
            for delivery, turn in deliveries
            if turn == LinePosition.HEAD and delivery.group_id is not None
        }
        await rows.pass_turns(connection, request.queue_id, groups_left)
        seqs = await rows.next_seqs(connection, len(deliveries))
        entered_deliveries = []
        for (delivery, _), seq in zip(deliveries, seqs, strict=True):
            entered = request.as_moved(delivery, seq, next(self._ids))
            self._per_queue[entered.queue_id] += 1
            self._became[delivery.seq] = MovedTo(entered.queue_id, seq, entered.message_id)
            entered_deliveries.append(entered)
        await arrivals.admit(connection, entered_deliveries)

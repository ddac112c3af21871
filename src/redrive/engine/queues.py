"""Queues come and go: their names, their numbers and their attributes."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from redrive.engine.directory import Directory, Kind
from redrive.engine.ports import Clock, Store, Target
from redrive.model.errors import AlreadyExists, Conflict, NotFound, Refused
from redrive.model.queue import DAY_MS, Queue, ResourceName

QUEUE: Kind[Queue] = Kind("queue", Queue.to_document, Queue.from_document)

# A deleted queue's number may stand on its dead letters as their origin for as long as a message can be kept.
TOMBSTONE_MS = 14 * DAY_MS


@dataclass(frozen=True, slots=True)
class Number:
    """Which name a queue's number stands for, and whether the queue was deleted (ms), and emptied since."""

    id: int
    name: ResourceName
    deleted_at: int | None = None
    emptied: bool = False


def _write_number(number: Number) -> dict[str, Any]:
    return {
        "id": number.id,
        "name": list(number.name),
        "deleted_at": number.deleted_at,
        "emptied": number.emptied,
    }


NUMBER: Kind[Number] = Kind(
    "queue_number",
    _write_number,
    lambda d: Number(d["id"], ResourceName(*d["name"]), d["deleted_at"], d["emptied"]),
)
# Deleted queues once more by name, which may have been used for several in turn.
GRAVE: Kind[Number] = Kind("deleted_queue", NUMBER.write, NUMBER.read)


class Queues:
    """The queues of all accounts and regions."""

    def __init__(self, store: Store, directory: Directory, clock: Clock) -> None:
        """Keep queues in this directory."""
        self._store = store
        self._directory = directory
        self._clock = clock

    @property
    def changes(self) -> int:
        """A number that moves with every change of a queue, or of a topic or subscription."""
        return self._directory.changes

    def known(self, name: ResourceName) -> Queue | None:
        """The queue if this node remembers it, without waiting."""
        return self._directory.known(QUEUE, name.key)

    async def get(self, name: ResourceName) -> Queue | None:
        """The queue of that name."""
        return await self._directory.get(QUEUE, name.key)

    async def find(self, beginning: ResourceName, after: str = "", limit: int | None = None) -> list[Queue]:
        """Queues of an account's region whose name begins so, by name, beginning after the key `after`."""
        return await self._directory.find(QUEUE, beginning.key, after, limit)

    async def all_after(self, key: str, limit: int) -> list[Queue]:
        """Queues of anybody, by key."""
        return await self._directory.find(QUEUE, "", key, limit)

    async def create(self, wanted: Queue) -> Queue:
        """Make a queue; `wanted.id` and its times are given here.

        Raises:
            AlreadyExists: There is one of that name.
        """
        now = self._clock.now()
        queue = replace(wanted, id=await self._store.new_id(), created_at=now, modified_at=now)
        await self._directory.create(NUMBER, _number_key(queue.id), Number(queue.id, queue.name))
        try:
            await self._directory.create(QUEUE, queue.name.key, queue)
        except Conflict:
            await self._directory.remove(NUMBER, _number_key(queue.id))
            raise AlreadyExists(queue.name.key) from None
        return queue

    async def update(self, name: ResourceName, change: Callable[[Queue], Queue]) -> Queue:
        """Change a queue's attributes.

        Raises:
            NotFound: There is none of that name.
        """
        now = self._clock.now()

        def changed(queue: Queue) -> Queue:
            other = change(queue)
            return queue if other == queue else replace(other, modified_at=now)

        return await self._directory.update(QUEUE, name.key, changed)

    async def label(
        self, name: ResourceName, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:
        """Change a queue's tags, which is no change of the queue itself."""
        await self._directory.update(
            QUEUE, name.key, lambda queue: replace(queue, tags=dict(change(queue.tags)))
        )

    async def note_purge(self, queue: Queue, rest_ms: int = 0) -> None:
        """Remember that the queue was emptied now.

        Raises:
            Refused: It was emptied less than `rest_ms` ago.
        """
        now = self._clock.now()

        def purged(current: Queue) -> Queue:
            if rest_ms and now < current.purged_at + rest_ms:
                raise Refused(f"{queue.name.key} was purged at {current.purged_at}")
            return replace(current, purged_at=now)

        await self._directory.update(QUEUE, queue.name.key, purged)

    async def sources_of(self, target: ResourceName) -> list[Queue]:
        """The queues whose dead letters go to `target`, by name; they are all in its account and region."""
        queues = await self.find(target._replace(name=""))
        return [
            queue for queue in queues if queue.dead_letter is not None and queue.dead_letter.queue == target
        ]

    async def delete(self, queue: Queue) -> bool:
        """Take a queue away at once; its messages are removed by the sweep, which also ends what was cut short."""
        grave = await self.bury(queue.id, queue.name)
        await self._directory.update(NUMBER, _number_key(queue.id), lambda _: grave)
        return await self._directory.remove(QUEUE, queue.name.key)

    async def bury(self, queue_id: int, name: ResourceName) -> Number:
        """Let the sweep empty what has that number, a queue or a subscription's backlog; twice is once."""
        grave = Number(queue_id, name, deleted_at=self._clock.now())
        with contextlib.suppress(Conflict):
            await self._directory.create(GRAVE, _grave_key(grave), grave)
        return grave

    async def finish_deletion(self, grave: Number) -> None:
        """Take the queue away if whoever deleted it did not come so far.

        Else it could be neither used for long, since it is emptied, nor deleted.
        """
        stored = await self._store.get(QUEUE.name, grave.name.key)
        if stored is not None and QUEUE.read(stored.document).id == grave.id:
            await self._directory.remove(QUEUE, grave.name.key)

    async def deleted_at(self, name: ResourceName) -> int | None:
        """When a queue of that name was deleted last (ms), if that is remembered."""
        graves = await self._directory.find(GRAVE, f"{name.key}/")
        return graves[-1].deleted_at if graves else None

    async def name_of(self, queue_id: int) -> ResourceName | None:
        """The name a queue's number stands or stood for."""
        number = await self._directory.get(NUMBER, _number_key(queue_id))
        return None if number is None else number.name

    async def dead_letters_to(self, queue: Queue) -> Target | None:
        """Where the queue's dead letters go, if it has such a place and it stands."""
        if queue.dead_letter is None:
            return None
        target = self.known(queue.dead_letter.queue) or await self.get(queue.dead_letter.queue)
        return None if target is None else Target(target.id, target.ordered, queue.copies)

    async def graves(self) -> list[Number]:
        """Deleted queues that are remembered."""
        return await self._directory.find(GRAVE, "")

    async def emptied(self, grave: Number) -> None:
        """Remember that nothing of a deleted queue is left, unless it is forgotten by now."""
        with contextlib.suppress(NotFound):
            await self._directory.update(
                GRAVE, _grave_key(grave), lambda stored: replace(stored, emptied=True)
            )

    async def forget(self, grave: Number) -> None:
        """Forget a deleted queue for good."""
        await self._directory.remove(NUMBER, _number_key(grave.id))
        await self._directory.remove(GRAVE, _grave_key(grave))


def _grave_key(grave: Number) -> str:
    return f"{grave.name.key}/{_number_key(grave.id)}"


def _number_key(queue_id: int) -> str:
    return f"{queue_id:020d}"

"""Queues come and go: their names, their numbers and their attributes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.kinds import (
    DUE,
    QUEUE,
    QUEUE_RECORD,
    SERVING,
    TOMBSTONE,
    QueueRecord,
    due_of,
    tombstone_key,
)
from redrive.engine.ports import Clock, DocumentStore, MoveTarget, Removal
from redrive.model.errors import AlreadyExists, Refused
from redrive.model.names import ResourceName, number_key
from redrive.model.queue import Queue

_PER_TURN: Final = 1_000  # of the queues that are looked through


class Queues:
    """The queues of all accounts and regions.

    Verbs that end with `_in` change what a draft holds; the others write at once.
    """

    def __init__(self, store: DocumentStore, directory: Directory, clock: Clock) -> None:
        self._store = store
        self._directory = directory
        self._clock = clock

    @property
    def changes(self) -> int:
        """A number that moves with every change of a queue, or of a topic or subscription."""
        return self._directory.changes

    # ---- reading ----------------------------------------------------------------------------------------

    def known(self, name: ResourceName) -> Queue | None:
        """The queue if this node remembers it, without waiting."""
        return self._directory.known(QUEUE, name.key)

    async def get(self, name: ResourceName) -> Queue | None:
        """The queue of that name."""
        return await self._directory.get(QUEUE, name.key)

    async def get_stored(self, name: ResourceName) -> Queue | None:
        """As `get`, from the store: an answer "it exists already" must not rest on this node's memory."""
        return await self._directory.get_stored(QUEUE, name.key)

    async def find(self, beginning: ResourceName, after: str = "", limit: int | None = None) -> list[Queue]:
        """Queues of an account's region whose name begins so, by name, beginning after the key `after`."""
        return await self._directory.find(QUEUE, beginning.key, after, limit)

    async def get_each(self, names: Sequence[ResourceName]) -> list[Queue]:
        """The queues of these names that exist, in the order of the names: one read for those not remembered."""
        values = await self._directory.get_each([(QUEUE, name.key) for name in names])
        queues = (values.get((QUEUE.name, name.key)) for name in names)
        return [queue for queue in queues if queue is not None]

    async def all_after(self, key: str, limit: int) -> list[Queue]:
        """Queues of all accounts, by key."""
        return await self._directory.find(QUEUE, "", key, limit)

    async def sources_of(self, target: ResourceName) -> list[Queue]:
        """The queues whose dead letters go to `target`, by name; they are all in its account and region."""
        queues = await self.with_dead_letters(target._replace(name=""))
        return [queue for queue in queues if queue.dead_letter and queue.dead_letter.queue == target]

    async def with_dead_letters(self, beginning: ResourceName) -> list[Queue]:
        """The queues of an account's region whose dead letters go to another, by name.

        All are looked through, a thousand in a turn of the event loop: 100,000 took 1.6 s.
        """
        queues: list[Queue] = []
        after = ""
        while page := await self.find(beginning, after, _PER_TURN):
            queues += [queue for queue in page if queue.dead_letter is not None]
            after = page[-1].name.key
        return queues

    async def of_number(self, queue_id: int) -> Queue | None:
        """The queue of that number, if it stands."""
        name = await self.name_of(queue_id)
        queue = None if name is None else await self.get(name)
        return None if queue is None or queue.id != queue_id else queue

    async def name_of(self, queue_id: int) -> ResourceName | None:
        """The name a queue's number stands or stood for."""
        number = await self._directory.get(QUEUE_RECORD, number_key(queue_id))
        return None if number is None else number.name

    async def dead_letters_to(self, queue: Queue) -> MoveTarget | None:
        """The target of the queue's dead letters, if it has one and that queue is there."""
        if queue.dead_letter is None:
            return None
        target = self.known(queue.dead_letter.queue) or await self.get(queue.dead_letter.queue)
        return None if target is None else MoveTarget(target.id, target.ordered, queue.copies)

    # ---- writing ----------------------------------------------------------------------------------------

    async def create(self, new_queue: Queue) -> Queue:
        """Make a queue, whose id and times are assigned here; raises AlreadyExists if there is one of that name."""
        return await self._directory.transact(lambda draft: self.create_in(draft, new_queue))

    async def create_in(self, draft: Draft, new_queue: Queue) -> Queue:
        """Create a queue in a draft (see `create`); one that serves a subscription is deleted with it."""
        if await draft.get(QUEUE, new_queue.name.key) is not None:
            raise AlreadyExists(new_queue.name.key)
        now = self._clock.now()
        queue = replace(new_queue, id=await self._store.new_id(), created_at=now, modified_at=now)
        draft.put(QUEUE, queue.name.key, queue)
        draft.put(QUEUE_RECORD, number_key(queue.id), QueueRecord(queue.id, queue.name))
        if queue.serves:
            await draft.overwrite(SERVING, queue.serves, queue.name.key)
        return queue

    async def get_in(self, draft: Draft, name: ResourceName) -> Queue | None:
        """See `get`: it must still stand, or still be absent, when the draft is written."""
        return await draft.get(QUEUE, name.key)

    async def put_in(self, draft: Draft, new_queue: Queue) -> Queue:
        """Make a queue, or change the one of its name to what is wanted, which keeps its messages and its tags."""
        current = await self.get_in(draft, new_queue.name)
        if current is None:
            return await self.create_in(draft, new_queue)
        replacement = replace(
            new_queue,
            id=current.id,
            created_at=current.created_at,
            modified_at=current.modified_at,
            purged_at=current.purged_at,
            tags=current.tags,
        )
        now = self._clock.now()
        return draft.change(
            QUEUE,
            new_queue.name.key,
            current,
            lambda queue: queue if queue == replacement else replace(replacement, modified_at=now),
        )

    async def update(self, name: ResourceName, change: Callable[[Queue], Queue]) -> Queue:
        """Change a queue's attributes; raises NotFound if there is none of that name."""
        now = self._clock.now()

        def change_and_stamp(queue: Queue) -> Queue:
            new_queue = change(queue)
            return queue if new_queue == queue else replace(new_queue, modified_at=now)

        return await self._directory.update(QUEUE, name.key, change_and_stamp)

    async def label(
        self, name: ResourceName, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:
        """Change a queue's tags, which is not a change of the queue itself."""
        await self._directory.update(
            QUEUE, name.key, lambda queue: replace(queue, tags=dict(change(queue.tags)))
        )

    async def note_purge(self, queue: Queue, rest_ms: int = 0) -> None:
        """Remember that the queue was emptied now; raises Refused if it was less than `rest_ms` ago."""
        now = self._clock.now()

        def stamp_purge(current: Queue) -> Queue:
            if rest_ms and now < current.purged_at + rest_ms:
                raise Refused(f"{queue.name.key} was purged at {current.purged_at}")
            return replace(current, purged_at=now)

        await self._directory.update(QUEUE, queue.name.key, stamp_purge)

    # ---- the end of a queue -----------------------------------------------------------------------------

    async def delete(self, queue: Queue, *, frees_name: bool = False) -> bool:
        """Delete a queue at once, and have the sweep remove its messages; whether it was there.

        With `frees_name` another queue may have its name at once.
        """
        return await self._directory.transact(
            lambda draft: self.delete_in(draft, queue, frees_name=frees_name)
        )

    async def delete_in(self, draft: Draft, queue: Queue, *, frees_name: bool = False) -> bool:
        """Delete a queue in a draft; False if it does not exist (any more). See `delete`."""
        current = await draft.get(QUEUE, queue.name.key)
        if current is None or current.id != queue.id:
            return False
        draft.remove(QUEUE, queue.name.key)
        if queue.serves:
            draft.remove(SERVING, queue.serves)
        target = None if current.dead_letter is None else current.dead_letter.queue
        tombstone = self.mark_deleted(draft, queue.id, queue.name, target, frees_name=frees_name)
        await draft.overwrite(QUEUE_RECORD, number_key(queue.id), tombstone)
        return True

    def mark_deleted(
        self,
        draft: Draft,
        queue_id: int,
        name: ResourceName,
        dead_letters_to: ResourceName | None = None,
        *,
        frees_name: bool = False,
    ) -> QueueRecord:
        """Let the sweep empty what has that number: a queue, a subscription's backlog, an archive."""
        now = self._clock.now()
        tombstone = QueueRecord(
            queue_id, name, deleted_at=now, dead_letters_to=dead_letters_to, is_name_free=frees_name
        )
        draft.put(TOMBSTONE, tombstone_key(tombstone), tombstone)
        draft.put(DUE, due_of(tombstone).due_key, due_of(tombstone))
        return tombstone

    async def deleted_at(self, name: ResourceName) -> int | None:
        """The moment (ms) a queue of that name was deleted last, if that is remembered and keeps the name from others."""
        tombstones = await self._directory.find(TOMBSTONE, f"{name.key}/")
        return tombstones[-1].deleted_at if tombstones and not tombstones[-1].is_name_free else None

    async def tombstone(self, key: str) -> QueueRecord | None:
        """A deleted queue that is remembered, by its key."""
        return await self._directory.get(TOMBSTONE, key)

    async def tombstones(self) -> list[QueueRecord]:
        """Deleted queues that are remembered."""
        return await self._directory.find(TOMBSTONE, "")

    async def note_emptied(self, tombstone: QueueRecord) -> None:
        """Note that a deleted queue is empty now; its number is forgotten after `TOMBSTONE_MS`."""

        async def decide(draft: Draft) -> None:
            stored = await draft.get(TOMBSTONE, tombstone_key(tombstone))
            if stored is None or stored.emptied:
                return
            emptied_tombstone = replace(stored, emptied=True)
            draft.put(TOMBSTONE, tombstone_key(tombstone), emptied_tombstone)
            draft.remove(DUE, due_of(stored).due_key)
            draft.put(DUE, due_of(emptied_tombstone).due_key, due_of(emptied_tombstone))

        await self._directory.transact(decide)

    async def forget(self, tombstone: QueueRecord) -> None:
        """Forget a deleted queue for good."""
        await self._directory.write(
            [
                Removal(QUEUE_RECORD, number_key(tombstone.id)),
                Removal(TOMBSTONE, tombstone_key(tombstone)),
                Removal(DUE, due_of(tombstone).due_key),
            ]
        )

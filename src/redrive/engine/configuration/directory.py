"""The directory: small versioned documents, read from memory and written through.

Every node remembers what it has read. A change made here replaces the memory at once; a change made on another
node is heard of through the store and makes this one forget, so the next reader asks the store. What is not there
is never remembered: a queue made on one node can be used on another at once.

What is remembered may be out of date for a moment: for seconds, while the connection that hears of changes is broken.
So whoever decides by it changes documents in a draft: that is written only if all that was read for it still stands,
and made again where it does not. A decision that writes nothing, such as "it is there already", is checked likewise:
else a queue that another node has deleted would be created with success and not be there.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from redrive.engine.configuration.draft import Draft, Key
from redrive.engine.configuration.kinds import Due, QueueRecord
from redrive.engine.ports import (
    Change,
    Creation,
    DocumentKind,
    DocumentStore,
    NewDelivery,
    Put,
    Removal,
    Remove,
    RequireNone,
    Unremembered,
)
from redrive.model.errors import Conflict, NotFound, StoreUnavailable
from redrive.model.log import LogEvent

T = TypeVar("T")
__all__ = ["Directory", "DocumentKind", "Draft"]

_REMOVED_AT_ONCE = 100  # documents removed in one transaction when a whole kind goes


class Directory:
    """Typed, cached access to a store's documents."""

    def __init__(self, store: DocumentStore, first_version: Callable[[], int]) -> None:
        """Read from and write to this store; new documents begin at these versions (`Runtime.first_version`)."""
        self._store = store
        self.first_version = first_version
        self._memory: dict[Key, tuple[int, Any]] = {}  # version and value
        self._changes = 0  # noted so far: tells whether one came during a read
        self._forget_followers: list[Callable[[str, str], None]] = []
        self._write_followers: list[Callable[[str, str, object | None], None]] = []

    def on_change_elsewhere(self, follower: Callable[[str, str], None]) -> None:
        """Tell a follower, who remembers more than documents, of every change of another node's."""
        self._forget_followers.append(follower)

    def on_write(self, follower: Callable[[str, str, object | None], None]) -> None:
        """Tell a follower of every document that this node changed, with its value; None: it was removed."""
        self._write_followers.append(follower)

    def forget(self, kind: str, key: str) -> None:
        """Another node changed this document (an empty key: any of the kind, or all where both are empty)."""
        self._drop(kind, key)
        for follower in self._forget_followers:
            follower(kind, key)

    def _drop(self, kind: str, key: str) -> None:
        """Forget a document (an empty key: all of the kind, or of every kind where both are empty)."""
        self._changes += 1
        if key:
            self._memory.pop((kind, key), None)
        elif kind:
            self._memory = {at: versioned for at, versioned in self._memory.items() if at[0] != kind}
        else:
            self._memory.clear()

    def _remember(self, key: Key, versioned: tuple[int, Any]) -> None:
        """Remember a value, unless only the sweep will look at it again, in up to 14 days, or its kind has too many."""
        _, value = versioned
        is_tombstone = isinstance(value, QueueRecord) and bool(value.deleted_at)
        if not is_tombstone and not isinstance(value, Due | Unremembered):
            self._memory[key] = versioned

    @property
    def changes(self) -> int:
        """A number that moves with every document that changes, as far as this node has heard."""
        return self._changes

    # ---- reading ----------------------------------------------------------------------------------------

    def known(self, kind: DocumentKind[T], key: str) -> T | None:
        """The value if this node remembers it: the hot path's way, without waiting."""
        versioned = self._memory.get((kind.name, key))
        return None if versioned is None else versioned[1]

    async def get(self, kind: DocumentKind[T], key: str) -> T | None:
        """The value, or None if there is none."""
        return (await self.get_versioned(kind, key))[1]

    async def get_stored(self, kind: DocumentKind[T], key: str) -> T | None:
        """As `get`, but from the store: for an answer that must not rest on this node's memory."""
        return await self.transact(lambda draft: draft.get(kind, key))

    async def get_versioned(self, kind: DocumentKind[T], key: str) -> tuple[int, T | None]:
        """The value with its version; 0 and None if there is none."""
        remembered_value = self._memory.get((kind.name, key))
        if remembered_value is not None:
            return remembered_value
        before = self._changes
        resource = await self._store.get(kind.name, key)
        if resource is None:
            return 0, None
        versioned = (resource.version, kind.read(resource.document))
        if self._changes == before:  # else it may have changed while it was on its way
            self._remember((kind.name, key), versioned)
        return versioned

    async def get_each(self, keys_of_kinds: Sequence[tuple[DocumentKind[Any], str]]) -> dict[Key, Any]:
        """The values that exist of several, by their kinds' names and keys: one read for those not remembered."""
        keys = {(kind.name, key): kind for kind, key in keys_of_kinds}
        remembered = {key: self._memory[key] for key in keys if key in self._memory}
        values = {key: value for key, (_, value) in remembered.items()}
        missing = [key for key in keys if key not in values]
        before = self._changes
        resources = await self._store.get_each(missing) if missing else ()
        for resource in resources:
            key = (resource.kind, resource.key)
            values[key] = keys[key].read(resource.document)
            if self._changes == before:  # else it may have changed while it was on its way
                self._remember(key, (resource.version, values[key]))
        return values

    async def find(
        self, kind: DocumentKind[T], prefix: str, after: str = "", limit: int | None = None
    ) -> list[T]:
        """Values whose key begins with `prefix`, in order of the key, beginning after `after`."""
        return [value for _, _, value in await self.find_versioned(kind, prefix, after, limit)]

    async def entries(self, kind: DocumentKind[T]) -> list[tuple[str, T]]:
        """Every value of a kind, with its key: for kinds of which there are few."""
        return [(key, value) for key, _, value in await self.find_versioned(kind, "")]

    async def find_versioned(
        self, kind: DocumentKind[T], prefix: str, after: str = "", limit: int | None = None
    ) -> list[tuple[str, int, T]]:
        """As `find`, with keys and versions."""
        resources = await self._store.find(kind.name, prefix, after, limit)
        return [(resource.key, resource.version, kind.read(resource.document)) for resource in resources]

    # ---- writing ----------------------------------------------------------------------------------------

    async def write(
        self, changes: Sequence[Creation[Any] | Removal], new_deliveries: Sequence[NewDelivery] = ()
    ) -> list[bool]:
        """Change several values in one transaction, and let deliveries enter their queues in it.

        Returns:
            For each removal whether the value was there; for a creation True.

        Raises:
            Conflict: A value that was to be created is there. It names the document; nothing was changed.
        """
        stored_changes: list[Change] = []
        values: dict[Key, Any] = {}
        for change in changes:
            if isinstance(change, Creation):
                document = change.kind.write(change.value)
                stored_changes.append(Put(change.kind.name, change.key, document, first=self.first_version()))
                values[change.kind.name, change.key] = change.value
            else:
                stored_changes.append(Remove(change.kind.name, change.key))
        return [version > 0 for version in await self._write(stored_changes, values, new_deliveries)]

    async def transact(self, decide: Callable[[Draft], Awaitable[T]]) -> T:
        """Read, decide, and write all that was decided in one transaction.

        Args:
            decide: Reads values and makes changes through the draft it is given. It runs again, with a new draft, when
                something that it read was changed meanwhile, so it does nothing else that cannot be done twice. Values
                it reads may be of different moments: then what it makes of them is not written.

        Returns:
            What `decide` returned, once that is written.

        Raises:
            Conflict: A value that `decide` wrote without having read it is there.
            Exception: As `decide` raised it, of what stands in the store.
        """
        while True:
            draft = Draft(self)
            try:
                answer = await decide(draft)
            except StoreUnavailable:
                raise
            except Exception:
                if await self._still_stand(draft.remembered_versions):
                    raise
                continue
            if draft.changes_nothing:
                if await self._still_stand(draft.remembered_versions):
                    return answer
                continue
            try:
                await self._write(draft.changes(), draft.values, draft.new_deliveries, draft.log_events)
            except Conflict as conflict:
                if not draft.is_outdated_by(conflict):
                    raise
            else:
                draft.run_afterwards()
                return answer

    async def _still_stand(self, versions: Mapping[Key, int]) -> bool:
        """True if the store has all documents at these versions; those it has not are forgotten here."""
        stored = await self._store.get_each(list(versions)) if versions else ()
        current = {(resource.kind, resource.key): resource.version for resource in stored}
        outdated = [key for key, version in versions.items() if current.get(key) != version]
        for key in outdated:
            self._note_outdated(key, versions[key])
        return not outdated

    def _note_outdated(self, key: Key, version: int) -> None:
        """Forget a document that is no longer at the version that it was read at.

        Where this node still remembers that version, it has missed another node's change, and so have its followers:
        they are told too. Where it does not, it has heard of the change, or has made it itself.
        """
        versioned = self._memory.get(key)
        if versioned is not None and versioned[0] == version:
            self.forget(*key)
        else:
            self._drop(*key)

    async def create(self, kind: DocumentKind[T], key: str, value: T) -> None:
        """Write a new document; raises Conflict if there is one already."""
        await self.write([Creation(kind, key, value)])

    async def update(self, kind: DocumentKind[T], key: str, change: Callable[[T], T]) -> T:
        """Replace a value by what `change` makes of it; `change` may be called again after a concurrent change.

        Raises:
            NotFound: It is not there (any more).
        """

        async def decide(draft: Draft) -> T:
            value = await draft.get(kind, key)
            if value is None:
                raise NotFound(f"{kind.name} {key}")
            return draft.change(kind, key, value, change)

        return await self.transact(decide)

    async def update_or_create(
        self, kind: DocumentKind[T], key: str, first: T, change: Callable[[T], T]
    ) -> T:
        """As `update`; where there is nothing, `first` is written."""

        async def decide(draft: Draft) -> T:
            value = await draft.get(kind, key)
            if value is None:
                draft.put(kind, key, first)
                return first
            return draft.change(kind, key, value, change)

        return await self.transact(decide)

    async def remove(self, kind: DocumentKind[Any], key: str) -> bool:
        """Remove a value from the store; True if it was there."""
        (was_there,) = await self.write([Removal(kind, key)])
        return was_there

    async def clear(self, *kinds: DocumentKind[Any]) -> None:
        """Remove every value of some kinds."""
        stored = await self._store.kinds()
        for kind in kinds:
            if kind.name in stored:
                while resources := await self._store.find(kind.name, "", limit=_REMOVED_AT_ONCE):
                    await self.write([Removal(kind, resource.key) for resource in resources])

    async def _write(
        self,
        changes: Sequence[Change],
        values: Mapping[Key, Any],
        new_deliveries: Sequence[NewDelivery],
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        """Write, and remember the values, unless anything changed meanwhile: that may have been a later change of one.

        A write that failed may have been carried out all the same: its documents are forgotten.
        """
        for change in changes:
            if isinstance(change, Remove):
                self._drop(change.kind, change.key)
        self._changes += 1
        changes_before = self._changes
        versions: list[int] = []
        try:
            versions = await self._store.write(changes, new_deliveries, log_events)
        except Conflict as conflict:
            self._note_outdated((conflict.kind, conflict.key), _version_of(conflict, changes))
            raise
        except BaseException:
            self._forget_all(changes)
            raise
        is_undisturbed = self._changes == changes_before
        for change in changes:  # a read that began before, and is not yet answered, may have remembered it
            if isinstance(change, Put | Remove):
                self._drop(change.kind, change.key)
        if is_undisturbed:
            for change, version in zip(changes, versions, strict=True):
                if isinstance(change, Put):
                    self._remember((change.kind, change.key), (version, values[change.kind, change.key]))
        self._tell_write_followers(changes, values)
        return versions

    def _forget_all(self, changes: Sequence[Change]) -> None:
        """Forget documents of changes that may or may not have been made."""
        for change in changes:
            if isinstance(change, Put | Remove):
                self.forget(change.kind, change.key)

    def _tell_write_followers(self, changes: Sequence[Change], values: Mapping[Key, Any]) -> None:
        for change in changes:
            if isinstance(change, Put | Remove):
                for follower in self._write_followers:
                    follower(change.kind, change.key, values.get((change.kind, change.key)))


def _version_of(conflict: Conflict, changes: Sequence[Change]) -> int:
    """The version that the changes required of the document in conflict; 0: that it does not exist."""
    for change in changes:
        if not isinstance(change, RequireNone) and (change.kind, change.key) == (conflict.kind, conflict.key):
            return change.version or 0
    return 0

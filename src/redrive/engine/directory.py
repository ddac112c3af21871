"""The directory: small versioned documents, read from memory and written through.

Every node remembers what it has read. A change made here replaces the memory at once; a change made on another
node is heard of through the store and makes this one forget, so the next reader asks the store. What is not there
is never remembered: a queue made on one node can be used on another at once.
"""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from redrive.engine.ports import Kind as Kind  # noqa: PLC0414 - callers import it from here until they are moved
from redrive.engine.ports import Resource, Store
from redrive.model.errors import Conflict, NotFound

T = TypeVar("T")


class Directory:
    """Typed, cached access to a store's documents."""

    def __init__(self, store: Store) -> None:
        """Read from and write to this store."""
        self._store = store
        self._known: dict[tuple[str, str], tuple[int, Any]] = {}
        self._changes = 0
        self._followers: list[Callable[[str, str], None]] = []

    def on_forget(self, follower: Callable[[str, str], None]) -> None:
        """Tell a follower, who remembers more than documents, of every change of another node's."""
        self._followers.append(follower)

    def forget(self, kind: str, key: str) -> None:
        """Another node changed this document (an empty key: any of the kind, or all where both are empty)."""
        self._drop(kind, key)
        for follower in self._followers:
            follower(kind, key)

    def _drop(self, kind: str, key: str) -> None:
        self._changes += 1
        if key:
            self._known.pop((kind, key), None)
        else:
            self._known = {at: known for at, known in self._known.items() if kind and at[0] != kind}

    @property
    def changes(self) -> int:
        """A number that moves with every document that changes, as far as this node has heard."""
        return self._changes

    def known(self, kind: Kind[T], key: str) -> T | None:
        """The value if this node remembers it: the hot path's way, without waiting."""
        found = self._known.get((kind.name, key))
        return None if found is None else found[1]

    async def get(self, kind: Kind[T], key: str) -> T | None:
        """The value, or None where there is none."""
        found = await self._get(kind, key)
        return None if found is None else found[1]

    async def find(self, kind: Kind[T], prefix: str, after: str = "", limit: int | None = None) -> list[T]:
        """Values whose key begins with `prefix`, in order of the key, beginning after `after`."""
        return [kind.read(one.document) for one in await self._store.find(kind.name, prefix, after, limit)]

    async def entries(self, kind: Kind[T]) -> list[tuple[str, T]]:
        """Every value of a kind, with its key: for kinds of which there are few."""
        return [(one.key, kind.read(one.document)) for one in await self._store.find(kind.name, "")]

    async def create(self, kind: Kind[T], key: str, value: T) -> None:
        """Write a new document.

        Raises:
            Conflict: There is one already.
        """
        await self._put(kind, key, 0, value)

    async def update(self, kind: Kind[T], key: str, change: Callable[[T], T]) -> T:
        """Replace a value by what `change` makes of it; `change` may be called again when somebody was faster.

        Raises:
            NotFound: It is not there (any more).
        """
        while True:
            found = await self._get(kind, key)
            if found is None:
                raise NotFound(f"{kind.name} {key}")
            version, value = found
            changed = change(value)
            if changed == value:
                return value
            try:
                await self._put(kind, key, version, changed)
            except Conflict:
                continue
            return changed

    async def update_or_create(self, kind: Kind[T], key: str, first: T, change: Callable[[T], T]) -> T:
        """As `update`; where there is nothing, `first` is written."""
        while True:
            with contextlib.suppress(NotFound):
                return await self.update(kind, key, change)
            with contextlib.suppress(Conflict):
                await self.create(kind, key, first)
                return first

    async def clear(self, kind: Kind[Any]) -> None:
        """Remove every value of a kind."""
        for resource in await self._store.find(kind.name, ""):
            await self.remove(kind, resource.key)

    async def remove(self, kind: Kind[Any], key: str) -> bool:
        """Forget a value for good; whether it was there."""
        self._drop(kind.name, key)
        try:
            return await self._store.remove(kind.name, key)
        finally:
            self._drop(kind.name, key)

    async def _get(self, kind: Kind[T], key: str) -> tuple[int, T] | None:
        known = self._known.get((kind.name, key))
        if known is not None:
            return known
        before = self._changes
        resource = await self._store.get(kind.name, key)
        if resource is None:
            return None
        found = (resource.version, kind.read(resource.document))
        if self._changes == before:  # else it may have changed while it was on its way
            self._known[kind.name, key] = found
        return found

    async def _put(self, kind: Kind[T], key: str, version: int, value: T) -> None:
        """Write, and remember it, unless anything changed meanwhile: that may have been this document, and later.

        A write that failed may have been carried out all the same: what was known before it is known no more.
        """
        self._changes += 1
        before = self._changes
        stored: int | None = None
        try:
            stored = await self._store.put(Resource(kind.name, key, version, kind.write(value)))
        finally:
            undisturbed = self._changes == before
            self._drop(kind.name, key)  # also for who began to read before, and has yet to hear the answer
            if stored is not None and undisturbed:
                self._known[kind.name, key] = (stored, value)

"""Changes to documents before they are written: which values, and what must still stand for them."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from redrive.engine.ports import Change, DocumentKind, NewDelivery, Put, Remove, Require, RequireNone
from redrive.model.errors import Conflict
from redrive.model.log import LogEvent

T = TypeVar("T")
Key = tuple[str, str]  # a kind's name, and the key of a document


class Reader(Protocol):
    """The source that a draft reads from: the directory."""

    def known(self, kind: DocumentKind[T], key: str) -> T | None:
        """The value if this node remembers it."""
        ...

    def first_version(self) -> int:
        """The version that a new document begins at."""
        ...

    async def get_versioned(self, kind: DocumentKind[T], key: str) -> tuple[int, T | None]:
        """The value with its version; 0 and None if there is none."""
        ...

    async def find_versioned(
        self, kind: DocumentKind[T], prefix: str, after: str = "", limit: int | None = None
    ) -> list[tuple[str, int, T]]:
        """Keys, versions and values, for keys that begin so."""
        ...


class Draft:
    """The documents that a decision read, and the changes that it makes; see `Directory.transact`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._versions: dict[Key, int] = {}  # as first read; 0: there was none
        self._values_read: dict[Key, Any] = {}  # as the store had them
        self._required: set[Key] = set()  # those that must still be at the version that was read
        self._remembered: set[Key] = set()  # those that were read from the node's memory
        self._changes: dict[Key, Put | Remove] = {}
        self._absent: list[RequireNone] = []  # the beginnings that no key may have afterwards
        self.values: dict[Key, Any] = {}  # those that are put
        self.new_deliveries: list[NewDelivery] = []
        self.log_events: list[LogEvent] = []
        self._afterwards: list[Callable[[], None]] = []  # to be called once it is written

    async def get(self, kind: DocumentKind[T], key: str) -> T | None:
        """The value, as the draft leaves it; the draft is only written if the stored one is still the same, or absent."""
        at = kind.name, key
        if at in self._changes:
            draft_value: T | None = self.values.get(at)
            return draft_value
        if at not in self._versions:  # the node may remember an older one than `find` has shown
            if self._reader.known(kind, key) is not None:
                self._remembered.add(at)
            versioned = await self._reader.get_versioned(kind, key)
            self._versions[at], self._values_read[at] = versioned
        self._required.add(at)
        value: T | None = self._values_read[at]
        return value

    async def find(self, kind: DocumentKind[T], prefix: str, limit: int | None = None) -> list[tuple[str, T]]:
        """Keys and values as the draft leaves them, in order of the keys, for keys that begin so.

        `limit` bounds what is read from the store. The draft is only written if the stored values that it changes are
        still the same then; others may have been added: see `require_none`.
        """
        stored = await self._reader.find_versioned(kind, prefix, limit=limit)
        for key, version, value in stored:
            at = kind.name, key
            if at not in self._changes and at not in self._versions:
                self._versions[at], self._values_read[at] = version, value
        values = {key: value for key, _, value in stored}
        for name, key in self._changes:
            if name == kind.name and key.startswith(prefix):
                if (name, key) in self.values:
                    values[key] = self.values[name, key]
                else:  # the draft removes it
                    values.pop(key, None)
        return sorted(values.items(), key=lambda item: item[0].encode())

    def put(self, kind: DocumentKind[T], key: str, value: T) -> None:
        """Write a value over the one that was read, or where there is none."""
        at = kind.name, key
        version = self._versions.get(at, 0)
        first = 1 if version else self._reader.first_version()
        self._changes[at] = Put(kind.name, key, kind.write(value), version, first)
        self.values[at] = value

    async def overwrite(self, kind: DocumentKind[T], key: str, value: T) -> None:
        """Write a value, whether or not there is one: `put` alone refuses to replace one that was not read."""
        await self.get(kind, key)
        self.put(kind, key, value)

    def change(self, kind: DocumentKind[T], key: str, value: T, change: Callable[[T], T]) -> T:
        """Put what `change` makes of a value that was read, if that differs; returns what it makes."""
        new_value = change(value)
        if new_value != value:
            self.put(kind, key, new_value)
        return new_value

    def remove(self, kind: DocumentKind[Any], key: str) -> None:
        """Remove the value that was read, or whatever is stored if it was not read."""
        at = kind.name, key
        self.values.pop(at, None)
        version = self._versions.get(at)
        if version == 0:  # there was none: only the draft itself may have put one
            self._changes.pop(at, None)
        else:
            self._changes[at] = Remove(kind.name, key, version)

    def require_none(self, kind: DocumentKind[Any], prefix: str) -> None:
        """Write the draft only if no key begins so afterwards; see `redrive.engine.ports.RequireNone`."""
        self._absent.append(RequireNone(kind.name, prefix))

    def enqueue(self, *new_deliveries: NewDelivery) -> None:
        """Let deliveries enter their queues in the same transaction."""
        self.new_deliveries += new_deliveries

    def log(self, events: Sequence[LogEvent]) -> None:
        """Write log events down in the same transaction."""
        self.log_events += events

    def afterwards(self, call: Callable[[], None]) -> None:
        """Make a call when the draft has been written."""
        self._afterwards.append(call)

    def run_afterwards(self) -> None:
        """Make the calls of `afterwards`: the draft has been written."""
        for call in self._afterwards:
            call()

    @property
    def changes_nothing(self) -> bool:
        """True if there is nothing to be written."""
        return not (self._changes or self.new_deliveries or self.log_events)

    @property
    def remembered_versions(self) -> dict[Key, int]:
        """The versions of what was read from this node's memory: another node may have changed it unheard."""
        return {at: self._versions[at] for at in sorted(self._remembered)}

    def changes(self) -> list[Change]:
        """All that the store is asked for; it refuses what is at another version than it was first read at."""
        required = (Require(*at, self._versions[at]) for at in self._required - self._changes.keys())
        return [*self._changes.values(), *sorted(required), *self._absent]

    def is_outdated_by(self, conflict: Conflict) -> bool:
        """True if the decision would see something else if it were made again."""
        at = conflict.kind, conflict.key
        return at in self._versions or at in self._absent

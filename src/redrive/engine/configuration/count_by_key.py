"""Tallies: how many documents there are of some sort, without reading them all whenever somebody asks.

A tally is read once, document by document. From then on it is told which documents changed, on whichever node, and
reads only these again before it answers: a topic's thousand subscriptions cost 5 ms at first and nothing after.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from redrive.engine.configuration.directory import Directory, DocumentKind

T = TypeVar("T")

CHANGES_MAX: Final = (
    1_000  # kept for a tally that nobody asks for; to read it anew takes as long as so many changes
)


class CountByKey(Generic[T]):
    """Counts documents of one kind by sorts, under beginnings of their keys that end with a slash."""

    def __init__(
        self,
        directory: Directory,
        kind: DocumentKind[T],
        key_of: Callable[[T], str],
        sorts_of: Callable[[T], Sequence[str]],
    ) -> None:
        """Count in this directory.

        Args:
            directory: Where they are.
            kind: What is counted.
            key_of: What one of them is kept under.
            sorts_of: Of what sorts it is.
        """
        self._directory = directory
        self._kind = kind
        self._key_of = key_of
        self._sorts_of = sorts_of
        self._counts: dict[str, _Count] = {}

    def changed(self, key: str) -> None:
        """A document changed, came or went; an empty key: any of them."""
        if not key:
            self._counts.clear()
        for end, character in enumerate(key, start=1):
            if character == "/" and (count := self._counts.get(key[:end])) is not None:
                count.changed.add(key)
                if len(count.changed) > CHANGES_MAX:
                    del self._counts[key[:end]]

    def forget(self, prefix: str) -> None:
        """Nobody will ask about keys that begin so: what they belonged to is gone."""
        self._counts.pop(prefix, None)

    async def numbers(self, prefix: str) -> "Counter[str]":
        """The number of each sort, of those whose key begins so."""
        return (await self._current(prefix)).numbers

    async def keys(self, prefix: str, sort: str) -> list[str]:
        """The keys of a sort, of those that begin so."""
        count = await self._current(prefix)
        return [key for key, sorts in count.sorts.items() if sort in sorts]

    async def keys_by_sort(self, prefix: str) -> dict[str, list[str]]:
        """The keys that begin so, by their sorts, each in order."""
        keys: dict[str, list[str]] = {}
        for key, sorts in sorted((await self._current(prefix)).sorts.items()):
            for sort in sorts:
                keys.setdefault(sort, []).append(key)
        return keys

    async def _current(self, prefix: str) -> "_Count":
        count = self._counts.setdefault(prefix, _Count())
        async with count.reading:
            if not count.is_read:
                for value in await self._directory.find(self._kind, prefix):
                    count.put(self._key_of(value), self._sorts_of(value))
                count.is_read = True
            while count.changed:
                key = next(iter(count.changed))
                count.changed.remove(key)  # before it is read: it may change again meanwhile
                await self._read_again(count, key)
        return count

    async def _read_again(self, count: "_Count", key: str) -> None:
        try:
            value = await self._directory.get(self._kind, key)
        except BaseException:
            count.changed.add(key)
            raise
        count.put(key, () if value is None else self._sorts_of(value))


class _Count:
    """One tally, and what has changed since."""

    def __init__(self) -> None:
        self.reading = asyncio.Lock()
        self.is_read = False
        self.sorts: dict[str, Sequence[str]] = {}
        self.numbers: Counter[str] = Counter()
        self.changed: set[str] = set()

    def put(self, key: str, sorts: Sequence[str]) -> None:
        self.numbers.subtract(self.sorts.pop(key, ()))
        if sorts:
            self.sorts[key] = sorts
            self.numbers.update(sorts)

"""Nodes: each writes into a store that several share that it is there, with its settings, for the pages that show it.

Only people read these records, and each write of one has every node look anew at what it remembers of the store. So a
node says seldom that it is there: six times an hour.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from redrive.engine.ports import Clock, DocumentKind, Removal
from redrive.engine.resources import Documents
from redrive.engine.upkeep import Upkeep
from redrive.model.errors import StoreUnavailable

BEAT_MS: Final = 10 * 60_000
SILENT_MS: Final = 2 * BEAT_MS + 60_000
FORGOTTEN_MS: Final = 6 * BEAT_MS


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as the others see it."""

    name: str  # Its host, process and a random number
    version: str  # Redrive version
    started_at: int  # When it began to serve (ms)
    seen_at: int  # Time of its last heartbeat (ms)
    # Of each setting its name, its value as it may be shown, and where it comes from.
    settings: Sequence[tuple[str, str, str]]

    def setting(self, name: str) -> str:
        """The value of a setting as it may be shown; empty: there is none of that name."""
        return next((value for known, value, _ in self.settings if known == name), "")

    def is_silent(self, now: int) -> bool:
        """True for a node that missed two beats: it was killed, or is cut off from the store."""
        return now - self.seen_at > SILENT_MS


def _write(node: Node) -> Mapping[str, Any]:
    """The document that a node is stored as."""
    return {
        "name": node.name,
        "version": node.version,
        "started_at": node.started_at,
        "seen_at": node.seen_at,
        "settings": [list(setting) for setting in node.settings],
    }


def _read(document: Mapping[str, Any]) -> Node:
    settings = [(name, value, source) for name, value, source in document["settings"]]
    return Node(**{**document, "settings": settings})


NODE: Final[DocumentKind[Node]] = DocumentKind("node", _write, _read)


class Nodes:
    """The nodes of an installation, this one among them."""

    def __init__(self, documents: Documents, clock: Clock, own: Node, *, shared: bool) -> None:
        """Announce `own` and read the others; unless `shared`, a store is one process's and nothing is written."""
        self._documents = documents
        self._clock = clock
        self._own = own
        self._shared = shared
        self._upkeep = Upkeep(self.beat, clock, BEAT_MS, "node.unseen")

    async def all(self) -> list[Node]:
        """This node, and then the others by name, except those silent for an hour."""
        if not self._shared:
            return [self._own]
        now = self._clock.now()
        return [self._own, *(node for node in await self._others() if not _is_forgotten(node, now))]

    def now(self) -> int:
        """The system's time (ms), by which nodes are silent."""
        return self._clock.now()

    def start(self) -> None:
        """Say at once and every ten minutes that this node is there."""
        if self._shared:
            self._upkeep.start()

    async def stop(self) -> None:
        """Say that it is not there any more."""
        if not self._shared:
            return
        await self._upkeep.close()
        with contextlib.suppress(StoreUnavailable):  # the others forget it in an hour
            await self._documents.remove(NODE, self._own.name)

    async def beat(self) -> None:
        """Say that this node is there, and remove the records of those that have not said so for an hour."""
        now = self._clock.now()
        own = self._own = replace(self._own, seen_at=now)
        await self._documents.update_or_create(NODE, own.name, own, lambda _: own)
        await self._remove(node for node in await self._others() if _is_forgotten(node, now))

    async def reset(self) -> None:
        """Remove the records of nodes that are silent: the others are there, whatever else is removed."""
        if self._shared:
            now = self._clock.now()
            await self._remove(node for node in await self._others() if node.is_silent(now))

    async def _others(self) -> list[Node]:
        return [node for _, node in await self._documents.entries(NODE) if node.name != self._own.name]

    async def _remove(self, nodes: Iterable[Node]) -> None:
        removals = [Removal(NODE, node.name) for node in nodes]
        if removals:
            await self._documents.write(removals)


def _is_forgotten(node: Node, now: int) -> bool:
    return now - node.seen_at > FORGOTTEN_MS

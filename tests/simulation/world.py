"""The parts of a run: the store as it is, and engines as they are."""

from collections.abc import Awaitable, Callable
from typing import Any

from redrive.engine.engine import Engine
from redrive.stores.sqlite.store import SqliteStore


class World:
    """A store, which has the verbs of `redrive.engine.ports.Store`, and what becomes of engines on it.

    Attributes:
        needs: A dialect without which nothing would be wrong.
    """

    needs = ""

    def spoil(self, engine: Engine) -> None:
        """Make something of an engine wrong; here nothing is."""


class InMemory(World):
    """The SQLite store as it is; in memory it commits on the loop's thread, so virtual time sees all of it."""

    def __init__(self) -> None:
        self.real = SqliteStore(None)

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        found: Callable[..., Awaitable[Any]] = getattr(self.real, verb)
        return found

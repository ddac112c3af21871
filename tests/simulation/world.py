"""What a run is about: the store as it is, and engines as they are."""

from collections.abc import Awaitable, Callable
from typing import Any

from redrive.engine.engine import Engine
from redrive.stores.sqlite.store import SqliteStore


class InMemory:
    """The store as it is; it commits on the loop's thread, so virtual time sees all of it.

    Attributes:
        needs: A dialect without which nothing would be wrong.
    """

    needs = ""

    def __init__(self) -> None:
        self.real = SqliteStore(None)

    def spoil(self, engine: Engine) -> None:
        """Make something of an engine wrong; here nothing is."""

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        found: Callable[..., Awaitable[Any]] = getattr(self.real, verb)
        return found

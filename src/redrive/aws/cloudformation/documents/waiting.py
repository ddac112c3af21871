"""Waiting for documents to change, or for a moment to come, with the work that is under way counted."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from redrive.engine.engine import Engine

T = TypeVar("T")


class Activity:
    """Counts the work that goes on by itself, as long as it neither waits for somebody's word nor for a moment."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, number: int) -> None:
        """So much more goes on, or less."""
        self._count += number
        if self._count:
            self._idle.clear()
        else:
            self._idle.set()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Count what happens within."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)

    @property
    def is_quiet(self) -> bool:
        """True if nothing goes on."""
        return not self._count

    async def quiet(self) -> None:
        """Return when nothing goes on."""
        await self._idle.wait()


@dataclass(eq=False, slots=True)
class _Waiter:
    kind: str
    prefix: str
    activity: Activity
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    asleep: bool = False

    def wake(self) -> None:
        """Go on: counted from now on, before its turn comes."""
        if self.asleep:
            self.asleep = False
            self.activity.add(1)
        self.woken.set()

    async def sleep(self) -> None:
        """Return once it is woken."""
        if not self.woken.is_set():
            self.asleep = True
            self.activity.add(-1)
            try:
                await self.woken.wait()
            finally:
                if self.asleep:  # cancelled
                    self.asleep = False
                    self.activity.add(1)
        self.woken.clear()


class DocumentWatch:
    """Wakes what waits for documents."""

    def __init__(self, engine: Engine, activity: Activity) -> None:
        self._clock = engine.clock
        self._activity = activity
        self._waiters: set[_Waiter] = set()
        documents = engine.resources.documents
        documents.on_write(lambda kind, key, _: self._wake(kind, key))
        documents.on_forget(self._wake)

    def _wake(self, kind: str, key: str) -> None:
        for waiter in self._waiters:
            if not kind or (waiter.kind == kind and (not key or key.startswith(waiter.prefix))):
                waiter.wake()

    async def until(
        self, kind: str, prefix: str, look: Callable[[], Awaitable[T | None]], deadline: int
    ) -> T | None:
        """Look again whenever documents change, until there is something to be seen.

        Args:
            kind: Of the documents.
            prefix: The beginning of their keys.
            look: Returns None as long as there is nothing.
            deadline: ms; after that None is returned.
        """
        waiter = _Waiter(kind, prefix, self._activity)
        self._waiters.add(waiter)
        timer = self._clock.call_at(deadline, waiter.wake)
        try:
            while (result := await look()) is None:
                if self._clock.now() >= deadline:
                    return None
                await waiter.sleep()
            return result
        finally:
            timer.cancel()
            self._waiters.discard(waiter)

    async def sleep(self, milliseconds: int) -> None:
        """Return so much later."""

        async def nothing() -> None:
            return None

        await self.until("", "nothing", nothing, self._clock.now() + milliseconds)

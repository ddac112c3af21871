"""Answers that are handed on while the function writes them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from typing_extensions import override

from redrive.model.function import AnswerParts, InvocationResult

#: Of an answer that its reader has not taken yet: then nothing more is read of the function until half of it is gone.
HELD_BYTES_MAX: Final = 1024 * 1024


class AnswerBroken(Exception):  # noqa: N818 - an end, which nobody can be told of
    """The function failed in the middle of an answer whose beginning the caller has."""


class AnswerStream(AnswerParts):
    """An answer on its way from a function to whoever reads it.

    Attributes:
        content_type: As the function's runtime said.
        begun: Whether the function streams its answer; others post it whole.
    """

    def __init__(self) -> None:
        self.content_type = ""
        self.begun = False
        self._parts: deque[bytes] = deque()
        self._held = 0
        self._is_over = False
        self._is_left = False
        self._resume: Callable[[], None] | None = None
        self._stirred: asyncio.Future[None] | None = None
        self._running: asyncio.Task[InvocationResult]

    def run(self, running: "asyncio.Task[InvocationResult]") -> None:
        """Be the answer of this invocation."""
        self._running = running
        running.add_done_callback(self._end)

    @override
    def begin(self, content_type: str) -> None:
        """See `AnswerParts.begin`."""
        self.begun, self.content_type = True, content_type
        self._stir()

    @override
    def add(self, part: bytes, resume: Callable[[], None]) -> bool:
        """See `AnswerParts.add`."""
        if self._is_left:
            return True
        self._parts.append(part)
        self._held += len(part)
        self._stir()
        if self._held < HELD_BYTES_MAX:
            return True
        self._resume = resume
        return False

    def _end(self, running: "asyncio.Task[InvocationResult]") -> None:
        self._is_over = True
        if running.cancelled() or running.exception() is not None:
            self._parts.clear()
        self._stir()

    def _stir(self) -> None:
        if self._stirred is not None and not self._stirred.done():
            self._stirred.set_result(None)

    async def _until_stirred(self) -> None:
        self._stirred = asyncio.get_running_loop().create_future()
        await self._stirred

    # ---- for the reader ---------------------------------------------------------------------------------

    async def started(self) -> None:
        """Wait until the function begins to stream, or is done without; raises Throttled if it was not run."""
        while not self.begun and not self._is_over:
            await self._until_stirred()
        if not self.begun:
            await self._running

    async def parts(self) -> AsyncIterator[bytes]:
        """The parts as they come; whoever stops early lets the function write into nothing."""
        try:
            while self._parts or not self._is_over:
                if self._parts:
                    yield self._take()
                else:
                    await self._until_stirred()
        finally:
            self._is_left = True
            self._parts.clear()
            self._go_on()

    async def result(self) -> InvocationResult:
        """The end of the invocation."""
        return await self._running

    def _take(self) -> bytes:
        part = self._parts.popleft()
        self._held -= len(part)
        if self._held < HELD_BYTES_MAX // 2:
            self._go_on()
        return part

    def _go_on(self) -> None:
        resume, self._resume = self._resume, None
        if resume is not None:
            resume()

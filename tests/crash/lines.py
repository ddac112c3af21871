"""Lines between a node and its databases, that are cut, stall, or are slow."""

import asyncio

from typing_extensions import override

from tests.services.relay import Relay


class Line(Relay):
    """A port that leads to another one; whatever is wrong with it ends by `mend`."""

    def __init__(self, far_port: int) -> None:
        """Lead to a port of this machine."""
        super().__init__("127.0.0.1", far_port)
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._delay_seconds = 0.0

    def cut(self) -> None:
        """End every connection, and take no new one."""
        self._is_cut = True
        self.abort_all()

    def stall(self) -> None:
        """Let nothing pass, in neither direction, and say nothing of it."""
        self._flows.clear()

    def slow(self, seconds: float) -> None:
        """Let each piece pass so much later."""
        self._delay_seconds = seconds

    def mend(self) -> None:
        """Let everything pass again, also what stalled."""
        self._is_cut, self._delay_seconds = False, 0.0
        self._flows.set()

    @override
    async def admits(self) -> bool:
        await self._flows.wait()
        return not self._is_cut

    @override
    async def passes(self, *, is_answer: bool) -> bool:
        await self._flows.wait()
        if self._delay_seconds:
            await after(self._delay_seconds)
        return True


async def after(seconds: float) -> None:
    """Return so much later: for faults that last, and callers who do not come at once."""
    passed = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(seconds, _pass, passed)
    try:
        await passed
    finally:
        timer.cancel()


def _pass(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)

"""A primary and its synchronous standby that are lost, and lines to them that are cut, stall, or are slow."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.crash.lines import Line, after
from tests.crash.nodes import Backing, Loss, Repair
from tests.services.postgres_pair import PostgresPair

_FLAWED_SECONDS: Final = (0.5, 6.0)  # how long a line is cut, stalls or is slow


class PairBacking(Backing):
    """Two databases, and each node's own lines to both."""

    copies = 2

    def __init__(self, pair: PostgresPair) -> None:
        """Lose the primary of this pair, which is not started yet."""
        self._pair = pair
        self._lines: list[dict[int, Line]] = []

    @property
    @override
    def losses(self) -> Mapping[str, Loss]:
        return {
            "primary": Loss(8, self._lose_primary),
            "cut_line": Loss(3, self._cut_line),
            "stalled_line": Loss(3, self._stall_line),
            "slow_line": Loss(2, self._slow_line),
        }

    @override
    async def open(self, nodes: int) -> Sequence[str]:
        await self._pair.start()
        for _ in range(nodes):
            lines = {port: Line(port) for port in (self._pair.primary.port, self._pair.standby.port)}
            for line in lines.values():
                await line.open()
            self._lines.append(lines)
        hosts = [",".join(f"127.0.0.1:{line.port}" for line in lines.values()) for lines in self._lines]
        return [f"postgresql://redrive@{each}/postgres" for each in hosts]

    @override
    async def close(self) -> None:
        for lines in self._lines:
            for line in lines.values():
                await line.close()
        self._pair.end()

    @override
    async def spread(self, queues: Sequence[str]) -> None:
        """There is one database."""

    async def _lose_primary(self, rng: random.Random) -> Repair:
        """kill -9 of the primary; the standby takes its place, and gets a standby of its own."""
        await asyncio.to_thread(asyncio.run, self._pair.fail_over())
        attaching = asyncio.to_thread(asyncio.run, self._pair.attach_standby())
        return asyncio.create_task(attaching, name="repair")

    async def _cut_line(self, rng: random.Random) -> None:
        """A node's, or everybody's, connections to the primary end, and no new ones are made."""
        await self._flawed(rng, Line.cut)

    async def _stall_line(self, rng: random.Random) -> None:
        """Nothing passes, and nobody is told."""
        await self._flawed(rng, Line.stall)

    async def _slow_line(self, rng: random.Random) -> None:
        """Everything passes later."""
        await self._flawed(rng, lambda line: line.slow(0.1))

    async def _flawed(self, rng: random.Random, flaw: Callable[[Line], None]) -> None:
        nodes = self._lines if rng.random() < 1 / 3 else [rng.choice(self._lines)]
        lines = [lines[self._pair.primary.port] for lines in nodes]
        for line in lines:
            flaw(line)
        await after(rng.uniform(*_FLAWED_SECONDS))
        for line in lines:
            line.mend()


def run_directory() -> Path:
    """A directory for clusters, whose owner may be another user."""
    directory = Path(tempfile.mkdtemp(prefix="redrive-nodes-"))
    directory.chmod(0o755)
    return directory

"""Rounds in which a node, the primary or a line is lost under load, while two other nodes and a standby are there."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crash.lines import Line, after
from tests.crash.node_load import NodeLoad
from tests.crash.under_load import calls, port_of, settled, under_load, while_working
from tests.services.postgres_pair import PostgresPair
from tests.services.server import Server, ServerFailedError, new_server

NODES: Final = 3
_CALLS: Final = 40  # before a loss, and again after it is mended
_FLAWED_SECONDS: Final = (0.5, 6.0)  # how long a line is cut, stalls or is slow
_WEIGHTS: Final = {"node": 8, "primary": 8, "cut_line": 3, "stalled_line": 3, "slow_line": 2}


@dataclass(frozen=True, slots=True)
class NodeRound:
    """One round that kept every promise.

    Attributes:
        seed: Its number.
        lost: What was lost.
        silence: The longest time (s) in which nobody was answered.
        wait: The longest time (s) that a caller asked for the same thing in vain.
        seconds: How long it took.
    """

    seed: int
    lost: str
    silence: float
    wait: float
    seconds: float


class NodeRounds:
    """Nodes on a primary and its synchronous standby, each with lines of its own to both."""

    def __init__(
        self, pair: PostgresPair, nodes: int = NODES, losses: Sequence[str] = tuple(_WEIGHTS)
    ) -> None:
        """Lose these, by chance; see the methods of that name."""
        self._pair = pair
        self._number = nodes
        self._losses = losses
        self._lines: list[dict[int, Line]] = []
        self._nodes: list[Server] = []
        self._repairs: dict[str, asyncio.Task[None]] = {}

    async def open(self) -> None:
        """Start everything."""
        await self._pair.start()
        for _ in range(self._number):
            lines = {port: Line(port) for port in (self._pair.primary.port, self._pair.standby.port)}
            for line in lines.values():
                await line.open()
            self._lines.append(lines)
            hosts = ",".join(f"127.0.0.1:{line.port}" for line in lines.values())
            self._nodes.append(new_server(f"postgresql://redrive@{hosts}/postgres", "--log-level", "error"))
        for node in self._nodes:
            await asyncio.to_thread(node.start)

    async def close(self) -> None:
        """End everything."""
        for repair in self._repairs.values():
            await asyncio.wait([repair])
        for node in self._nodes:
            if node.process.poll() is None:
                node.kill()
        for lines in self._lines:
            for line in lines.values():
                await line.close()
        self._pair.end()

    async def run(self, seeds: Sequence[int], told: Callable[[NodeRound], None]) -> NodeLoad:
        """Rounds under one load, at whose end everything is accounted for.

        Raises:
            Violated: A promise was broken.
        """
        async with under_load([port_of(node) for node in self._nodes], seeds[0]) as load:
            for seed in seeds:
                told(await while_working(load, self._round(load, seed)))
            for repair in self._repairs.values():
                await repair
            await settled(load, self._nodes)
        return load

    # ---- a round -----------------------------------------------------------------------------------------------

    async def _round(self, load: NodeLoad, seed: int) -> NodeRound:
        chance = random.Random(seed)
        began = time.monotonic()
        await calls(load, _CALLS)
        load.answers.begin()
        load.longest_wait = 0.0
        lose = self._loss(chance)
        await lose(chance, load)
        await calls(load, _CALLS)
        return NodeRound(
            seed, lose.__name__, load.answers.silence, load.longest_wait, time.monotonic() - began
        )

    def _loss(self, chance: random.Random) -> Callable[[random.Random, NodeLoad], Awaitable[None]]:
        """The next loss: of what is whole again since the last of its kind."""
        losses = [getattr(self, name) for name in self._losses]
        for repair in self._repairs.values():
            if repair.done():
                repair.result()
        whole = [
            loss for loss in losses if (repair := self._repairs.get(loss.__name__)) is None or repair.done()
        ]
        return chance.choices(whole, [_WEIGHTS[loss.__name__] for loss in whole])[0]

    async def node(self, chance: random.Random, load: NodeLoad) -> None:
        """kill -9 of a node, which is started again while the next rounds go on."""
        node = chance.choice(self._nodes)
        node.kill()
        self._repairs["node"] = asyncio.create_task(asyncio.to_thread(_restart, node), name="repair")

    async def primary(self, chance: random.Random, load: NodeLoad) -> None:
        """kill -9 of the primary; the standby takes its place, and gets a standby of its own."""
        await asyncio.to_thread(asyncio.run, self._pair.fail_over())
        attaching = asyncio.to_thread(asyncio.run, self._pair.attach_standby())
        self._repairs["primary"] = asyncio.create_task(attaching, name="repair")

    async def cut_line(self, chance: random.Random, load: NodeLoad) -> None:
        """A node's, or everybody's, connections to the primary end, and no new ones are made."""
        await self._flawed(chance, Line.cut)

    async def stalled_line(self, chance: random.Random, load: NodeLoad) -> None:
        """Nothing passes, and nobody is told."""
        await self._flawed(chance, Line.stall)

    async def slow_line(self, chance: random.Random, load: NodeLoad) -> None:
        """Everything passes later."""
        await self._flawed(chance, lambda line: line.slow(0.1))

    async def _flawed(self, chance: random.Random, flaw: Callable[[Line], None]) -> None:
        nodes = self._lines if chance.random() < 1 / 3 else [chance.choice(self._lines)]
        lines = [lines[self._pair.primary.port] for lines in nodes]
        for line in lines:
            flaw(line)
        await after(chance.uniform(*_FLAWED_SECONDS))
        for line in lines:
            line.mend()


def _restart(node: Server) -> None:
    """Start a node, again and again as an init system would: it ends where it finds no database."""
    while True:
        try:
            node.start()
        except ServerFailedError:
            continue
        return


def run_directory() -> Path:
    """A directory for clusters, whose owner may be another user."""
    directory = Path(tempfile.mkdtemp(prefix="redrive-nodes-"))
    directory.chmod(0o755)
    return directory

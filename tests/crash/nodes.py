"""Rounds in which a node, or something that it stands on, is lost under load, while other nodes are there."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from tests.crash.node_load import NodeLoad
from tests.crash.under_load import calls, port_of, settled, under_load, while_working
from tests.services.server import Server, ServerFailedError, new_server

NODES: Final = 3
_CALLS: Final = 40  # before a loss, and again after it is mended
_NODE_WEIGHT: Final = 8

Repair = asyncio.Task[None]


class Loss(NamedTuple):
    """Something that may be lost.

    Attributes:
        weight: How often it is chosen, beside the others.
        lose: Loses it, and mends it, or leaves that to the task that it returns.
    """

    weight: int
    lose: Callable[[random.Random], Awaitable[Repair | None]]


class Backing(Protocol):
    """The databases that nodes stand on."""

    copies: int
    """The number of queues that each publication goes to."""

    @property
    def losses(self) -> Mapping[str, Loss]:
        """The parts of it that may be lost, by name."""

    async def open(self, nodes: int) -> Sequence[str]:
        """Start everything; the store's URL for each of so many nodes."""

    async def close(self) -> None:
        """End everything."""

    async def spread(self, queues: Sequence[str]) -> None:
        """See to it that not all queues of these names, which publications go to, are on the same server."""


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
    """Nodes on one store."""

    def __init__(self, backing: Backing, nodes: int = NODES, only: Sequence[str] = ()) -> None:
        """Lose nodes and what they stand on, by chance; or `only` what is named."""
        self._backing = backing
        self._number = nodes
        losses = {"node": Loss(_NODE_WEIGHT, self.lose_node), **backing.losses}
        self._losses = {name: losses[name] for name in only or losses}
        self._nodes: list[Server] = []
        self._repairs: dict[str, Repair] = {}

    async def open(self) -> None:
        """Start everything."""
        urls = await self._backing.open(self._number)
        self._nodes = [new_server(url, "--log-level", "error") for url in urls]
        for node in self._nodes:
            await asyncio.to_thread(node.start)

    async def close(self) -> None:
        """End everything."""
        for repair in self._repairs.values():
            await asyncio.wait([repair])
        for node in self._nodes:
            if node.process.poll() is None:
                node.kill()
        await self._backing.close()

    async def once(self, seed: int) -> tuple[list[NodeRound], NodeLoad]:
        """One round, for which everything is started and after which everything is ended: it, and its load.

        Raises:
            Violated: A promise was broken.
        """
        rounds: list[NodeRound] = []
        try:
            await self.open()
            load = await self.run([seed], rounds.append)
        finally:
            await self.close()
        return rounds, load

    async def run(self, seeds: Sequence[int], told: Callable[[NodeRound], None]) -> NodeLoad:
        """Rounds under one load, at whose end everything is accounted for.

        Raises:
            Violated: A promise was broken.
        """
        ports = [port_of(node) for node in self._nodes]
        async with under_load(ports, seeds[0], self._backing.copies) as load:
            await self._backing.spread([ledger.url.rpartition("/")[2] for ledger in load.copies])
            for seed in seeds:
                told(await while_working(load, self._round(load, seed)))
            for repair in self._repairs.values():
                await repair
            await settled(load, self._nodes)
        return load

    # ---- a round -----------------------------------------------------------------------------------------------

    async def _round(self, load: NodeLoad, seed: int) -> NodeRound:
        rng = random.Random(seed)
        began = time.monotonic()
        await calls(load, _CALLS)
        load.answers.begin()
        load.longest_wait = 0.0
        lost = self._next_loss(rng)
        repair = await self._losses[lost].lose(rng)
        if repair is not None:
            self._repairs[lost] = repair
        await calls(load, _CALLS)
        return NodeRound(seed, lost, load.answers.silence, load.longest_wait, time.monotonic() - began)

    def _next_loss(self, rng: random.Random) -> str:
        """The next thing to lose: of what is whole again since it was lost the last time."""
        for repair in self._repairs.values():
            if repair.done():
                repair.result()
        whole = [name for name in self._losses if name not in self._repairs or self._repairs[name].done()]
        return rng.choices(whole, [self._losses[name].weight for name in whole])[0]

    async def lose_node(self, rng: random.Random) -> Repair:
        """kill -9 of a node, which is started again while the next rounds go on."""
        node = rng.choice(self._nodes)
        node.kill()
        return asyncio.create_task(asyncio.to_thread(_restart, node), name="repair")


def _restart(node: Server) -> None:
    """Start a node, again and again as an init system would: it ends where it finds no database."""
    while True:
        try:
            node.start()
        except ServerFailedError:
            continue
        return

"""Rounds in which a node, the primary or a line is lost under load, while two other nodes and a standby are there."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crash.journal import Violated
from tests.crash.ledger import Ledger, check_all_or_none
from tests.crash.lines import Line, after
from tests.crash.node_load import NodeCaller, NodeLoad, Webhook
from tests.services.postgres_pair import PostgresPair
from tests.services.server import Server, ServerFailedError, new_server

NODES: Final = 3
_CALLS: Final = 40  # before a loss, and again after it is mended
_FLAWED_SECONDS: Final = (0.5, 6.0)  # how long a line is cut, stalls or is slow
_WEIGHTS: Final = {"node": 8, "primary": 8, "cut_line": 3, "stalled_line": 3, "slow_line": 2}
_SETTLED_SECONDS: Final = 150  # for what is owed in the end: leases of tasks and pushes are over after 60


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
        hook = Webhook()
        await hook.open()
        load = await self._prepared(hook, seeds[0])
        working = asyncio.create_task(load.run())
        try:
            for seed in seeds:
                told(await self._while_working(working, self._round(load, seed)))
            for repair in self._repairs.values():
                await repair
            load.sending = False
            await asyncio.wait_for(working, _SETTLED_SECONDS)
            await self._settled(load)
        finally:
            working.cancel()
            await asyncio.wait([working])
            await hook.close()
        return load

    async def _while_working(self, working: "asyncio.Task[None]", coming: Awaitable[NodeRound]) -> NodeRound:
        task = asyncio.ensure_future(coming)
        await asyncio.wait([working, task], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            task.cancel()
            working.result()
        return await task

    # ---- a round -----------------------------------------------------------------------------------------------

    async def _round(self, load: NodeLoad, seed: int) -> NodeRound:
        chance = random.Random(seed)
        began = time.monotonic()
        await _calls(load, _CALLS)
        load.silence.begin()
        load.longest_wait = 0.0
        lose = self._loss(chance)
        await lose(chance, load)
        await _calls(load, _CALLS)
        return NodeRound(
            seed, lose.__name__, load.silence.longest, load.longest_wait, time.monotonic() - began
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

    # ---- before and after --------------------------------------------------------------------------------------

    async def _prepared(self, hook: Webhook, seed: int) -> NodeLoad:
        load = NodeLoad(
            [int(node.url.rpartition(":")[2]) for node in self._nodes],
            random.Random(seed),
            *(Ledger("") for _ in range(2)),
            [Ledger(""), Ledger("")],
            Ledger(""),
            "",
            "arn:aws:sqs:us-east-1:000000000000:dead-" + str(seed),
            "arn:aws:sqs:us-east-1:000000000000:moved-" + str(seed),
            "",
            hook,
        )
        caller = NodeCaller(load.ports, load.chance, load.silence)

        async def queue(name: str, suffix: str = "", **attributes: str) -> str:
            name = f"{name}-{seed}{suffix}"
            answer = await caller.insist("CreateQueue", QueueName=name, Attributes=attributes)
            url: str = answer["QueueUrl"]
            return url

        load.standard.url = await queue("standard")
        load.fifo.url = await queue("fifo", ".fifo", FifoQueue="true")
        load.moved.url, load.dead_url = await queue("moved"), await queue("dead")
        await queue(
            "source", RedrivePolicy=f'{{"deadLetterTargetArn":"{load.dead_arn}","maxReceiveCount":"1"}}'
        )
        made = await caller.query("CreateTopic", Name=f"topic-{seed}")
        load.topic = next(element.text or "" for element in made.iter() if element.tag.endswith("TopicArn"))
        for number, ledger in enumerate(load.copies):
            ledger.url = await queue(f"copy-{number}")
            arn = f"arn:aws:sqs:us-east-1:000000000000:copy-{number}-{seed}"
            await _subscribe(caller, load.topic, "sqs", arn, RawMessageDelivery="true")
        retries = '"numRetries":60,"minDelayTarget":1,"maxDelayTarget":2,"backoffFunction":"linear"'
        schedule = f'{{"healthyRetryPolicy":{{{retries}}}}}'
        await _subscribe(caller, load.topic, "http", hook.url, DeliveryPolicy=schedule)
        await caller.query(
            "ConfirmSubscription", TopicArn=load.topic, Token=await asyncio.wait_for(hook.token, 60)
        )
        await caller.close()
        return load

    async def _settled(self, load: NodeLoad) -> None:
        """Everything acknowledged has come, once and in order, and every push was made."""
        until = time.monotonic() + _SETTLED_SECONDS
        while missing := load.published - load.hook.taken.keys():
            if time.monotonic() > until:
                raise Violated(
                    f"{len(missing)} publications did not reach the webhook: {sorted(missing)[:5]}"
                )
            await after(0.2)
        for ledger in (load.standard, load.fifo, load.moved, *load.copies):
            ledger.check_all_came()
        check_all_or_none(load.copies)
        for node in self._nodes:
            if "Traceback" in node.log.read_text():
                raise Violated(f"a node did not expect something: {node.log}")


def _restart(node: Server) -> None:
    """Start a node, again and again as an init system would: it ends where it finds no database."""
    while True:
        try:
            node.start()
        except ServerFailedError:
            continue
        return


async def _calls(load: NodeLoad, number: int) -> None:
    """Return when so many more calls were answered."""
    enough = load.calls + number
    while load.calls < enough:
        await after(0.05)


async def _subscribe(caller: NodeCaller, topic: str, protocol: str, endpoint: str, **attributes: str) -> None:
    entries: dict[str, str] = {}
    for number, (name, value) in enumerate(attributes.items(), start=1):
        entries |= {f"Attributes.entry.{number}.key": name, f"Attributes.entry.{number}.value": value}
    await caller.query("Subscribe", TopicArn=topic, Protocol=protocol, Endpoint=endpoint, **entries)


def run_directory() -> Path:
    """A directory for clusters, whose owner may be another user."""
    directory = Path(tempfile.mkdtemp(prefix="redrive-nodes-"))
    directory.chmod(0o755)
    return directory

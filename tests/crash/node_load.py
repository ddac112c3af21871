"""Callers of several nodes: whoever gets no answer from one asks another, and all write down what they know."""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import orjson
from aiohttp import web

from tests.crash.ledger import Answers, Ledger, Sent
from tests.crash.lines import after
from tests.crash.wire import Answer, Caller, Lost, Refused

LEASE_SECONDS: Final = 6
_ANSWER_SECONDS: Final = 12  # longer than a node waits for its database
_PAUSE_SECONDS: Final = 0.03  # between a caller's calls: others share this machine
_AGAIN_SECONDS: Final = 0.05  # before the next node is asked
_GROUPS: Final = 3
TASK_LETTERS: Final = 40
_UNAVAILABLE: Final = frozenset({429, 500, 503})
_FAILURES: Final = 2  # of a webhook, for each message


class NodeCaller:
    """One caller, who keeps a connection to each node and asks another when one does not answer."""

    def __init__(self, ports: Sequence[int], rng: random.Random, answers: Answers) -> None:
        """Ask the nodes at these ports, of which some may come and go meanwhile, as behind a load balancer."""
        self._ports = ports
        self._callers: dict[int, Caller] = {}
        self._port = rng.choice(ports)
        self._answers = answers
        self.longest = 0.0

    async def call(self, operation: str, **params: Any) -> Answer:
        """One try.

        Raises:
            Lost: Nobody knows what became of it.
            Refused: It was answered with an error that is none of the database's or the node's absence.
        """
        began = time.monotonic()
        try:
            caller = await self._caller()
            answer = await asyncio.wait_for(caller.call(operation, **params), _ANSWER_SECONDS)
        except (TimeoutError, Lost):
            await self._go_on(operation, "no answer")
            raise Lost(operation) from None
        except Refused as refusal:
            if refusal.status in _UNAVAILABLE:
                await self._go_on(operation, f"{refusal.status} {refusal.shape}")
                raise Lost(operation) from None
            raise
        self._answers.answered(time.monotonic() - began - params.get("WaitTimeSeconds", 0))
        return answer

    async def insist(self, operation: str, **params: Any) -> Answer:
        """The same call, until it is answered."""
        began = time.monotonic()
        while True:
            try:
                answer = await self.call(operation, **params)
            except Lost:
                await after(_AGAIN_SECONDS)
            else:
                self.longest = max(self.longest, time.monotonic() - began)
                return answer

    async def query(self, action: str, **params: str) -> ET.Element:
        """One try of an SNS call."""
        began = time.monotonic()
        body = urlencode({"Action": action, "Version": "2010-03-31", **params}).encode()
        headers = "Content-Type: application/x-www-form-urlencoded"
        try:
            caller = await self._caller()
            status, answered = await asyncio.wait_for(caller.ask("POST", "/", body, headers), _ANSWER_SECONDS)
        except (TimeoutError, Lost):
            await self._go_on(action, "no answer")
            raise Lost(action) from None
        if status in _UNAVAILABLE:
            await self._go_on(action, str(status))
            raise Lost(action)
        assert status == 200, answered
        self._answers.answered(time.monotonic() - began)
        return ET.fromstring(answered)

    async def close(self) -> None:
        """End the connections."""
        for caller in self._callers.values():
            await caller.close()

    async def _caller(self) -> Caller:
        """The connection to the node that is asked, or to the next where that takes no calls any more."""
        if self._port not in self._ports:
            await self._leave()
        return self._callers.setdefault(self._port, Caller(self._port))

    async def _go_on(self, operation: str, instead: str) -> None:
        self._answers.failed[f"{operation}: {instead}"] += 1
        await self._leave()

    async def _leave(self) -> None:
        if left := self._callers.pop(self._port, None):
            await left.close()
        at = self._ports.index(self._port) + 1 if self._port in self._ports else 0
        self._port = self._ports[at % len(self._ports)]


class Webhook:
    """An endpoint that fails twice for each message, and takes it then."""

    def __init__(self) -> None:
        self.attempts: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.token = asyncio.get_running_loop().create_future()
        self.url = ""

    async def open(self) -> None:
        application = web.Application()
        application.router.add_post("/", self._take)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        notification = orjson.loads(await request.read())
        if notification["Type"] == "SubscriptionConfirmation":
            if not self.token.done():
                self.token.set_result(notification["Token"])
            return web.Response()
        body = notification["Message"]
        self.attempts[body] += 1
        if self.attempts[body] <= _FAILURES:
            return web.Response(status=500)
        self.taken[body] += 1
        return web.Response()


@dataclass
class NodeLoad:
    """Everybody at work.

    Attributes:
        ports: Of the nodes that take calls; whoever adds or removes a node changes it.
        rng: Decides what is done next.
        standard: A standard queue.
        fifo: A FIFO queue.
        copies: The queues that are subscribed to one topic.
        moved: Where redrive tasks move dead letters to.
        hook: Subscribed to the topic as well, with a schedule of retries.
        working: The task of all callers.
    """

    ports: Sequence[int]
    rng: random.Random
    standard: Ledger
    fifo: Ledger
    copies: Sequence[Ledger]
    moved: Ledger
    dead_url: str
    dead_arn: str
    moved_arn: str
    topic: str
    hook: Webhook
    answers: Answers = field(default_factory=Answers)
    published: set[str] = field(default_factory=set)
    calls: int = 0
    longest_wait: float = 0.0
    tasks_done: int = 0
    sending: bool = True
    working: "asyncio.Task[None]" = field(init=False)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def run(self) -> None:
        """Work until `sending` is False and every queue is empty."""
        workers = [
            *(self._send() for _ in range(2)),
            *(self._send_fifo(name) for name in range(2)),
            self._publish(),
            self._redrive(),
            *(self._receive(ledger) for ledger in (self.standard, self.fifo, *self.copies, self.moved)),
        ]
        async with asyncio.TaskGroup() as group:
            for number, worker in enumerate(workers):
                group.create_task(worker, name=f"caller-{number}")

    def caller(self) -> NodeCaller:
        """Return somebody who calls these nodes."""
        return NodeCaller(self.ports, self.rng, self.answers)

    def _answered(self, caller: NodeCaller) -> None:
        self.calls += 1
        self.longest_wait, caller.longest = max(self.longest_wait, caller.longest), 0.0

    async def _send(self) -> None:
        caller = self.caller()
        while self.sending:
            entry = self.standard.sending(f"s{next(self._numbers)}")
            try:
                await caller.call("SendMessage", QueueUrl=self.standard.url, MessageBody=entry.body)
            except Lost:
                await after(_AGAIN_SECONDS)
            else:
                entry.acknowledged = True
                self._answered(caller)
            await after(_PAUSE_SECONDS)
        await caller.close()

    async def _send_fifo(self, sender: int) -> None:
        caller = self.caller()
        while self.sending:
            group = f"{sender}-{self.rng.randrange(_GROUPS)}"
            entry = self.fifo.sending(f"f{next(self._numbers)}", group)
            await caller.insist(
                "SendMessage",
                QueueUrl=self.fifo.url,
                MessageBody=entry.body,
                MessageGroupId=group,
                MessageDeduplicationId=entry.body,
            )
            entry.acknowledged = True
            self._answered(caller)
            await after(_PAUSE_SECONDS)
        await caller.close()

    async def _publish(self) -> None:
        caller = self.caller()
        while self.sending:
            body = f"p{next(self._numbers)}"
            entries = [ledger.sending(body) for ledger in self.copies]
            try:
                await caller.query("Publish", TopicArn=self.topic, Message=body)
            except Lost:
                await after(_AGAIN_SECONDS)
            else:
                self.published.add(body)
                for entry in entries:
                    entry.acknowledged = True
                self._answered(caller)
            await after(_PAUSE_SECONDS * 5)
        await caller.close()

    async def _redrive(self) -> None:
        """Fill the dead-letter queue, let a task empty it slowly, and see it to its end."""
        caller = self.caller()
        while self.sending:
            for _ in range(TASK_LETTERS):
                entry = self.moved.sending(f"d{next(self._numbers)}")
                try:
                    await caller.call("SendMessage", QueueUrl=self.dead_url, MessageBody=entry.body)
                except Lost:
                    await after(_AGAIN_SECONDS)
                else:
                    entry.acknowledged = True
            await self._move(caller)
        await self._move(caller)
        await caller.close()

    async def _move(self, caller: NodeCaller) -> None:
        try:
            await caller.insist(
                "StartMessageMoveTask",
                SourceArn=self.dead_arn,
                DestinationArn=self.moved_arn,
                MaxNumberOfMessagesPerSecond=20,
            )
        except Refused as refusal:  # one that was started without an answer
            if "already a task running" not in str(refusal):
                raise
        status = "RUNNING"
        while status == "RUNNING":
            await after(1)
            answer = await caller.insist("ListMessageMoveTasks", SourceArn=self.dead_arn)
            status = answer["Results"][0]["Status"]
        assert status == "COMPLETED", answer
        self.tasks_done += 1
        self._answered(caller)

    async def _receive(self, ledger: Ledger) -> None:
        caller = self.caller()
        messages: list[Answer] = []
        while self.sending or messages or self._is_owed(ledger):
            asked_at = time.monotonic()
            try:
                answer = await caller.call(
                    "ReceiveMessage",
                    QueueUrl=ledger.url,
                    MaxNumberOfMessages=10,
                    VisibilityTimeout=LEASE_SECONDS,
                    WaitTimeSeconds=1,
                )
            except Lost:
                await after(_AGAIN_SECONDS)
                continue
            messages = answer.get("Messages", [])
            entries = ledger.received([message["Body"] for message in messages], asked_at, LEASE_SECONDS)
            self._answered(caller)
            for entry, message in zip(entries, messages, strict=True):
                await self._delete(caller, ledger, entry, message["ReceiptHandle"])
        await caller.close()

    async def _delete(self, caller: NodeCaller, ledger: Ledger, entry: Sent, handle: str) -> None:
        if time.monotonic() > entry.held_until - LEASE_SECONDS / 3:
            return  # it may be somebody else's by the time the call arrives
        entry.deleted = None
        try:
            await caller.call("DeleteMessage", QueueUrl=ledger.url, ReceiptHandle=handle)
        except Lost:
            return
        except Refused:
            entry.deleted = False
            return
        if time.monotonic() < entry.held_until:  # later, a claim may have run out, and an answer says nothing
            entry.deleted = True

    def _is_owed(self, ledger: Ledger) -> bool:
        """True if something that was acknowledged did not come yet, or may come again."""
        now = time.monotonic()
        return any(_is_owed(entry, now) for entry in ledger.entries.values())


def _is_owed(entry: Sent, now: float) -> bool:
    if not entry.times:
        return entry.acknowledged
    if entry.deleted is None:
        return now < entry.held_until + LEASE_SECONDS
    return not entry.deleted

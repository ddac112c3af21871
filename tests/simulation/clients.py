"""Those who use the cluster: they send, receive, redrive and purge, and know nothing of what goes wrong inside."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from redrive.engine.engine import Engine
from redrive.engine.ports import Settled
from redrive.engine.receive.notifier import Cancellation
from redrive.model.delivery import Delivery
from redrive.model.errors import AlreadyExists, NotFound, Refused, StoreUnavailable
from redrive.model.queue import Queue
from redrive.model.topic import Attribute, Message, Publication, Subscription, Topic
from tests.simulation.ledger import Ledger, Subscribed
from tests.simulation.node import Life, Unanswered
from tests.simulation.options import DILIGENT, Manners, QueuePlan
from tests.simulation.subscribers import KINDS, SubscriptionPlan, TopicPlan
from tests.simulation.trace import Trace

T = TypeVar("T")

TRIES_MAX = 6  # before a client gives up; it tries each time at another node
WAIT_MS = 20_000  # as long as SQS lets a receiver wait
NEWS_MS_MAX = 6_000  # until every node has heard of a change, or that it missed some


class Surroundings(Protocol):
    """The cluster as clients see it."""

    ledger: Ledger
    trace: Trace

    def now(self) -> int:
        """The true time (ms)."""

    async def pause(self, milliseconds: float) -> None:
        """Wait."""

    async def some_life(self, rng: random.Random) -> Life:
        """A node that serves, as a load balancer would choose it."""


class Client:
    """Calls verbs, and calls them again where no answer came."""

    def __init__(self, name: str, around: Surroundings, rng: random.Random) -> None:
        self.name = name
        self.around = around
        self.rng = rng

    async def ask(self, verb: Callable[[Engine], Coroutine[Any, Any, T]]) -> T | None:
        """The answer of some node, or None where none came in several tries."""
        for _ in range(TRIES_MAX):
            life = await self.around.some_life(self.rng)
            try:
                return await life.call(verb)
            except (Unanswered, StoreUnavailable) as error:
                self.around.trace.note(self.name, "no answer from", life.name, repr(error))
                await self.around.pause(self.rng.uniform(1, 500))
        return None


class Sender(Client):
    """Sends messages, each body once, and again where it does not know whether that was heard."""

    async def run(self, queue: Queue, plan: QueuePlan, over_ms: int) -> None:
        """Send all messages of the plan, spread over that time."""
        sent = 0
        while sent < plan.messages:
            number = min(self.rng.randint(1, 5), plan.messages - sent)
            await self.send(queue, [self._message(queue, plan, sent + one) for one in range(number)])
            sent += number
            await self.around.pause(self.rng.uniform(0, 2 * over_ms / plan.messages))

    async def send(self, queue: Queue, batch: Sequence[Message]) -> None:
        """Send some messages in one call."""
        self.around.ledger.sending(queue, batch, self.around.now())
        answers = await self.ask(lambda engine: engine.messages.send(queue, _fresh(batch, engine)))
        if answers is not None:
            told = [f"{one.body} is #{answer.seq}" for one, answer in zip(batch, answers, strict=True)]
            self.around.trace.note(self.name, "is told:", *told)
            self.around.ledger.sent(self.name, batch, answers)

    def _message(self, queue: Queue, plan: QueuePlan, number: int) -> Message:
        body = f"{self.name}-{number}"
        delay_ms = self.rng.choice((0, 500, 10_000)) if self.rng.random() < plan.delays else None
        return Message(
            id=b"",
            body=body,
            group_id=f"g{self.rng.randrange(plan.groups)}" if plan.groups else None,
            deduplication_id=body if queue.ordered and not plan.deduplicates_content else None,
            delay_ms=delay_ms,
        )


def _fresh(batch: Sequence[Message], engine: Engine) -> list[Message]:
    """The messages as a facade makes them of a request: with ids that no others have."""
    return [replace(one, id=engine.runtime.message_id()) for one in batch]


class Publisher(Client):
    """Publishes messages to a topic, each body once, and again where it does not know whether that was heard."""

    async def run(self, topic: Topic, plan: TopicPlan, over_ms: int) -> None:
        """Publish all messages of the plan, spread over that time."""
        for number in range(plan.messages):
            group_id = f"g{self.rng.randrange(plan.groups)}" if plan.groups else None
            kind = self.rng.choice(KINDS)
            await self._publish(topic, f"{self.name}-{number}{kind}", group_id)
            await self.around.pause(self.rng.uniform(0, 2 * over_ms / plan.messages))

    async def _publish(self, topic: Topic, body: str, group_id: str | None) -> None:
        began = self.around.now()
        self.around.ledger.publishing(body, began)
        answers = await self.ask(
            lambda engine: engine.messages.publish(topic, [_publication(engine, body, group_id)])
        )
        if answers is not None:
            self.around.trace.note(self.name, "is told that", repr(body), "is published")
            self.around.ledger.published(topic.name.name, body, began)


def _publication(engine: Engine, body: str, group_id: str | None) -> Publication:
    kind = body[-1]
    return Publication(
        id=engine.runtime.message_id(),
        body=body,
        bodies={},
        attributes={"kind": Attribute("String", kind)},
        envelope=b"{}",
        bytes_published=len(body),
        group_id=group_id,
        deduplication_id=None if group_id is None else body,
        document={"eventType": kind},
    )


class Consumer(Client):
    """Receives, works, and says what came of it, in time or not."""

    def __init__(self, name: str, around: Surroundings, rng: random.Random, manners: Manners) -> None:
        super().__init__(name, around, rng)
        self.manners = manners

    async def run(self, queue: Queue) -> None:
        """Consume for ever."""
        while True:
            for work in await self._receive(queue):
                await self._settle(queue, work)

    async def _receive(self, queue: Queue) -> list[list[Delivery]]:
        """Receive messages, and return them in the portions in which they are worked at."""
        diligent = self.manners is DILIGENT
        limit = self.rng.randint(1, 10)
        wait_ms = WAIT_MS if diligent else self.rng.choice((0, 5_000, WAIT_MS))
        lease_ms = None if diligent else self.rng.choice((None, None, 500, 10_000))
        attempt_id = self._attempt_id() if queue.ordered and self._does(self.manners.repeated) else None
        gone = self._listening(wait_ms)
        asked = self.around.ledger.moment()
        try:
            deliveries = await self.ask(
                lambda engine: engine.messages.receive(
                    queue, limit, lease_ms=lease_ms, wait_ms=wait_ms, attempt_id=attempt_id, cancellation=gone
                )
            )
        finally:
            gone.happen()
        if not deliveries:
            await self.around.pause(1 if diligent else self.rng.uniform(1, 5_000))
            return []
        self.around.trace.note(self.name, "gets", *(f"#{one.seq} {one.body!r}" for one in deliveries))
        self.around.ledger.received(asked, deliveries, self.around.now())
        return [deliveries] if self.rng.random() < 0.5 else [[one] for one in deliveries]

    def _listening(self, wait_ms: int) -> Cancellation:
        """Tells when this consumer hears no more; some hang up while they wait."""
        gone = Cancellation()
        if self._does(self.manners.hung_up):
            asyncio.get_running_loop().call_later(self.rng.uniform(0, wait_ms) / 1000, gone.happen)
            self.around.trace.mark("hung up")
        return gone

    async def _settle(self, queue: Queue, work: list[Delivery]) -> None:
        manners, lease_ms = self.manners, queue.lease_ms
        if self._does(manners.forgotten):
            return
        if self._does(manners.given_back):
            await self._extend(queue, work, self.rng.choice((0, 0, 2_000)))
            return
        if self._does(manners.extended):
            await self._extend(queue, work, 2 * lease_ms)
        if self._does(manners.slow):
            await self.around.pause(self.rng.uniform(0.5, 3) * lease_ms)
        elif manners is not DILIGENT:
            await self.around.pause(self.rng.uniform(0, 200))
        await self._delete(queue, work)

    async def _extend(self, queue: Queue, work: list[Delivery], lease_ms: int) -> None:
        claims = [(one.seq, one.token or 0, lease_ms) for one in work]
        await self.ask(lambda engine: engine.messages.extend(queue, claims))

    async def _delete(self, queue: Queue, work: list[Delivery]) -> None:
        self.around.ledger.asked_to_delete(work)
        claims = [(one.seq, one.token or 0) for one in work]
        answers: list[Settled] | None = await self.ask(lambda engine: engine.messages.delete(queue, claims))
        if answers is not None:
            self.around.ledger.answered(work, answers)

    def _does(self, share: float) -> bool:
        return self.rng.random() < share

    def _attempt_id(self) -> str:
        return f"{self.name}-{self.rng.getrandbits(32):08x}"


class Operator(Client):
    """Redrives dead letters, purges queues and changes their tags, now and then."""

    async def redrive(self, source: Queue, origins: Sequence[Queue], every_ms: int) -> None:
        """Start move tasks, home or elsewhere, and cancel some."""
        while True:
            await self.around.pause(self.rng.expovariate(1 / every_ms))
            try:
                await self._redrive(source, self.rng.choice((None, None, None, *origins)))
            except (NotFound, Refused) as refusal:
                self.around.trace.note(self.name, repr(refusal))

    async def _redrive(self, source: Queue, destination: Queue | None) -> None:
        rate_max = self.rng.choice((None, None, 20, 1))
        task = await self.ask(lambda engine: engine.operations.redrives.start(source, destination, rate_max))
        if task is not None and self.rng.random() < 0.3:
            await self.around.pause(self.rng.uniform(0, 5_000))
            await self.ask(lambda engine: engine.operations.redrives.cancel(source.name, task.id))

    async def subscribe(
        self, wanted: Subscription, plan: SubscriptionPlan, enters: int | None, after_ms: float
    ) -> None:
        """Subscribe, after a while; `enters` is the queue that the messages go to, or the backlog where None."""
        await self.around.pause(after_ms)
        made = None
        while made is None:
            made = await self.ask(lambda engine: _subscribed(engine, wanted))
        self.around.trace.note(self.name, "is told that", made.id, "is subscribed")
        if made.confirmed:
            queue_id, since = made.queue_id if enters is None else enters, self.around.now() + NEWS_MS_MAX
            self.around.ledger.subscribed.append(Subscribed(plan, queue_id, since))

    async def purge(self, queue: Queue, every_ms: int) -> None:
        """Empty a queue."""
        while True:
            await self.around.pause(self.rng.expovariate(1 / every_ms))
            self.around.ledger.books.purges.add(queue.id)
            await self.ask(lambda engine: engine.messages.purge(queue))

    async def relabel(self, queue: Queue, every_ms: int) -> None:
        """Count a tag up by one."""
        while True:
            await self.around.pause(self.rng.expovariate(1 / every_ms))
            life = await self.around.some_life(self.rng)
            self.around.ledger.labels_asked += 1
            try:
                await life.call(lambda engine: engine.resources.queues.label(queue.name, one_more))
            except (Unanswered, StoreUnavailable):
                continue
            self.around.ledger.labels_heard += 1


async def _subscribed(engine: Engine, wanted: Subscription) -> Subscription | None:
    try:
        return await engine.resources.subscriptions.create(wanted)
    except AlreadyExists:  # it was, and the answer was lost
        return await engine.resources.subscriptions.get(wanted.topic, wanted.id)


LABEL = "times"


def one_more(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags with the count one higher."""
    return {**tags, LABEL: str(int(tags.get(LABEL, 0)) + 1)}

"""Administrators: they make, change and delete topics, subscriptions and queues while nodes die.

They remember what they were told of each.
"""

import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import AlreadyExists, NotFound, StoreUnavailable
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from tests.simulation.clients import TRIES_MAX, Client, Surroundings
from tests.simulation.documents import Configuration
from tests.simulation.node import Unanswered
from tests.simulation.options import HANG_MS_MAX
from tests.simulation.rules import Rule, require
from tests.simulation.subscribers import PLAIN

T = TypeVar("T")

NAMES: Final = 2  # of each kind an administrator has so many, so that it often meets what it made before
_LIFE_MS_MAX: Final = 60_000  # of a subscription that ends
_ENDS: Final = 0.3  # of subscriptions
_AGAIN: Final = 0.5  # of what is deleted is made again at once, on whichever node
_LOOKS: Final = 2  # at what is about to be deleted
_MADE: Final = "made"


def named(name: str) -> ResourceName:
    """A name in the account and region of administrators."""
    return ResourceName("7", "here", name)


@dataclass
class Told:
    """The last answers to administrators, by the key of a document.

    Attributes:
        topics: Whether the topic stands; None: nobody knows.
        queues: The same of queues.
        subscriptions: The same of subscriptions.
        doubtful_until: Until when (ms) a call whose node died may still be carried out, by the document's key.
    """

    topics: dict[str, bool | None] = field(default_factory=dict)
    queues: dict[str, bool | None] = field(default_factory=dict)
    subscriptions: dict[str, bool | None] = field(default_factory=dict)
    doubtful_until: dict[str, int] = field(default_factory=dict)

    def check(self, stored: Configuration) -> None:
        """Check that acknowledged documents stand, and deleted ones are gone."""
        for told, there in (
            (self.topics, stored.topics.keys()),
            (self.queues, stored.queues.keys()),
            (self.subscriptions, stored.subscriptions.keys()),
        ):
            for key, stands in told.items():
                require(stands is not True or key in there, Rule.LOST, key, "was acknowledged")
                require(stands is not False or key not in there, Rule.BACK, key, "was deleted")


class Administrator(Client):
    """Makes, changes and deletes resources, its own and what belongs to them, one call at a time."""

    def __init__(self, name: str, around: Surroundings, rng: random.Random, told: Told) -> None:
        super().__init__(name, around, rng)
        self._told = told

    async def run(self, others: str, every_ms: int) -> None:
        """Go on for ever; subscribe at one's own topics, and at those of another administrator."""
        actions: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self._make_topic, self._make_queue, self._change_queue, self._delete_queue, self._delete_topic),
            *(partial(self._subscribe, self.name), partial(self._subscribe, others)),
            *(partial(self._unsubscribe, self.name), partial(self._unsubscribe, others)),
            *(self._change_subscription, self._make_all_at_once),
        )
        while True:
            await self.around.pause(self.rng.expovariate(1 / every_ms))
            await self.rng.choice(actions)()

    # ---- queues --------------------------------------------------------------------------------------------

    async def _make_queue(self) -> None:
        name = self._name("q")
        await self._tell(
            self._told.queues, name.key, True, lambda engine: _made_queue(engine, Queue(0, name))
        )

    async def _change_queue(self) -> None:
        name, delay_ms = self._name("q"), self.rng.randint(1, 900_000)
        known = self._told.queues.get(name.key)
        changed = await self._tell(
            self._told.queues, name.key, known, lambda engine: _changed_queue(engine, name, delay_ms)
        )
        require(changed is not False or not known, Rule.LOST, name.key, "was acknowledged and is not found")

    async def _delete_queue(self) -> None:
        name = self._name("q")
        await self._look(lambda engine: engine.resources.queues.get(name))
        await self._tell(self._told.queues, name.key, False, lambda engine: _deleted_queue(engine, name))
        if self.rng.random() < _AGAIN:
            await self._tell(
                self._told.queues, name.key, True, lambda engine: _made_queue(engine, Queue(0, name))
            )

    # ---- topics --------------------------------------------------------------------------------------------

    async def _make_topic(self) -> None:
        wanted = Topic(0, self._name("t"), PLAIN, ordered=self.rng.random() < 0.5)
        await self._tell(self._told.topics, wanted.name.key, True, lambda engine: _made_topic(engine, wanted))

    async def _delete_topic(self) -> None:
        """With its subscriptions, whoever made them: nobody knows then who was faster."""
        name = self._name("t")
        beginning = f"{name.key}/"
        for key in [key for key in self._told.subscriptions if key.startswith(beginning)]:
            self._told.subscriptions[key] = None
        await self._look(lambda engine: engine.resources.topics.get(name))
        await self._tell(self._told.topics, name.key, False, lambda engine: _deleted_topic(engine, name))
        if self.rng.random() < _AGAIN:
            wanted = Topic(0, name, PLAIN)
            await self._tell(self._told.topics, name.key, True, lambda engine: _made_topic(engine, wanted))

    # ---- subscriptions -------------------------------------------------------------------------------------

    async def _subscribe(self, whose: str) -> None:
        wanted = self._wanted(whose)
        stays = whose == self.name and wanted.expires_at is None and self._is_certain(wanted.topic.key)
        answer = await self._tell(
            self._told.subscriptions,
            wanted.key,
            None,
            lambda engine: _made_subscription(engine, wanted),
        )
        if answer == _MADE and stays and self._is_certain(wanted.key):
            self._told.subscriptions[wanted.key] = True

    async def _change_subscription(self) -> None:
        wanted = self._wanted(self.name)
        await self._tell(
            self._told.subscriptions, wanted.key, None, lambda engine: _changed_subscription(engine, wanted)
        )

    async def _unsubscribe(self, whose: str) -> None:
        wanted = self._wanted(whose)
        await self._tell(
            self._told.subscriptions, wanted.key, False, lambda engine: _unsubscribed(engine, wanted)
        )

    async def _make_all_at_once(self) -> None:
        """As an event subscription is made: with its topic, what keeps its letters, and a queue to be received from."""
        wanted = self._wanted(self.name)
        self._told.subscriptions[wanted.key] = None
        await self._tell(self._told.topics, wanted.topic.key, True, lambda engine: _made_all(engine, wanted))

    # ---- being told ----------------------------------------------------------------------------------------

    async def _look(self, verb: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        """Let nodes remember what is there before it is deleted; it may be that one does not hear of that."""
        for _ in range(_LOOKS):
            life = await self.around.some_life(self.rng)
            with contextlib.suppress(Unanswered, StoreUnavailable):
                await life.call(verb)

    async def _tell(
        self,
        told: dict[str, bool | None],
        key: str,
        stands: bool | None,
        verb: Callable[[Engine], Coroutine[Any, Any, T]],
    ) -> T | None:
        """Ask some node, again where no answer came, and note whether the document stands when it answered."""
        told[key] = None
        for _ in range(TRIES_MAX):
            life = await self.around.some_life(self.rng)
            try:
                answer = await life.call(verb)
            except (Unanswered, StoreUnavailable) as error:
                if isinstance(error, Unanswered):  # a call that hangs outlives its node
                    self._told.doubtful_until[key] = self.around.now() + HANG_MS_MAX
                await self.around.pause(self.rng.uniform(1, 500))
                continue
            if self._is_certain(key):
                told[key] = stands
            self.around.trace.note(self.name, verb.__qualname__, key, answer)
            self.around.trace.mark("configured")
            self.around.trace.mark("configured after a node died", key in self._told.doubtful_until)
            return answer
        return None

    def _is_certain(self, key: str) -> bool:
        """True if no call is under way that could still change the document."""
        return self.around.now() >= self._told.doubtful_until.get(key, 0)

    def _name(self, kind: str) -> ResourceName:
        return named(f"{self.name}-{kind}{self.rng.randrange(NAMES)}")

    def _wanted(self, whose: str) -> Subscription:
        """A subscription of this administrator's, at a topic of its own or another's; the odd ones are elsewhere too."""
        number = self.rng.randrange(NAMES)
        own_id = f"{self.name}-{number}"
        ends_at = self.around.now() + self.rng.randint(1, _LIFE_MS_MAX)
        return Subscription(
            id=own_id,
            topic=named(f"{whose}-t{self.rng.randrange(NAMES)}"),
            queue_id=0,
            owner="8" if number % 2 else "7",
            protocol="push",
            endpoint=own_id,
            expires_at=ends_at if self.rng.random() < _ENDS else None,
            subscriber=own_id if number % 2 else None,
        )


# ---- verbs that answer alike when they are repeated --------------------------------------------------------------


async def _made_queue(engine: Engine, wanted: Queue) -> None:
    with contextlib.suppress(AlreadyExists):
        await engine.resources.queues.create(wanted)


async def _changed_queue(engine: Engine, name: ResourceName, delay_ms: int) -> bool:
    try:
        await engine.resources.queues.update(name, lambda queue: replace(queue, delay_ms=delay_ms))
    except NotFound:
        return False
    return True


async def _deleted_queue(engine: Engine, name: ResourceName) -> None:
    queue = await engine.resources.queues.get_stored(name)
    if queue is not None:
        await engine.resources.queues.delete(queue)


async def _made_topic(engine: Engine, wanted: Topic) -> None:
    with contextlib.suppress(AlreadyExists):
        await engine.resources.topics.create(wanted)


async def _deleted_topic(engine: Engine, name: ResourceName) -> None:
    topic = await engine.resources.topics.get_stored(name)
    if topic is not None:
        await engine.resources.topics.delete(topic)


async def _made_subscription(engine: Engine, wanted: Subscription) -> str:
    try:
        await engine.resources.subscriptions.create(wanted)
    except (AlreadyExists, NotFound) as refusal:
        return repr(refusal)
    return _MADE


async def _changed_subscription(engine: Engine, wanted: Subscription) -> str:
    try:
        await engine.resources.subscriptions.update(
            wanted, lambda current: replace(current, raw=not current.raw, expires_at=wanted.expires_at)
        )
    except NotFound as refusal:
        return repr(refusal)
    return "changed"


async def _unsubscribed(engine: Engine, wanted: Subscription) -> None:
    subscriptions = engine.resources.subscriptions

    async def write(draft: Draft) -> None:
        found = await subscriptions.get_in(draft, wanted.topic, wanted.id)
        if found is not None:
            await subscriptions.delete_in(draft, found)

    await engine.resources.write(write)


async def _made_all(engine: Engine, wanted: Subscription) -> None:
    resources = engine.resources

    async def write(draft: Draft) -> None:
        if await resources.topics.get_in(draft, wanted.topic) is None:
            await resources.topics.create_in(draft, Topic(0, wanted.topic, PLAIN))
        await resources.subscriptions.put_in(
            draft, replace(wanted, id=f"{wanted.id}-letters", subscriber=None)
        )
        made = await resources.subscriptions.put_in(draft, wanted)
        served = named(f"{wanted.topic.name}-{wanted.id}")
        await resources.queues.put_in(draft, Queue(0, served, serves=made.key))

    await resources.write(write)

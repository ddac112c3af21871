"""The engine: the one door. A facade parses, authorises, and calls a verb of `messages`, `resources`, `operations`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from redrive.engine.configuration.dead_letter_sources import DeadLetterSources
from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.messages import Messages
from redrive.engine.node.contexts import SubscriptionContexts
from redrive.engine.node.counters import NodeCounters
from redrive.engine.node.fault_injection import FaultInjection
from redrive.engine.node.listeners import Listeners
from redrive.engine.node.sealed_store import DocumentSeals, MessageSeals, SealedStore
from redrive.engine.operations import Operations
from redrive.engine.ports import (
    DeliveryProfile,
    DocumentKind,
    DocumentSealing,
    Endpoint,
    MessageSealing,
    MessageStore,
    Runtime,
    Store,
)
from redrive.engine.ports.facts import Listener
from redrive.engine.publish.fan_out import TopicPublisher
from redrive.engine.publish.sender import Publisher
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.push.conditions import EndpointConditions
from redrive.engine.push.dispatcher import Dispatcher
from redrive.engine.push.late_pushes import LatePushes, SoftTimeout
from redrive.engine.push.retrier import SettleRetrier
from redrive.engine.push.settlement import PushParts
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.receive.receiver import Receiver
from redrive.engine.receive.settler import Settler
from redrive.engine.resources import Resources, Subscriptions
from redrive.engine.sweep import Sweeper
from redrive.engine.tasks.chosen import ChosenMoves
from redrive.engine.tasks.dead_letters import DeadLetters
from redrive.engine.tasks.redrive import Redriver
from redrive.engine.tasks.replay import Replayer
from redrive.engine.tracing import Tracer
from redrive.engine.upgrade import Upgrade
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)

# Every queue is swept twice a minute (the shortest retention is a minute), and a dead node's tasks are taken up.
ROUND_MS = 30_000


class Engine:
    """Topics, subscriptions, queues and the deliveries between them, on one store.

    Attributes:
        messages: Publish, send, receive, settle.
        resources: Topics, subscriptions, queues and documents.
        operations: Redrive, replays, dead letters, circuit breakers, faults.
        runtime: Time and chance, as handed in.
        clock: The runtime's.
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        profiles: Mapping[str, DeliveryProfile] | None = None,
        endpoints: Mapping[str, Endpoint] | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Put the parts together; nothing runs before `open`.

        What needs the engine itself to be made is added by `add_profile`, `add_endpoint` and `add_listener`.

        Args:
            store: What survives.
            runtime: Time and chance.
            profiles: The facades' parts in delivering, by the dialect that topics carry.
            endpoints: What deliveries are pushed to, by the protocol that subscriptions carry.
            listeners: Told of everything that happens.
        """
        self._seals = seals = MessageSeals()
        self._document_seals = DocumentSeals()
        # For all that carries bodies or documents.
        self._sealed_store = sealed = SealedStore(store, seals, self._document_seals)
        self._store = store
        self.runtime = runtime
        self.clock = clock = runtime.clock
        self._connected = False
        self._opened = False
        self._profiles = dict(profiles or {})
        self._endpoints = dict(endpoints or {})
        self._listeners = heard = Listeners(listeners)
        self._counters = NodeCounters()
        self._faults = FaultInjection()
        self._directory = Directory(sealed, runtime.first_version)
        self._notifier = QueueNotifier(clock)
        self._queues = Queues(sealed, self._directory, clock)
        self._subscriptions = Subscriptions(sealed, self._directory, self._queues, clock)
        self._topics = Topics(sealed, self._directory, self._queues, self._subscriptions, clock)
        self.resources = Resources(self._topics, self._subscriptions, self._queues, self._directory)
        self._contexts = SubscriptionContexts(self._profiles)
        self._publisher = Publisher(sealed, clock, self._notifier, self._counters, heard, seals)
        self._receiver = Receiver(sealed, store, runtime, self._queues, self._notifier, self._counters, heard)
        self._settler = Settler(
            store, clock, self._queues, self._notifier, self._receiver.in_flight, self._counters, heard
        )
        self._redriver = Redriver(store, runtime, self.resources, self._notifier, self._counters)
        self._chosen = ChosenMoves(sealed, store, runtime, self.resources, self._notifier, self._counters)
        self._dead_letters = DeadLetters(
            store,
            clock,
            self.resources,
            DeadLetterSources(self._directory, self._subscriptions, self._profiles.keys()),
        )
        self._circuits = CircuitBreakers(self._directory, runtime.node)
        self._sweeper = Sweeper(
            store,
            clock,
            self.resources,
            self._circuits,
            self._counters,
            heard,
            self._receiver.end_unasked,
            self._forget,
        )
        self._topic_publisher = TopicPublisher(
            sealed,
            store,
            runtime,
            self._queues,
            self._topics,
            self._notifier,
            self._contexts,
            self._faults,
            heard,
            seals,
        )
        self._dispatcher = self._new_dispatcher(sealed)
        self._replayer = Replayer(
            store, runtime, self.resources, self._notifier, self._topic_publisher, seals
        )
        self._open_door()

    def _new_dispatcher(self, messages: MessageStore) -> Dispatcher:
        """The part that claims messages and pushes them."""
        return Dispatcher(
            PushParts(
                store=messages,
                queue_store=self._store,
                runtime=self.runtime,
                queues=self._queues,
                notifier=self._notifier,
                contexts=self._contexts,
                endpoints=self._endpoints,
                faults=self._faults,
                listeners=self._listeners,
                publisher=self._topic_publisher,
                circuits=self._circuits,
                retrier=SettleRetrier(self.clock),
                soft_timeout=SoftTimeout(self.clock),
                late_pushes=LatePushes(self.clock),
                seals=self._seals,
            ),
            self._topics,
        )

    def _open_door(self) -> None:
        """The three objects that callers use, made of the parts."""
        self.messages = Messages(
            self._store,
            self.clock,
            self._queues,
            self._topic_publisher,
            self._publisher,
            self._receiver,
            self._settler,
            self._sweeper,
            self._notifier,
        )
        self.operations = Operations(
            self._redriver,
            self._chosen,
            self._replayer,
            self._dead_letters,
            Tracer(self._store, self.clock, self._queues, self._topics, self._dead_letters),
            self._circuits,
            EndpointConditions(
                self._store, self._topics, self._queues, self._contexts, self._endpoints, self._circuits
            ),
            self._dispatcher,
            self._faults,
            self._sweeper,
            self._counters,
        )

    def add_profile(self, dialect: str, profile: DeliveryProfile) -> None:
        """Deliver what is published to topics of this dialect by this profile; before `open`."""
        self._refuse_once_open()
        self._profiles[dialect] = profile

    def seal_by(self, sealing: MessageSealing, documents: DocumentSealing) -> None:
        """Encrypt messages by the one, and documents of secret kinds by the other; before `open`."""
        self._refuse_once_open()
        self._seals.sealing = sealing
        self._document_seals.sealing = documents

    def add_kinds(self, kinds: Iterable[DocumentKind[Any]]) -> None:
        """Keep documents of these kinds; before `open`, since secret ones are sealed."""
        self._refuse_once_open()
        self._document_seals.kinds.update(kind.name for kind in kinds if kind.secret)

    def add_endpoint(self, protocol: str, endpoint: Endpoint) -> None:
        """Push deliveries of subscriptions with this protocol here; before `open`."""
        self._refuse_once_open()
        self._endpoints[protocol] = endpoint

    def add_listener(self, listener: Listener, *names: str) -> None:
        """Tell a listener what happens, before `open`.

        Args:
            listener: The listener.
            names: The dialects of the topics, and the names of the profiles, whose facts it hears; none: all.
        """
        self._refuse_once_open()
        self._listeners.add(listener, *names)

    def watch(self, listener: Listener, *names: str) -> None:
        """As `add_listener`, also after `open`: from now on, and until `unwatch`."""
        self._listeners.add(listener, *names)

    def unwatch(self, listener: Listener) -> None:
        """Tell it no more; it may say so while it is told something."""
        self._listeners.remove(listener)

    def _refuse_once_open(self) -> None:
        if self._opened:
            raise RuntimeError("the engine is open: profiles, endpoints and listeners are added before")

    @property
    def attempts(self) -> int:
        """The number of deliveries that this node has tried to push since its start."""
        return self._dispatcher.attempts

    async def connect(self) -> None:
        """Open the store: what is in it can be read, and nothing is taken up yet."""
        self._connected = True
        self._store.listen(self._arrived, self._directory.forget)
        await self._store.open()

    async def open(self) -> None:
        """Take up the backlogs, once the store is open; what is pushed to, and who listens, is settled by now."""
        self._opened = True
        if not self._connected:
            await self.connect()
        await Upgrade(self._directory, self._queues, self._subscriptions, self._sealed_store).run()
        await self._dispatcher.open()

    async def check(self) -> None:
        """Go the way a message goes, to the disk.

        Raises:
            StoreUnavailable: The store does not answer, or keeps nothing.
        """
        await self._store.check()

    async def quiet(self) -> None:
        """Return when nothing that was set off is under way any more."""
        await self._replayer.quiet()
        await self._dispatcher.quiet()
        await self._store.flush()

    @property
    def is_quiet(self) -> bool:
        """True if `quiet` would return at once."""
        return self._store.is_idle and self._dispatcher.is_quiet and self._replayer.is_quiet

    def deferring(self) -> AbstractAsyncContextManager[None]:
        """See `Store.deferring`."""
        return self._store.deferring()

    async def run(self) -> None:
        """Carry on move tasks and replays, look into backlogs and sweep, each for itself, until cancelled.

        Sweeping what a million deliveries left takes minutes, in which a dead node's backlogs must be looked into.
        """
        async with asyncio.TaskGroup() as lines:
            for work in (self._carry_on_round, self._dispatcher.look_round, self._sweeper.round):
                lines.create_task(self._every_round(work))

    async def tidy(self) -> None:
        """One round of upkeep: carry on tasks and replays, and sweep."""
        await self._carry_on()
        await self._sweeper.round()

    async def _carry_on(self) -> int | None:
        """Carry on tasks and replays that nobody works at; the moment (ms) when the first lease of the others ends."""
        leases = (await self._redriver.take_up(), await self._replayer.round())
        return min((ends for ends in leases if ends is not None), default=None)

    async def _carry_on_round(self) -> None:
        """Carry on what nobody works at, and again at each lease's end: a dead node's task waits no round besides."""
        round_ends = self.clock.now() + ROUND_MS
        lease_ends = await self._carry_on()
        while lease_ends is not None and lease_ends < round_ends:
            await self.clock.sleep_until(lease_ends)
            lease_ends = await self._carry_on()

    async def _every_round(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do some upkeep again and again; a store that is away is tried again in the next round."""
        while True:
            began = self.clock.now()
            try:
                await work()
            except StoreUnavailable as error:
                logger.warning("upkeep.interrupted error=%s", error)
            await self.clock.sleep_until(began + ROUND_MS)

    async def reset(self) -> None:
        """Remove every topic and queue with all that is in it, every task, and the memory of what was removed."""
        await self._redriver.reset()
        await self._replayer.reset()
        while topics := await self._topics.all_after("", limit=100):
            for topic in topics:
                await self._topics.delete(topic)
        await self._circuits.sweep(self._subscriptions.is_there)
        while queues := await self._queues.all_after("", limit=100):
            for queue in queues:
                await self._queues.delete(queue)
        for tombstone in await self._queues.tombstones():
            await self._sweeper.empty(tombstone)
            await self._queues.forget(tombstone)
            self._forget(tombstone.id)

    def stop_receiving(self) -> None:
        """Answer whoever waits for messages with nothing, and let nobody wait any more."""
        self._receiver.close()

    async def drain(self, seconds: float) -> None:
        """Take up nothing any more, and let attempts end that are under way, for so long."""
        await self._dispatcher.drain(seconds)

    async def close(self) -> None:
        """Let waiting receivers go, leave move tasks to the next start, and close the store."""
        self._receiver.close()
        await self._dispatcher.close()
        await self._redriver.stop()
        await self._replayer.close()
        await self._store.close()

    def _forget(self, queue_id: int) -> None:
        self._counters.forget(queue_id)
        self._receiver.in_flight.forget(queue_id)
        self._notifier.unwatch(queue_id)

    def _arrived(self, queue_id: int) -> None:
        if queue_id:
            self._notifier.announce(queue_id)
        else:
            self._notifier.announce_all()

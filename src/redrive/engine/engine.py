"""The engine: the one door. A facade parses, authorises, and calls a verb of `messages`, `resources`, `operations`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from redrive.engine.messages import Messages
from redrive.engine.operations import Operations
from redrive.engine.parts import EngineParts
from redrive.engine.ports import (
    DeliveryProfile,
    DocumentKind,
    DocumentSealing,
    Endpoint,
    MessageSealing,
    Runtime,
    Store,
)
from redrive.engine.ports.facts import Listener
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
        parts: What carries these out.
        runtime: Clock and random numbers, as passed in.
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
            runtime: Clock and random numbers.
            profiles: The facades' parts in delivering, by the dialect that topics carry.
            endpoints: What deliveries are pushed to, by the protocol that subscriptions carry.
            listeners: Told of everything that happens.
        """
        self.parts = parts = EngineParts(
            store, runtime, dict(profiles or {}), dict(endpoints or {}), listeners
        )
        self.runtime = runtime
        self.clock = runtime.clock
        self._is_connected = False
        self._is_open = False
        self.messages = Messages(parts)
        self.resources = parts.resources
        self.operations = Operations(parts)

    def add_profile(self, dialect: str, profile: DeliveryProfile) -> None:
        """Deliver what is published to topics of this dialect by this profile; before `open`."""
        self._refuse_once_open()
        self.parts.profiles[dialect] = profile

    def seal_by(self, sealing: MessageSealing, documents: DocumentSealing) -> None:
        """Encrypt messages by the one, and documents of secret kinds by the other; before `open`."""
        self._refuse_once_open()
        self.parts.seals.sealing = sealing
        self.parts.document_seals.sealing = documents

    def add_kinds(self, kinds: Iterable[DocumentKind[Any]]) -> None:
        """Keep documents of these kinds; before `open`, since secret ones are sealed."""
        self._refuse_once_open()
        self.parts.document_seals.kinds.update(kind.name for kind in kinds if kind.secret)

    def add_endpoint(self, protocol: str, endpoint: Endpoint) -> None:
        """Push deliveries of subscriptions with this protocol here; before `open`."""
        self._refuse_once_open()
        self.parts.endpoints[protocol] = endpoint

    def add_listener(self, listener: Listener, *names: str) -> None:
        """Tell a listener what happens, before `open`.

        It hears facts of topics of the dialects, and of the profiles, that `names` has; none: all.
        """
        self._refuse_once_open()
        self.parts.listeners.add(listener, *names)

    def watch(self, listener: Listener, *names: str) -> None:
        """As `add_listener`, also after `open`: from now on, and until `unwatch`."""
        self.parts.listeners.add(listener, *names)

    def unwatch(self, listener: Listener) -> None:
        """Remove a listener, which may do so while it hears a fact."""
        self.parts.listeners.remove(listener)

    def _refuse_once_open(self) -> None:
        if self._is_open:
            raise RuntimeError("the engine is open: profiles, endpoints and listeners are added before")

    @property
    def attempts(self) -> int:
        """The number of deliveries that this node has tried to push since its start."""
        return self.parts.counters.attempts

    async def connect(self) -> None:
        """Open the store: what is in it can be read, and nothing is taken up yet."""
        self._is_connected = True
        self.parts.store.listen(self._announce_arrivals, self.parts.directory.forget)
        await self.parts.store.open()

    async def open(self) -> None:
        """Open the store if `connect` has not, and take up the backlogs; endpoints and listeners were added before."""
        self._is_open = True
        if not self._is_connected:
            await self.connect()
        await Upgrade(
            self.parts.directory, self.parts.queues, self.parts.subscriptions, self.parts.sealed_store
        ).run()
        await self.parts.dispatcher.open()

    async def check(self) -> None:
        """Go the way a message goes, to the disk.

        Raises:
            StoreUnavailable: The store does not answer, or keeps nothing.
        """
        await self.parts.store.check()

    async def until_quiet(self) -> None:
        """Return when nothing that was set off is under way any more."""
        await self.parts.replayer.until_quiet()
        await self.parts.dispatcher.until_quiet()
        await self.parts.store.flush()

    @property
    def is_quiet(self) -> bool:
        """True if `until_quiet` would return at once."""
        return self.parts.store.is_idle and self.parts.dispatcher.is_quiet and self.parts.replayer.is_quiet

    def deferring(self) -> AbstractAsyncContextManager[None]:
        """See `Store.deferring`."""
        return self.parts.store.deferring()

    async def run(self) -> None:
        """Carry on move tasks and replays, look into backlogs and sweep, each for itself, until cancelled.

        Sweeping what a million deliveries left takes minutes, in which a dead node's backlogs must be looked into.
        """
        async with asyncio.TaskGroup() as group:
            for work in (self._carry_on_round, self.parts.dispatcher.look_round, self.parts.sweeper.round):
                group.create_task(self._every_round(work))

    async def tidy(self) -> None:
        """One round of upkeep: carry on tasks and replays, and sweep."""
        await self._carry_on()
        await self.parts.sweeper.round()

    async def _carry_on(self) -> int | None:
        """Resume tasks and replays that no node works on; the moment (ms) when the first lease of the others ends."""
        leases = (await self.parts.redriver.take_up(), await self.parts.replayer.round())
        return min((ends for ends in leases if ends is not None), default=None)

    async def _carry_on_round(self) -> None:
        """Resume what no node works on, and again when a lease ends, so that a dead node's task does not wait a round."""
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
        await self.parts.redriver.reset()
        await self.parts.replayer.reset()
        while topics := await self.parts.topics.all_after("", limit=100):
            for topic in topics:
                await self.parts.topics.delete(topic)
        await self.parts.circuits.sweep(self.parts.subscriptions.exists)
        while queues := await self.parts.queues.all_after("", limit=100):
            for queue in queues:
                await self.parts.queues.delete(queue)
        for tombstone in await self.parts.queues.tombstones():
            await self.parts.sweeper.empty(tombstone)
            await self.parts.queues.forget(tombstone)
            self.parts.forget(tombstone.id)

    def stop_receiving(self) -> None:
        """Answer all waiting receives with nothing, and make later ones return at once."""
        self.parts.receiver.close()

    async def drain(self, seconds: float) -> None:
        """Begin no further attempts, and wait so long for the end of those under way."""
        await self.parts.dispatcher.drain(seconds)

    async def close(self) -> None:
        """Let waiting receivers go, leave move tasks to the next start, and close the store."""
        self.parts.receiver.close()
        await self.parts.dispatcher.close()
        await self.parts.redriver.stop()
        await self.parts.replayer.close()
        await self.parts.store.close()

    def _announce_arrivals(self, queue_id: int) -> None:
        if queue_id:
            self.parts.notifier.announce(queue_id)
        else:
            self.parts.notifier.announce_all()

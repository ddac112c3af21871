"""The engine: the one door. A facade parses, authorises, and calls one verb of this."""

import logging

from redrive.engine.arrivals import Arrivals
from redrive.engine.directory import Directory
from redrive.engine.measure import Measure
from redrive.engine.ports import Runtime, Store
from redrive.engine.publish import Publisher
from redrive.engine.queues import Queues
from redrive.engine.receive import Receiver
from redrive.engine.redrive import Redriver
from redrive.engine.settle import Settler
from redrive.engine.sweep import Sweeper
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

# Every queue is swept twice a minute (the shortest retention is a minute), and a dead node's tasks are taken up.
ROUND_MS = 30_000


class Engine:
    """Queues and the deliveries in them, on one store.

    The verbs, in the order a message lives them: `publisher.send`, `receiver.receive`, `settler.delete` or `extend`,
    `redriver.start`, and the sweep behind them all. `queues` are the places, `store.peek` and `store.count` look
    without touching.
    """

    def __init__(self, store: Store, runtime: Runtime) -> None:
        """Put the parts together; nothing runs before `open`."""
        self.store = store
        self.runtime = runtime
        self.clock = runtime.clock
        self.measure = Measure()
        self.directory = Directory(store)
        self.arrivals = Arrivals(runtime.clock)
        self.queues = Queues(store, self.directory, runtime.clock)
        self.publisher = Publisher(store, runtime.clock, self.arrivals, self.measure)
        self.receiver = Receiver(store, runtime, self.queues, self.arrivals, self.measure)
        self.settler = Settler(store, runtime.clock, self.arrivals, self.receiver.flights, self.measure)
        self.redriver = Redriver(store, runtime, self.directory, self.queues, self.arrivals, self.measure)
        self.sweeper = Sweeper(store, runtime.clock, self.queues, self.measure)

    async def open(self) -> None:
        """Open the store."""
        self.store.listen(self._arrived, self.directory.forget)
        await self.store.open()

    async def run(self) -> None:
        """Carry on move tasks and sweep, until cancelled; a store that is away is tried again in the next round."""
        while True:
            began = self.clock.now()
            try:
                await self.redriver.take_up()
                await self.sweeper.round()
            except StoreUnavailable as error:
                logger.warning("upkeep.interrupted error=%s", error)
            await self.clock.sleep_until(began + ROUND_MS)

    async def purge(self, queue: Queue) -> int:
        """Remove all that is in a queue now, claimed or not; how many."""
        await self.queues.note_purge(queue)
        return await self.sweeper.purge(queue.id)

    async def reset(self) -> None:
        """Remove every queue with all that is in it, every task, and the memory of what was removed."""
        await self.redriver.reset()
        while queues := await self.queues.all_after("", limit=100):
            for queue in queues:
                await self.queues.delete(queue)
        for grave in await self.queues.graves():
            await self.sweeper.empty(grave)
            await self.queues.forget(grave)

    async def close(self) -> None:
        """Let waiting receivers go, leave move tasks to the next start, and close the store."""
        self.receiver.close()
        await self.redriver.stop()
        await self.store.close()

    def _arrived(self, queue_id: int) -> None:
        if queue_id:
            self.arrivals.announce(queue_id)
        else:
            self.arrivals.announce_all()

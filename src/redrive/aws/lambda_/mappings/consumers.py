"""The consumers of a node: one for each mapping that is enabled, whoever made it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from redrive.aws.lambda_.documents.records import MAPPING, EventSourceMapping
from redrive.aws.lambda_.mappings.consuming import MappingConsumer
from redrive.engine.engine import Engine
from redrive.engine.upkeep import Upkeep

logger = logging.getLogger(__name__)

#: Mappings that another node made or changed are taken up after so long at most.
ROUND_MS: Final = 10_000
#: What claims or settles goes on to the next thing within moments, and tells nobody.
_LOOK_SECONDS: Final = 0.001


class MappingConsumers:
    """Consumes queues for mappings."""

    def __init__(
        self, engine: Engine, consumer: Callable[[EventSourceMapping], MappingConsumer], *, simulated: bool
    ) -> None:
        self._engine = engine
        self._consumer = consumer
        self._consumers: dict[str, MappingConsumer] = {}
        self._stopped: list[MappingConsumer] = []
        # `simulated`: the clock is a simulated one, and this node the only one: nothing changes unheard
        self._upkeep = Upkeep(self.follow, engine.clock, ROUND_MS, "mappings.unread", once=simulated)
        self._lock = asyncio.Lock()

    def start(self) -> None:
        """Begin to consume."""
        self._upkeep.start()

    async def follow(self) -> None:
        """Consume for the mappings that are there now, as they are now."""
        async with self._lock:
            mappings = dict(await self._engine.resources.documents.entries(MAPPING))
            enabled = {key: mapping for key, mapping in mappings.items() if mapping.enabled}
            for key, consumer in list(self._consumers.items()):
                if enabled.get(key) != consumer.mapping:
                    consumer.stop()
                    self._stopped.append(self._consumers.pop(key))
            for key, mapping in enabled.items():
                if key not in self._consumers:
                    self._consumers[key] = self._consumer(mapping)

    @property
    def is_quiet(self) -> bool:
        """True if every consumer waits for messages, or for a moment."""
        return all(consumer.is_quiet for consumer in self._all)

    async def quiet(self) -> None:
        """Return when no invocation is under way, and none is about to begin."""
        while not self.is_quiet:
            running = [invocation for consumer in self._all for invocation in consumer.running]
            work = running or [task for consumer in self._all for task in consumer.work]
            timeout = None if running else _LOOK_SECONDS
            await asyncio.wait(work, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _all(self) -> list[MappingConsumer]:
        """Those that consume, and those that were stopped and have not come to an end."""
        self._stopped = [consumer for consumer in self._stopped if not consumer.ended]
        return [*self._consumers.values(), *self._stopped]

    async def close(self) -> None:
        """Stop consuming; what was not finished is received again."""
        await self._upkeep.close()
        await asyncio.gather(*(consumer.close() for consumer in self._all))

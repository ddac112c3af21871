"""Consuming queues for functions, a consumer for each enabled mapping: claims, invocations, and their ends.

What succeeded is deleted. What failed stays claimed until the queue's visibility timeout is over, and goes the queue's
own way then: to be received again, or to its dead-letter queue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from redrive.access.principals import Principal
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.records import MAPPING, EventSourceMapping
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.metrics import FAILED, FAILED_IN_PART, SUCCEEDED, InvocationMetrics
from redrive.aws.lambda_.mappings import batches
from redrive.aws.lambda_.mappings.batches import Item, MappingFilter
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.messages import Cancellation
from redrive.engine.upkeep import Upkeep
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.errors import StoreUnavailable
from redrive.model.function import InvocationResult, Throttled
from redrive.model.names import id_text
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

#: Invocations of a mapping that a node makes at once, where it names no number: what AWS begins with.
AT_ONCE: Final = 5
#: Messages claimed in one call: a claim of thousands would keep others from the store.
_CLAIM_MAX: Final = 500
#: How long the first message is waited for, before queue and function are looked at again; news wakes the wait.
WAIT_MS: Final = 20_000
#: The same on a simulated clock, each of whose moments costs a round.
SIMULATED_WAIT_MS: Final = 60 * 60 * 1000
_AGAIN_MS: Final = 1_000  # until a store that was away is asked again, or a throttled function
#: Until a queue or a function is looked for again that was not there, or was switched off.
_MISSING_MS: Final = 10_000
_BACK_OFF_MS_MAX: Final = 10_000

Show = Callable[[Queue, Delivery], Awaitable[Structure]]


class QueueReaders(Protocol):
    """Knows who may use the keys of a queue's messages (`redrive.aws.sqs.receiving.Readers`)."""

    async def may_read(self, queue: Queue, principal: Principal) -> bool:
        """Returns whether a principal may read a queue, as far as that is known before its messages are claimed."""
        ...

    async def readable_by(
        self, queue: Queue, principal: Principal, deliveries: Sequence[Delivery]
    ) -> list[Delivery]:
        """The claimed messages that a principal may read; the others stay claimed for their time."""
        ...


class _Source(NamedTuple):
    """The queue of a mapping, and the principal that consumes it."""

    queue: Queue
    consumer: Principal


class MappingConsumer:
    """Consumes one queue for one mapping, until it is stopped."""

    def __init__(
        self,
        engine: Engine,
        lookup: Lookup,
        executor: Executor,
        show: Show,  # as SQS shows a claimed delivery to receivers
        mapping: EventSourceMapping,
        metrics: InvocationMetrics,
        roles: ExecutionRoles,
        wait_ms: int = WAIT_MS,  # for the first message, before queue and function are looked at again
        readers: QueueReaders | None = None,  # None: no message has a key
    ) -> None:
        self.mapping = mapping
        self._engine = engine
        self._lookup = lookup
        self._executor = executor
        self._show = show
        self._readers = readers
        self._metrics = metrics
        self._roles = roles
        self._missing_action = ""  # the action that the role lacked when it was asked last
        self._wait_ms = wait_ms
        self._filter = MappingFilter(mapping.filters)
        self._batches: set[asyncio.Task[None]] = set()
        self._invocations: set[asyncio.Future[InvocationResult]] = set()
        self._cancellation = Cancellation()
        self._pauses = False  # until a moment, or until a batch has ended
        self._backing_off = 0  # batches that wait until a throttled function may be tried again
        self._consumer_task = asyncio.get_running_loop().create_task(self._consume())

    @property
    def invocations(self) -> Sequence["asyncio.Future[InvocationResult]"]:
        """The invocations under way."""
        return list(self._invocations)

    @property
    def is_quiet(self) -> bool:
        """True if it waits for news or for a moment, and so does each batch."""
        waits = self._pauses or self._cancellation.waits or self._consumer_task.done()
        return waits and self._backing_off == len(self._batches)

    @property
    def work(self) -> Sequence["asyncio.Future[Any]"]:
        """The tasks that have not come to an end."""
        return [*self._batches, *([] if self._consumer_task.done() else [self._consumer_task])]

    @property
    def is_ended(self) -> bool:
        """True if nothing of it is left."""
        return self._consumer_task.done() and not self._batches

    def stop(self) -> None:
        """Take no more messages; batches under way come to their ends."""
        self._cancellation.happen()

    async def close(self) -> None:
        """Give up whatever is under way."""
        tasks: list[asyncio.Future[Any]] = [self._consumer_task, *self._batches, *self._invocations]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- claims ------------------------------------------------------------------------------------------

    async def _consume(self) -> None:
        """Receive batch after batch until the mapping ends, some at once."""
        at_once = self.mapping.concurrency_max or AT_ONCE
        while not self._cancellation.happened:
            if len(self._batches) >= at_once:
                await self._wait_for_room()
                continue
            try:
                goes_on = await self._next()
            except StoreUnavailable as error:
                logger.warning("mapping.interrupted mapping=%s error=%s", self.mapping.id, error)
                await self._pause(_AGAIN_MS)
                continue
            if not goes_on:
                return

    async def _wait_for_room(self) -> None:
        self._pauses = True
        try:
            await asyncio.wait(self._batches, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._pauses = False

    async def _next(self) -> bool:
        """Begin the next batch, as soon as there is one; False: the wait for it was cut short, by a stop."""
        source = await self._source()
        if source is None:
            await self._pause(_MISSING_MS)
            return True
        queue = source.queue
        began = self._engine.clock.now()
        deliveries = await self._claim(queue)
        if not deliveries:
            return self._engine.clock.now() >= began + self._wait_ms
        source = await self._source()
        if source is None:  # a right was taken away while it waited
            await self._give_back(queue, [delivery for delivery in deliveries if not is_sealed(delivery)])
        elif readable := await self._readable(source, deliveries):
            self._count("PolledEventCount", len(readable))
            self._start(queue, readable)
        return True

    async def _readable(self, source: _Source, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """The messages whose keys can be used, and by the role: a message that was moved here brings its own key."""
        if self._readers is None:
            return [delivery for delivery in deliveries if not is_sealed(delivery)]
        return await self._readers.readable_by(source.queue, source.consumer, deliveries)

    async def _source(self) -> _Source | None:
        """The queue, if the function may run and its role may consume the queue: else every claim would count in vain."""
        queue = await self._engine.resources.queues.get(self.mapping.queue)
        target = await self._lookup.at(self.mapping.reference.arn)
        if queue is None or target is None or target.function.reserved == 0:
            return None
        missing = await self._roles.missing_of_source(target.configuration, queue)
        if missing != self._missing_action:
            self._missing_action = missing
            if missing:
                logger.warning("mapping.refused mapping=%s: its role lacks %s", self.mapping.id, missing)
        if missing:
            return None
        source = _Source(queue, await self._roles.principal(target.configuration))
        return source if self._readers is None or await self._readers.may_read(*source) else None

    async def _give_back(self, queue: Queue, deliveries: Sequence[Delivery]) -> None:
        claims = [(delivery.seq, delivery.token or 0, 0) for delivery in deliveries]
        await self._engine.messages.extend(queue, claims)

    async def _claim(self, queue: Queue) -> list[Delivery]:
        """The messages of the next batch: those that are there, and those that come while it is gathered."""
        size, window_ms = self.mapping.batch_size, self.mapping.window_seconds * 1000
        deliveries = await self._receive(queue, size, self._wait_ms)
        until = self._engine.clock.now() + window_ms
        while deliveries and window_ms and len(deliveries) < size and not self._cancellation.happened:
            remaining_ms = until - self._engine.clock.now()
            more = await self._receive(queue, size - len(deliveries), max(0, remaining_ms))
            if not more and self._engine.clock.now() >= until:
                break
            deliveries += more
        return deliveries

    async def _receive(self, queue: Queue, limit: int, wait_ms: int) -> list[Delivery]:
        receive, most = self._engine.messages.receive, min(limit, _CLAIM_MAX)
        return await receive(queue, most, wait_ms=wait_ms, cancellation=self._cancellation)

    async def _pause(self, milliseconds: int) -> None:
        self._pauses = True
        try:
            await self._engine.clock.sleep_until(self._engine.clock.now() + milliseconds)
        finally:
            self._pauses = False

    def _start(self, queue: Queue, deliveries: Sequence[Delivery]) -> None:
        batch = asyncio.get_running_loop().create_task(self._run(queue, deliveries))
        self._batches.add(batch)
        batch.add_done_callback(self._batches.discard)

    # ---- a batch -----------------------------------------------------------------------------------------

    async def _run(self, queue: Queue, deliveries: Sequence[Delivery]) -> None:
        """Delete what the filter leaves out of a batch, and invoke the function with the rest.

        After a fault of the server itself the messages come back.
        """
        try:
            items = [
                batches.item_of(self.mapping, each, await self._show(queue, each)) for each in deliveries
            ]
            matches = [item for item in items if self._filter.matches(item.record)]
            filtered_out = [item.claim for item in items if not self._filter.matches(item.record)]
            if filtered_out:
                await self._delete(queue, filtered_out)
                self._count("FilteredOutEventCount", len(filtered_out))
            for event_items in batches.split(matches):
                await self._invoke(queue, event_items)
        except StoreUnavailable as error:
            logger.warning("mapping.interrupted mapping=%s error=%s", self.mapping.id, error)
        except Exception:
            logger.exception("mapping.failed mapping=%s: its messages come back", self.mapping.id)

    async def _invoke(self, queue: Queue, items: Sequence[Item]) -> None:
        """Invoke the function with a batch, count the outcome and delete the messages that succeeded."""
        result = await self._result(items)
        if result is not None:
            self._count("InvokedEventCount", len(items))
        if result is None or result.failed:
            self._count("FailedInvokeEventCount", len(items))
            self._metrics.count_batch(self.mapping, FAILED, len(items))
            return
        failed_ids = batches.failed_of(result.payload, items) if self.mapping.partial else ()
        settled_claims = [item.claim for item in items if item.record["messageId"] not in failed_ids]
        self._count("FailedInvokeEventCount", len(items) - len(settled_claims))
        outcome = SUCCEEDED
        if len(settled_claims) < len(items):
            outcome = FAILED_IN_PART if settled_claims else FAILED
        self._metrics.count_batch(self.mapping, outcome, len(items))
        if settled_claims:
            await self._delete(queue, settled_claims)

    async def _delete(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> None:
        await self._engine.messages.delete(queue, claims)
        self._count("DeletedEventCount", len(claims))

    def _count(self, metric: str, messages: int) -> None:
        self._metrics.count_mapping(self.mapping, metric, messages)

    async def _result(self, items: Sequence[Item]) -> InvocationResult | None:
        """The function's answer; None: there is no function, or it was throttled for as long as the claims hold."""
        clock, wait_ms = self._engine.clock, _AGAIN_MS
        until = min(item.delivery.available_at for item in items)
        request_id = id_text(self._engine.runtime.message_id())
        arn = self.mapping.reference.arn
        while (target := await self._lookup.at(arn)) is not None:
            version = await self._lookup.choose_version(target, self._engine.runtime.rng)
            try:
                invocation = asyncio.ensure_future(
                    self._executor.run(target, version, arn, batches.event_of(items), request_id)
                )
                self._invocations.add(invocation)
                invocation.add_done_callback(self._invocations.discard)
                return await invocation
            except (Throttled, VariablesUnreadable):
                if clock.now() + wait_ms >= until:
                    return None
            await self._back_off(wait_ms)
            wait_ms = min(2 * wait_ms, _BACK_OFF_MS_MAX)
        return None

    async def _back_off(self, milliseconds: int) -> None:
        self._backing_off += 1
        try:
            await self._engine.clock.sleep_until(self._engine.clock.now() + milliseconds)
        finally:
            self._backing_off -= 1


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
            enabled_mappings = {key: mapping for key, mapping in mappings.items() if mapping.enabled}
            for key, consumer in list(self._consumers.items()):
                if enabled_mappings.get(key) != consumer.mapping:
                    consumer.stop()
                    self._stopped.append(self._consumers.pop(key))
            for key, mapping in enabled_mappings.items():
                if key not in self._consumers:
                    self._consumers[key] = self._consumer(mapping)

    @property
    def is_quiet(self) -> bool:
        """True if every consumer waits for messages, or for a moment."""
        return all(consumer.is_quiet for consumer in self._all)

    async def until_quiet(self) -> None:
        """Return when no invocation is under way, and none is about to begin."""
        while not self.is_quiet:
            invocations = [invocation for consumer in self._all for invocation in consumer.invocations]
            work = invocations or [task for consumer in self._all for task in consumer.work]
            timeout = None if invocations else _LOOK_SECONDS
            await asyncio.wait(work, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _all(self) -> list[MappingConsumer]:
        """Those that consume, and those that were stopped and have not come to an end."""
        self._stopped = [consumer for consumer in self._stopped if not consumer.is_ended]
        return [*self._consumers.values(), *self._stopped]

    async def close(self) -> None:
        """Stop consuming; what was not finished is received again."""
        await self._upkeep.close()
        await asyncio.gather(*(consumer.close() for consumer in self._all))

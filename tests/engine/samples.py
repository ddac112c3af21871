"""Queues and messages with everything that a test does not care about filled in."""

from collections.abc import Sequence
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import MoveTarget, Settlement
from redrive.model.delivery import Outcome
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Message


def named(text: str) -> ResourceName:
    """A name in the account and region of these tests."""
    return ResourceName("1", "here", text)


async def make_queue(engine: Engine, text: str, *, dead_letters: Queue | None = None, **fields: Any) -> Queue:
    """A queue; exhausted deliveries go to `dead_letters` after one attempt."""
    target = None if dead_letters is None else DeadLetterTarget(dead_letters.name, 1)
    return await engine.resources.queues.create(Queue(0, named(text), dead_letter=target, **fields))


async def send(engine: Engine, queue: Queue, *texts: str, **fields: Any) -> None:
    """Send these bodies in one call."""
    messages = [Message(engine.runtime.message_id(), text, **fields) for text in texts]
    await engine.messages.send(queue, messages)


async def mark_deleted(engine: Engine, origin: Queue, dead_letters: Queue, *texts: str) -> None:
    """Let these bodies die in `origin`, so that they are dead letters."""
    await send(engine, origin, *texts)
    claimed = await engine.messages.receive(origin, len(texts), wait_ms=0)
    target = MoveTarget(dead_letters.id, dead_letters.ordered)
    endings = [Settlement(one.seq, one.token or 0, Outcome.DEAD_LETTERED, target=target) for one in claimed]
    await engine.parts.store.settle(origin.id, endings, engine.clock.now(), ordered=origin.ordered)


async def bodies(engine: Engine, queue: Queue) -> list[str]:
    """Return the bodies in a queue, in order of arrival."""
    return [one.body for one in await engine.parts.store.peek(queue.id, 10_000)]


def numbered(number: int) -> Sequence[str]:
    """So many different bodies."""
    return [f"m{one}" for one in range(number)]

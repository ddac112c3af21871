import pytest

from redrive.engine import tracing
from redrive.engine.engine import Engine
from tests.engine.samples import make_queue, named, send


async def traced(engine: Engine, message_id: bytes) -> tuple[list[str], bool]:
    """The queues that a trace finds the message in, and whether it was partial."""
    where = named("")
    trace = await engine.operations.trace(where.account, where.region, message_id.hex())
    return [found.queue.name.name for found in trace.deliveries if found.queue], trace.partial


async def test_a_trace_looks_through_the_callers_queues_alone(engine: Engine) -> None:
    queue = await make_queue(engine, "orders")
    await send(engine, queue, "a", "b")
    first, second = await engine.messages.peek(queue, 2)
    assert await traced(engine, second.message_id) == (["orders"], False)
    elsewhere = await engine.operations.trace("210987654321", named("").region, first.message_id.hex())
    assert elsewhere.deliveries == []


async def test_a_queue_that_is_too_long_makes_a_trace_partial(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "DELIVERIES_MAX", 2)
    queue = await make_queue(engine, "orders")
    await send(engine, queue, "a", "b", "c")
    first, _, third = await engine.messages.peek(queue, 3)
    assert await traced(engine, first.message_id) == (["orders"], True)
    assert await traced(engine, third.message_id) == ([], True)


async def test_too_many_places_make_a_trace_partial(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "PLACES_MAX", 1)
    await make_queue(engine, "a")
    queue = await make_queue(engine, "b")
    await send(engine, queue, "a")
    (delivery,) = await engine.messages.peek(queue, 1)
    assert await traced(engine, delivery.message_id) == ([], True)

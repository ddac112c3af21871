"""Matching of events: filters on events beside filter policies, and subscriptions that have expired."""

import random
from typing import Any

from redrive.model.filtering import FilterVerdict
from redrive.model.topic import EVENTS
from redrive.testing import VirtualClock
from tests.engine.stage import Stage


async def test_an_event_reaches_the_subscriptions_whose_filters_match(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    bodies = {}
    for one in ("placed", "paid", "all"):
        queue = await stage.queue(one)
        fields: dict[str, Any] = {"filter_text": f'{{"includedEventTypes":["{one}"]}}'}
        await stage.subscribe(
            topic, one, f"queue:{one}", filter_language=EVENTS, **({} if one == "all" else fields)
        )
        bodies[one] = queue
    await stage.publish(topic, '{"type":"paid"}')
    await stage.publish(topic, "no event")
    found = {one: len(await stage.bodies_in(queue)) for one, queue in bodies.items()}
    assert found == {"placed": 0, "paid": 1, "all": 2}
    assert stage.memory.filtered_out == {FilterVerdict.EVENT: 3}
    await stage.engine.close()


async def test_an_expired_subscription_receives_nothing(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    first, second = await stage.queue("first"), await stage.queue("second")
    end = clock.now() + 1000
    await stage.subscribe(topic, "a", "queue:first", expires_at=end)
    await stage.subscribe(topic, "b", "queue:second", expires_at=end + 1000)
    await stage.publish(topic, "before")
    await clock.sleep_until(end)
    await stage.publish(topic, "after")
    assert await stage.bodies_in(first) == ["before"]
    assert await stage.bodies_in(second) == ["before", "after"]
    await stage.engine.close()

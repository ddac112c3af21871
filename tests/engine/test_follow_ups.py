"""Several topics in one transaction, and what the end of a delivery leads to."""

import logging
import random

import pytest

from redrive.engine.ports import FollowUp
from redrive.model.topic import Publication, Topic
from redrive.testing import VirtualClock
from tests.engine.stage import Stage, name

pytestmark = pytest.mark.usefixtures("pushes")


def publication(stage: Stage, body: str, *, group_id: str | None = None) -> Publication:
    return Publication(
        stage.engine.runtime.message_id(), body, {}, {}, b'{"x":1}', len(body), group_id=group_id
    )


async def test_several_topics_are_published_to_at_once(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    one, other = await stage.topic("one"), await stage.topic("other")
    first, second = await stage.queue("first"), await stage.queue("second")
    await stage.subscribe(one, "s", "queue:first")
    await stage.subscribe(other, "s", "queue:second")
    pairs = [
        (one, [publication(stage, "a"), publication(stage, "b")]),
        (other, [publication(stage, "c")]),
    ]
    answers = await stage.engine.messages.publish_each(pairs)
    assert [[place.message_id for place in places] for places in answers] == [
        [message.id for message in messages] for _, messages in pairs
    ]
    assert await stage.bodies_in(first) == ["a", "b"]
    assert await stage.bodies_in(second) == ["c"]
    assert stage.memory.published_messages == 3
    await stage.engine.close()


async def test_several_ordered_topics_know_their_repetitions_apart(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    ordered = {"ordered": True, "deduplicates_content": True}
    topics = [await stage.topic("one.fifo", **ordered), await stage.topic("other.fifo", **ordered)]
    queue = await stage.queue("q.fifo", ordered=True)
    for topic in topics:
        await stage.subscribe(topic, "s", "queue:q.fifo")
    publish = stage.engine.messages.publish_each
    await publish([(topics[0], [publication(stage, "same", group_id="g")])])
    answers = await publish([(topic, [publication(stage, "same", group_id="g")]) for topic in topics])
    assert [place.repeated for (place,) in answers] == [True, False]
    assert await stage.bodies_in(queue) == ["same", "same"]
    with pytest.raises(ValueError, match="at once"):
        await publish(
            [(topics[0], [publication(stage, "x")]), (await stage.topic("t"), [publication(stage, "x")])]
        )
    await stage.engine.close()


async def _lead(stage: Stage, *consequences: FollowUp) -> None:
    """As the dispatcher does, but for the settlement that they are part of."""
    led = await stage.engine.parts.topic_publisher.route_follow_ups(consequences, stage.clock.now())
    await stage.store.enqueue(led.new_deliveries)
    stage.engine.parts.topic_publisher.tell(led)


async def test_a_follow_up_is_published_to_every_matching_subscription(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, queue = await stage.topic(), await stage.queue("q")
    await stage.subscribe(topic, "into a queue", "queue:q")
    await stage.subscribe(topic, "pushed", "somewhere")
    await stage.subscribe(topic, "not yet", "elsewhere", confirmed=False)
    await _lead(stage, FollowUp(topic.name, publication(stage, "it ended"), delay_ms=5_000))
    assert [fact.subscription.id for fact in stage.memory.attempts] == ["into a queue"]
    assert await stage.engine.messages.receive(queue, 1) == []
    await clock.sleep_until(clock.now() + 5_000)
    await stage.engine.until_quiet()
    (received,) = await stage.engine.messages.receive(queue, 1)
    assert received.body == "it ended"
    assert stage.endpoint.pushed == [(clock.now(), "it ended")]
    assert stage.memory.published_messages == 1
    await stage.engine.close()


async def test_a_follow_up_addressed_to_a_subscription_reaches_it_alone_when_due(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    await stage.subscribe(topic, "store", "the store", confirmed=False)
    await stage.subscribe(topic, "other", "queue:q")
    queue = await stage.queue("q")
    began = clock.now()
    await _lead(stage, FollowUp(topic.name, publication(stage, "dead"), "store", delay_ms=300_000))
    await clock.sleep_until(began + 299_999)
    await stage.engine.until_quiet()
    assert stage.endpoint.pushed == []
    await clock.sleep_until(began + 300_000)
    await stage.engine.until_quiet()
    assert stage.endpoint.pushed == [(began + 300_000, "dead")]
    assert await stage.bodies_in(queue) == []
    assert stage.memory.published_messages == 0
    await stage.engine.close()


async def test_a_follow_up_without_a_delay_is_pushed_at_once(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    await stage.subscribe(topic, "store", "the store", confirmed=False)
    await _lead(stage, FollowUp(topic.name, publication(stage, "dead"), "store"))
    await stage.engine.until_quiet()
    assert stage.endpoint.pushed == [(clock.now(), "dead")]
    await stage.engine.close()


async def test_a_follow_up_without_a_topic_or_subscription_is_logged_and_dropped(
    caplog: pytest.LogCaptureFixture, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic: Topic = await stage.topic()
    with caplog.at_level(logging.DEBUG, "redrive.engine.publish.fan_out"):
        led = await stage.engine.parts.topic_publisher.route_follow_ups(
            [
                FollowUp(name("gone"), publication(stage, "a")),
                FollowUp(topic.name, publication(stage, "b"), "unsubscribed"),
                FollowUp(topic.name, publication(stage, "c")),
            ],
            clock.now(),
        )
    assert led.new_deliveries == []
    assert [one.publication.body for one in led.routed] == ["c"]
    assert [(one.message.split()[0], one.levelname) for one in caplog.records] == [
        ("publish.nowhere", "DEBUG"),
        ("publish.nowhere", "WARNING"),
    ]
    await stage.engine.close()

import random
from dataclasses import replace

from redrive.model.delivery import Outcome
from redrive.model.filtering import FilterVerdict
from redrive.testing import VirtualClock
from tests.engine.stage import BROKEN, CLOSED, Stage


async def test_only_those_who_want_it_get_it(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    eager, picky = await stage.queue("eager"), await stage.queue("picky")
    await stage.subscribe(topic, "eager", "queue:eager")
    await stage.subscribe(topic, "picky", "queue:picky", filter_text='{"status": ["confirmed"]}')
    await stage.publish(topic, "one", attributes={"status": "confirmed"})
    await stage.publish(topic, "two", attributes={"status": "begun"})
    await stage.publish(topic, "three")
    assert await stage.bodies_in(eager) == ["one", "two", "three"]
    assert await stage.bodies_in(picky) == ["one"]
    assert stage.memory.filtered_out == {FilterVerdict.ATTRIBUTES: 1, FilterVerdict.NO_ATTRIBUTES: 1}
    assert stage.memory.published_messages == 3
    await stage.engine.close()


async def test_a_filter_set_later_holds_for_what_is_published_later(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, queue = await stage.topic(), await stage.queue("q")
    subscription = await stage.subscribe(topic, "s", "queue:q")
    await stage.publish(topic, "before")
    await stage.engine.resources.subscriptions.update(
        subscription, lambda one: replace(one, filter_text='{"never": [true]}')
    )
    await stage.publish(topic, "after")
    await stage.engine.resources.subscriptions.delete(subscription)
    await stage.publish(topic, "later")
    assert await stage.bodies_in(queue) == ["before"]
    await stage.engine.close()


async def test_a_delivery_to_a_deleted_queue_is_dead_lettered_as_a_client_error(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    subscription = await stage.subscribe(topic, "s", "queue:gone", dead_letter=dead.name)
    await stage.publish(topic)
    (letter,) = await stage.store.peek(dead.id, 10)
    assert (letter.origin, letter.attempts) == (subscription.queue_id, 0)
    notes = await stage.store.notes(subscription.queue_id, letter.message_id)
    assert [(note.number, note.status, note.reason) for note in notes] == [(1, 400, "missing")]
    assert [fact.transition.outcome for fact in stage.memory.attempts] == [Outcome.DEAD_LETTERED]
    assert [fact.attempt.status for fact in stage.memory.dead] == [200]
    await stage.engine.close()


async def test_a_queue_in_trouble_is_retried_and_then_gets_its_message(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, queue = await stage.topic(), await stage.queue("q")
    await stage.subscribe(topic, "s", "queue:q")
    stage.engine.parts.faults.set("queue:q", BROKEN)
    await stage.publish(topic)
    await clock.sleep_until(clock.now() + 1000)
    assert await stage.bodies_in(queue) == []
    stage.engine.operations.clear_fault("queue:q")
    await clock.sleep_until(clock.now() + 60_000)
    assert await stage.bodies_in(queue) == ["hello"]
    (received,) = await stage.engine.messages.receive(queue, 1)
    assert received.attempts == 1
    await stage.engine.close()


async def test_a_repetition_on_an_ordered_topic_leads_to_nothing(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic("t.fifo", ordered=True, deduplicates_content=True)
    queue = await stage.queue("q.fifo", ordered=True)
    await stage.subscribe(topic, "s", "queue:q.fifo")
    await stage.publish(topic, "same", group_id="g")
    await stage.publish(topic, "same", group_id="g")
    await stage.publish(topic, "other", group_id="g")
    found = await stage.store.peek(queue.id, 10)
    assert [one.body for one in found] == ["same", "other"]
    assert found[0].headers is not None
    assert found[0].headers.startswith(b'{"sequence":')
    await clock.sleep_until(clock.now() + 5 * 60_000)
    await stage.publish(topic, "same", group_id="g")
    assert await stage.bodies_in(queue) == ["same", "other", "same"]
    await stage.engine.close()


async def test_a_removed_subscription_drops_what_it_is_owed(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng, otherwise=BROKEN)
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic)
    await stage.engine.until_quiet()
    await stage.engine.resources.topics.delete(topic)
    await clock.sleep_until(clock.now() + 3_600_000)
    await stage.engine.operations.sweep()
    assert len(stage.endpoint.pushed) == 1
    assert await stage.store.peek(subscription.queue_id, 1) == []
    assert await stage.engine.resources.topics.get(topic.name) is None
    await stage.engine.close()


async def test_a_raw_delivery_that_its_queue_refuses_is_dead_lettered_at_once(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    whole, alone, dead = [await stage.queue(name) for name in ("whole", "alone", "dead")]
    await stage.subscribe(topic, "whole", "queue:whole")
    await stage.subscribe(topic, "alone", "queue:alone", raw=True, dead_letter=dead.name)
    await stage.subscribe(topic, "pushed", "somewhere", raw=True)
    await stage.publish(topic, "before")
    await stage.publish(topic, "crowded", raw_refusal=CLOSED)
    await stage.publish(topic, "after")
    await stage.engine.until_quiet()
    assert await stage.bodies_in(whole) == ["before", "crowded", "after"]
    assert await stage.bodies_in(alone) == ["before", "after"]
    assert await stage.bodies_in(dead) == ["crowded"]
    assert [body for _, body in stage.endpoint.pushed] == ["before", "crowded", "after"]
    refused = [fact for fact in stage.memory.attempts if not fact.attempt.delivered]
    assert [(fact.subscription.id, fact.attempt) for fact in refused] == [("alone", CLOSED)]
    await stage.engine.close()


async def test_a_changed_or_deleted_queue_is_read_again_for_the_next_message(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, queue = await stage.topic(), await stage.queue("q")
    dead = await stage.queue("dead")
    await stage.subscribe(topic, "s", "queue:q", dead_letter=dead.name)
    await stage.publish(topic, "one")
    await stage.engine.resources.queues.update(queue.name, lambda one: replace(one, delay_ms=1_000))
    await stage.publish(topic, "two")
    waiting = await stage.store.peek(queue.id, 10)
    assert [one.available_at - clock.now() for one in waiting] == [0, 1_000]
    await stage.engine.resources.queues.delete(queue)
    await stage.publish(topic, "three")
    assert await stage.bodies_in(dead) == ["three"]
    again = await stage.queue("q")
    await stage.publish(topic, "four")
    assert await stage.bodies_in(again) == ["four"]
    await stage.engine.close()


async def test_a_longer_message_is_looked_at_anew(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, queue = await stage.topic(), await stage.queue("q")
    await stage.subscribe(topic, "s", "queue:q")
    await stage.publish(topic, "short")
    stage.profile.closed.add("q")  # a door that the engine has not been told of
    await stage.publish(topic, "as long")
    await stage.publish(topic, "fits")
    assert await stage.bodies_in(queue) == ["short", "fits"]
    await stage.engine.close()

import random

from redrive.model.delivery import Ending
from redrive.model.filtering import Verdict
from redrive.testing import VirtualClock, run_virtual
from tests.engine.stage import BROKEN, Stage


def test_only_those_who_want_it_get_it() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
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
        assert stage.memory.filtered_out == {Verdict.ATTRIBUTES: 1, Verdict.NO_ATTRIBUTES: 1}
        assert stage.memory.published_messages == 3
        await stage.engine.close()

    run_virtual(story)


def test_a_filter_set_later_holds_for_what_is_published_later() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        await stage.engine.open()
        topic, queue = await stage.topic(), await stage.queue("q")
        subscription = await stage.subscribe(topic, "s", "queue:q")
        await stage.publish(topic, "before")
        from dataclasses import replace

        await stage.engine.topics.change(
            subscription, lambda one: replace(one, filter_text='{"never": [true]}')
        )
        await stage.publish(topic, "after")
        await stage.engine.topics.unsubscribe(subscription)
        await stage.publish(topic, "later")
        assert await stage.bodies_in(queue) == ["before"]
        await stage.engine.close()

    run_virtual(story)


def test_a_queue_that_is_gone_is_a_client_error_with_a_dead_letter() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        await stage.engine.open()
        topic, dead = await stage.topic(), await stage.queue("dead")
        subscription = await stage.subscribe(topic, "s", "queue:gone", dead_letter=dead.name)
        await stage.publish(topic)
        (letter,) = await stage.store.peek(dead.id, 10)
        assert (letter.origin, letter.attempts) == (subscription.queue_id, 1)
        notes = await stage.store.notes(subscription.queue_id, letter.message_id)
        assert [(note.number, note.status, note.reason) for note in notes] == [(1, 400, "missing")]
        assert [fact.transition.ending for fact in stage.memory.attempts] == [Ending.DEAD_LETTERED]
        assert [fact.attempt.status for fact in stage.memory.dead] == [200]
        await stage.engine.close()

    run_virtual(story)


def test_a_queue_in_trouble_is_retried_and_then_gets_its_message() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        await stage.engine.open()
        topic, queue = await stage.topic(), await stage.queue("q")
        await stage.subscribe(topic, "s", "queue:q")
        stage.engine.faults.set("queue:q", BROKEN)
        await stage.publish(topic)
        await clock.sleep_until(clock.now() + 1000)
        assert await stage.bodies_in(queue) == []
        stage.engine.faults.clear("queue:q")
        await clock.sleep_until(clock.now() + 60_000)
        assert await stage.bodies_in(queue) == ["hello"]
        (received,) = await stage.engine.receiver.receive(queue, 1)
        assert received.attempts == 1
        await stage.engine.close()

    run_virtual(story)


def test_a_repetition_on_an_ordered_topic_leads_to_nothing() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
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

    run_virtual(story)


def test_a_removed_subscription_drops_what_it_is_owed() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance, otherwise=BROKEN)
        await stage.engine.open()
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere")
        await stage.publish(topic)
        await stage.engine.quiet()
        await stage.engine.topics.delete(topic)
        await clock.sleep_until(clock.now() + 3_600_000)
        await stage.engine.sweeper.round()
        assert len(stage.endpoint.pushed) == 1
        assert await stage.store.peek(subscription.queue_id, 1) == []
        assert await stage.engine.topics.get(topic.name) is None
        await stage.engine.close()

    run_virtual(story)

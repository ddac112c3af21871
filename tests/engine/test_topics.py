"""Subscriptions that match a message, as one node caches them."""

import asyncio
from dataclasses import replace

from redrive.engine.engine import Engine
from redrive.model.filtering import Subject
from redrive.model.topic import Attribute, Subscription, Topic
from tests.engine.held_store import HeldStore
from tests.engine.samples import named


async def test_concurrent_publications_share_one_read_of_a_topics_subscriptions(
    store: HeldStore, engine: Engine
) -> None:
    topic = await engine.resources.topics.create(Topic(0, named("orders"), "plain"))
    await engine.resources.subscriptions.create(Subscription("s", topic.name, 0, "1", "push", "somewhere"))
    held = store.hold("find")
    before = store.calls.count("find")
    asking = [
        asyncio.create_task(engine.resources.subscriptions.wanting(topic, Subject({}, "text")))
        for _ in range(5)
    ]
    await held.reached
    held.let_go()
    found = await asyncio.gather(*asking)
    assert [[one.id for one in each.subscriptions] for each in found] == [["s"]] * 5
    assert store.calls.count("find") - before == 1


async def test_a_change_of_ones_own_is_made_in_what_is_remembered(store: HeldStore, engine: Engine) -> None:
    topic = await engine.resources.topics.create(Topic(0, named("orders"), "plain"))

    async def wanting(colour: str) -> list[str]:
        subject = Subject({"colour": Attribute("String", colour)}, "text")
        return [
            one.id for one in (await engine.resources.subscriptions.wanting(topic, subject)).subscriptions
        ]

    async def subscribe(one: str, filter_text: str | None) -> Subscription:
        wanted = Subscription(one, topic.name, 0, "1", "push", "somewhere", filter_text=filter_text)
        return await engine.resources.subscriptions.create(wanted)

    assert await wanting("red") == []
    before = store.calls.count("find")
    everything = await subscribe("everything", None)
    filtered = await subscribe("filtered", '{"colour": ["red"]}')
    assert (await wanting("red"), await wanting("blue")) == (["everything", "filtered"], ["everything"])
    await engine.resources.subscriptions.update(
        filtered, lambda one: replace(one, filter_text='{"colour": ["blue"]}')
    )
    assert (await wanting("red"), await wanting("blue")) == (["everything"], ["everything", "filtered"])
    await engine.resources.subscriptions.update(everything, lambda one: replace(one, confirmed=False))
    assert (await wanting("red"), await wanting("blue")) == ([], ["filtered"])
    await engine.resources.subscriptions.update(
        everything, lambda one: replace(one, filter_text='{"colour": ["red"]}')
    )
    await engine.resources.subscriptions.update(everything, lambda one: replace(one, confirmed=True))
    await engine.resources.subscriptions.delete(filtered)
    assert (await wanting("red"), await wanting("blue")) == (["everything"], [])
    assert store.calls.count("find") == before
    engine.resources.documents.forget("subscription", everything.key)  # another node's change
    assert await wanting("red") == ["everything"]
    assert store.calls.count("find") == before + 1


async def test_a_change_that_may_have_failed_is_read_again(store: HeldStore, engine: Engine) -> None:
    topic = await engine.resources.topics.create(Topic(0, named("orders"), "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "push", "somewhere")
    subscription = await engine.resources.subscriptions.create(wanted)
    assert len((await engine.resources.subscriptions.wanting(topic, Subject({}, "text"))).subscriptions) == 1
    before = store.calls.count("find")
    held = store.hold("put")
    changing = asyncio.create_task(
        engine.resources.subscriptions.update(subscription, lambda one: replace(one, confirmed=False))
    )
    await held.reached
    changing.cancel()
    await asyncio.gather(changing, return_exceptions=True)
    await engine.resources.subscriptions.wanting(topic, Subject({}, "text"))
    assert store.calls.count("find") == before + 1

"""Numbers are right whichever node changed something, and are not read again for what did not change."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redrive.engine.configuration.kinds import SUBSCRIPTION
from redrive.engine.engine import Engine
from redrive.model.errors import NotFound, StoreUnavailable
from redrive.model.topic import Subscription, Topic
from tests.engine.held_store import HeldStore
from tests.engine.samples import named

MakeNode = Callable[[str], Engine]


@pytest.fixture
async def topic(engine: Engine) -> Topic:
    return await engine.resources.topics.create(Topic(0, named("t"), "plain"))


def wanted(topic: Topic, text: str, **fields: Any) -> Subscription:
    return replace(Subscription(text, topic.name, 0, "1", "http", f"http://{text}"), **fields)


async def counted(engine: Engine, topic: Topic) -> tuple[int, int, int]:
    return await engine.resources.subscriptions.count(topic.name)


async def test_counts_of_a_topic_follow_changes_of_its_subscriptions(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    assert await counted(engine, topic) == (0, 0, 0)
    one = await engine.resources.subscriptions.create(wanted(topic, "one", confirmed=False))
    two = await engine.resources.subscriptions.create(wanted(topic, "two", filter_text='{"a":["b"]}'))
    assert await counted(engine, topic) == (1, 1, 1)
    assert await engine.resources.subscriptions.unconfirmed(topic.name) == [one]
    assert await engine.resources.subscriptions.count_filtered("1", "here") == 1
    await engine.resources.subscriptions.update(one, lambda current: replace(current, confirmed=True))
    await engine.resources.subscriptions.delete(two)
    store.calls.clear()
    assert await counted(engine, topic) == (1, 0, 0)
    assert "find" not in store.calls  # two documents of however many
    assert await engine.resources.subscriptions.count_filtered("1", "here") == 0


async def test_other_nodes_change_things_too(
    engine: Engine, nodes: MakeNode, store: HeldStore, topic: Topic
) -> None:
    two = nodes("two")
    assert await counted(two, topic) == (0, 0, 0)
    made = await engine.resources.subscriptions.create(wanted(topic, "one"))
    two.resources.documents.forget(SUBSCRIPTION.name, made.key)
    assert await counted(two, topic) == (1, 0, 0)
    await engine.resources.subscriptions.delete(made)
    two.resources.documents.forget("", "")  # it may have missed news
    assert await counted(two, topic) == (0, 0, 0)


async def test_a_change_while_others_are_counted_is_not_missed(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    held = store.hold_answer("find")
    counting = asyncio.create_task(counted(engine, topic))
    await held.reached
    await engine.resources.subscriptions.create(wanted(topic, "late"))
    held.let_go()
    assert await counting == (1, 0, 0)


async def test_a_store_that_was_away_is_asked_again(engine: Engine, store: HeldStore, topic: Topic) -> None:
    await engine.resources.subscriptions.create(wanted(topic, "one"))
    store.away = True
    with pytest.raises(StoreUnavailable):
        await counted(engine, topic)
    store.away = False
    assert await counted(engine, topic) == (1, 0, 0)


async def test_topics_are_counted_by_kind(engine: Engine, topic: Topic) -> None:
    ordered = await engine.resources.topics.create(Topic(0, named("t.fifo"), "plain", ordered=True))
    assert await engine.resources.topics.count("1", "here") == (1, 1)
    await engine.resources.topics.delete(ordered)
    assert await engine.resources.topics.count("1", "here") == (0, 1)


class TestDeletedTopics:
    async def test_subscribing_to_a_topic_deleted_meanwhile_fails(
        self, engine: Engine, store: HeldStore, topic: Topic
    ) -> None:
        held = store.hold("put")
        subscribing = asyncio.create_task(engine.resources.subscriptions.create(wanted(topic, "late")))
        await held.reached
        await engine.resources.topics.delete(topic)
        held.let_go()
        with pytest.raises(NotFound):
            await subscribing
        assert await store.real.find(SUBSCRIPTION.name, "") == []


async def test_an_account_has_subscriptions_elsewhere(engine: Engine, topic: Topic) -> None:
    theirs = [
        await engine.resources.subscriptions.create(wanted(topic, f"s{number}", owner="2"))
        for number in range(3)
    ]
    await engine.resources.subscriptions.create(wanted(topic, "own"))
    assert await engine.resources.subscriptions.elsewhere("2", "here") == theirs
    assert await engine.resources.subscriptions.elsewhere("2", "here", theirs[0].key, 1) == [theirs[1]]
    assert await engine.resources.subscriptions.elsewhere("1", "here") == []
    await engine.resources.subscriptions.delete(theirs[1])
    assert await engine.resources.subscriptions.elsewhere("2", "here") == [theirs[0], theirs[2]]

"""One call that changes what is configured is one transaction, whatever it changes."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest

from redrive.engine.configuration.kinds import SUBSCRIPTION, SUBSCRIPTION_OF_BACKLOG, TOPIC
from redrive.engine.configuration.topics import REMOVED_AT_ONCE
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft
from redrive.model.errors import AlreadyExists, NotFound, TaskActive
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.commits import Commits
from tests.engine.held_store import HeldStore
from tests.engine.samples import make_queue, named
from tests.engine.stage import PlainProfile, ScriptedEndpoint


@pytest.fixture
def nodes(store: HeldStore, clock: VirtualClock) -> Callable[[str], Engine]:
    def make(name: str) -> Engine:
        runtime = Runtime(clock, random.Random(name), name)
        return Engine(store, runtime, {"plain": PlainProfile()}, {"push": ScriptedEndpoint(clock)})

    return make


@pytest.fixture
async def commits(engine: Engine, store: HeldStore) -> Commits:
    await store.real.new_id()  # numbers are reserved in blocks, with a commit for each block
    return Commits(cast("SqliteStore", store.real))


@pytest.fixture
async def topic(engine: Engine) -> Topic:
    return await engine.resources.topics.create(Topic(0, named("orders"), "plain", ordered=True))


def wanted(topic: Topic, one: str = "s") -> Subscription:
    """A subscription of another account, whose time is over some day."""
    return Subscription(one, topic.name, 0, "2", "push", f"to-{one}", expires_at=2**42)


async def documents(engine: Engine) -> int:
    kinds = (
        "topic",
        "subscription",
        "subscription_of_queue",
        "subscription_elsewhere",
        "queue",
        "serving_queue",
    )
    return sum([len(await engine.parts.store.find(kind, "")) for kind in kinds])


# ---- how many commits


async def test_a_queue_is_made_changed_and_deleted_in_a_commit_each(engine: Engine, commits: Commits) -> None:
    queue = await make_queue(engine, "q", serves="a subscription's key")
    assert commits.taken() == 1
    await engine.resources.queues.update(queue.name, lambda current: replace(current, delay_ms=1))
    assert commits.taken() == 1
    await engine.resources.queues.delete(queue)
    assert commits.taken() == 1


async def test_a_subscription_is_made_changed_and_deleted_in_a_commit_each(
    engine: Engine, commits: Commits, topic: Topic
) -> None:
    commits.taken()
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    assert commits.taken() == 1
    await engine.resources.subscriptions.update(
        subscription, lambda current: replace(current, expires_at=None)
    )
    assert commits.taken() == 1
    await make_queue(engine, "served", serves=subscription.key)
    commits.taken()
    await engine.resources.subscriptions.delete(subscription)
    assert commits.taken() == 1
    assert await documents(engine) == 1, "the topic"


async def test_a_topic_is_made_and_deleted_with_its_subscriptions_in_a_commit_each(
    engine: Engine, commits: Commits, topic: Topic
) -> None:
    assert commits.taken() == 1
    for one in ("a", "b"):
        subscription = await engine.resources.subscriptions.create(wanted(topic, one))
        await make_queue(engine, one, serves=subscription.key)
    commits.taken()
    await engine.resources.topics.delete(topic)
    assert commits.taken() == 1
    assert await documents(engine) == 0


async def test_a_topic_with_very_many_subscriptions_goes_piece_by_piece(
    engine: Engine, commits: Commits, topic: Topic
) -> None:
    async def many(draft: Draft) -> None:
        for number in range(2 * REMOVED_AT_ONCE + 1):
            await engine.resources.subscriptions.create_in(draft, wanted(topic, f"s{number}"))

    await engine.resources.write(many)
    commits.taken()
    await engine.resources.topics.delete(topic)
    assert commits.taken() == 3
    assert await documents(engine) == 0


async def test_a_redrive_begins_in_a_commit(engine: Engine, commits: Commits) -> None:
    dead = await make_queue(engine, "dead")
    commits.taken()
    await engine.operations.redrives.start(dead, None, 1)
    assert commits.taken() == 1


async def test_several_resources_change_in_a_commit_or_not_at_all(
    engine: Engine, commits: Commits, topic: Topic
) -> None:
    resources = engine.resources

    async def change(draft: Draft) -> None:
        await resources.queues.create_in(draft, Queue(0, named("letters")))
        beside = await resources.topics.create_in(draft, Topic(0, named("beside"), "plain"))
        await resources.subscriptions.put_in(draft, wanted(beside))
        await resources.subscriptions.put_in(draft, replace(wanted(beside), endpoint="elsewhere"))
        await resources.topics.delete_in(draft, topic)

    commits.taken()
    await resources.write(change)
    assert commits.taken() == 1
    (subscription,) = await resources.subscriptions.of(named("beside"))
    assert (subscription.endpoint, await resources.topics.get(topic.name)) == ("elsewhere", None)
    before = await documents(engine)
    with pytest.raises(AlreadyExists):
        await resources.write(change)
    assert (commits.taken(), await documents(engine)) == (0, before)


# ---- what comes in between


async def racing(
    store: HeldStore, one: Callable[[], Awaitable[object]], other: Callable[[], Awaitable[object]]
) -> object:
    """Let one write when the other has just decided what to write; what becomes of that."""
    held = store.hold("write")
    deciding = asyncio.ensure_future(other())
    await held.reached
    await one()
    held.let_go()
    (answer,) = await asyncio.gather(deciding, return_exceptions=True)
    return answer


async def test_no_subscription_is_left_of_a_topic_that_goes_as_it_is_made(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    topics, subscriptions = engine.resources.topics, engine.resources.subscriptions
    answer = await racing(store, lambda: topics.delete(topic), lambda: subscriptions.create(wanted(topic)))
    assert isinstance(answer, NotFound)
    assert await documents(engine) == 0


async def test_a_subscription_that_is_made_as_its_topic_goes_goes_too(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    topics, subscriptions = engine.resources.topics, engine.resources.subscriptions
    await subscriptions.create(wanted(topic, "a"))
    await racing(store, lambda: subscriptions.create(wanted(topic, "b")), lambda: topics.delete(topic))
    assert await documents(engine) == 0


async def test_a_subscription_deleted_with_its_topic_leaves_one_tombstone(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    topics, subscriptions = engine.resources.topics, engine.resources.subscriptions
    subscription = await subscriptions.create(wanted(topic))
    await racing(store, lambda: subscriptions.delete(subscription), lambda: topics.delete(topic))
    assert [tombstone.id for tombstone in await engine.resources.queues.tombstones()] == [
        topic.id,
        subscription.queue_id,
    ]


async def test_a_name_is_given_once(engine: Engine, store: HeldStore, topic: Topic) -> None:
    subscriptions = engine.resources.subscriptions
    create = [lambda: make_queue(engine, "q"), lambda: subscriptions.create(wanted(topic))]
    for make in (*create, lambda: engine.resources.topics.create(Topic(0, named("t"), "plain"))):
        assert isinstance(await racing(store, make, make), AlreadyExists)
    assert await documents(engine) == 6


async def test_of_two_redrives_one_begins(engine: Engine, store: HeldStore) -> None:
    dead = await make_queue(engine, "dead")

    async def start() -> None:
        await engine.operations.redrives.start(dead, None, 1)

    assert isinstance(await racing(store, start, start), TaskActive)
    assert len(await engine.operations.redrives.tasks_of(dead.name)) == 1


async def test_concurrent_updates_of_a_subscription_keep_both_changes(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    subscription = await engine.resources.subscriptions.create(wanted(topic))

    def labelled(text: str) -> Callable[[], Awaitable[object]]:
        return lambda: engine.resources.subscriptions.update(
            subscription, lambda current: replace(current, attributes={**current.attributes, text: "yes"})
        )

    changed = await racing(store, labelled("one"), labelled("other"))
    assert isinstance(changed, Subscription)
    assert changed.attributes == {"one": "yes", "other": "yes"}
    assert await engine.resources.documents.get(SUBSCRIPTION, subscription.key) == changed
    assert (
        len(await engine.parts.store.find(SUBSCRIPTION_OF_BACKLOG.name, ""))
        == len(await engine.parts.store.find(TOPIC.name, ""))
        == 1
    )

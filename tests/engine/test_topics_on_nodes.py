"""Topics on several nodes: what one began and did not end, another ends."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.configuration.kinds import DUE, SUBSCRIPTION, SUBSCRIPTION_OF_BACKLOG, TOMBSTONE, TOPIC
from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import PushRequest, Runtime
from redrive.model.errors import AlreadyExists, NotFound, StoreUnavailable
from redrive.model.filtering import Subject
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore
from tests.engine.samples import named
from tests.engine.stage import BROKEN, PlainProfile, ScriptedEndpoint

LEASE_MS = 30_000  # of an attempt, where the dialect does not say


@pytest.fixture
async def endpoint(clock: VirtualClock) -> ScriptedEndpoint:
    return ScriptedEndpoint(clock)


@pytest.fixture
def nodes(store: HeldStore, clock: VirtualClock, endpoint: ScriptedEndpoint) -> Callable[[str], Engine]:
    def make(name: str) -> Engine:
        runtime = Runtime(clock, random.Random(name), name)
        return Engine(store, runtime, {"plain": PlainProfile()}, {"push": endpoint})

    return make


@pytest.fixture
async def two(nodes: Callable[[str], Engine], engine: Engine) -> Engine:
    """A second node, open from the beginning."""
    two = nodes("two")
    await two.open()
    return two


@pytest.fixture
async def topic(engine: Engine, two: Engine) -> Topic:
    return await engine.resources.topics.create(Topic(0, named("orders"), "plain"))


def wanted(topic: Topic, one: str = "s") -> Subscription:
    return Subscription(one, topic.name, 0, "1", "push", f"to-{one}")


async def publish(engine: Engine, topic: Topic, body: str) -> None:
    publication = Publication(engine.runtime.message_id(), body, {}, {}, b"{}", len(body))
    await engine.messages.publish(topic, [publication])


async def documents(engine: Engine, kind: str) -> int:
    return len(await engine.parts.store.find(kind, ""))


async def cut_short(store: HeldStore, verb: str, work: "asyncio.Task[object]") -> None:
    """Let the work fail at its next call of that verb, before the store does anything."""
    held = store.hold(verb)
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await work


# ---- what a node knows


async def test_a_subscription_made_on_one_node_is_pushed_by_another_when_that_one_dies(
    engine: Engine, two: Engine, clock: VirtualClock, topic: Topic, endpoint: ScriptedEndpoint
) -> None:
    await engine.resources.subscriptions.create(wanted(topic))
    await engine.parts.dispatcher.close()
    upkeep = asyncio.create_task(two.run())
    await clock.sleep_until(clock.now() + 1)
    await publish(two, topic, "a")
    await clock.sleep_until(clock.now() + 1)
    assert [body for _, body in endpoint.pushed] == ["a"]
    upkeep.cancel()


async def test_an_unannounced_delivery_is_found_with_the_next_round(
    engine: Engine,
    two: Engine,
    store: HeldStore,
    clock: VirtualClock,
    topic: Topic,
    endpoint: ScriptedEndpoint,
) -> None:
    await engine.resources.subscriptions.create(wanted(topic))
    upkeep = asyncio.create_task(engine.run())
    await clock.sleep_until(clock.now() + 1)
    held = store.hold_answer("enqueue")
    publishing = asyncio.create_task(publish(two, topic, "a"))
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await publishing
    await clock.sleep_until(clock.now() + ROUND_MS)
    assert [body for _, body in endpoint.pushed] == ["a"]
    upkeep.cancel()


async def test_a_dead_nodes_deliveries_are_pushed_by_another_when_their_lease_ends(
    engine: Engine, two: Engine, clock: VirtualClock, topic: Topic, endpoint: ScriptedEndpoint
) -> None:
    async def never(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    await two.resources.subscriptions.create(wanted(topic))
    endpoint.before = never
    began = clock.now()
    await publish(two, topic, "a")
    await clock.sleep_until(began + 1)
    await two.parts.dispatcher.close()
    endpoint.before = None
    upkeep = asyncio.create_task(engine.run())
    await clock.sleep_until(began + LEASE_MS + 2)
    assert [at - began for at, _ in endpoint.pushed] == [0, LEASE_MS]
    upkeep.cancel()


async def test_backlogs_are_looked_into_in_turn(
    engine: Engine, two: Engine, clock: VirtualClock, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.engine.push.dispatcher.LOOKS_MAX", 4)
    monkeypatch.setattr("redrive.engine.push.dispatcher.PAGE", 2)
    for number in range(9):
        await engine.resources.subscriptions.create(wanted(topic, f"s{number}"))
    watched = []
    for _ in range(4):
        await two.parts.dispatcher.look_round()
        watched.append(len(two.parts.dispatcher._consumers))
    assert watched == [4, 8, 9, 9]


async def test_a_subscription_removed_on_another_node_is_pushed_no_more(
    engine: Engine, two: Engine, clock: VirtualClock, topic: Topic
) -> None:
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    await two.parts.dispatcher.look_round()
    await clock.sleep_until(clock.now() + 1)
    await engine.resources.subscriptions.delete(subscription)
    two.resources.documents.forget("", "")
    two.parts.notifier.announce(subscription.queue_id)
    await clock.sleep_until(clock.now() + 1)
    assert two.parts.dispatcher._consumers == {}
    assert not two.parts.notifier.anyone(subscription.queue_id)


async def test_a_backlog_that_is_no_longer_announced_is_forgotten(
    engine: Engine, two: Engine, clock: VirtualClock, topic: Topic
) -> None:
    stays, goes = [
        await engine.resources.subscriptions.create(wanted(topic, one)) for one in ("stays", "goes")
    ]
    await two.parts.dispatcher.look_round()
    await clock.sleep_until(clock.now() + 1)
    await engine.resources.subscriptions.delete(goes)
    two.resources.documents.forget("subscription_of_queue", "")
    for _ in range(2):
        await two.parts.dispatcher.look_round()
        await clock.sleep_until(clock.now() + 1)
    assert list(two.parts.dispatcher._consumers) == [stays.queue_id]


async def test_a_store_that_is_away_is_told_of_once_and_not_by_each_backlog(
    engine: Engine,
    store: HeldStore,
    clock: VirtualClock,
    topic: Topic,
    endpoint: ScriptedEndpoint,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(3):
        await engine.resources.subscriptions.create(wanted(topic, f"s{number}"))
    await publish(engine, topic, "a")
    store.away = True
    await clock.sleep_until(clock.now() + 10_000)
    assert [record for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []
    store.away = False
    await clock.sleep_until(clock.now() + 2_000)
    assert len(endpoint.pushed) == 3


@pytest.mark.parametrize("lost", ["the question", "the answer"])
async def test_a_push_is_settled_once_though_the_stores_connection_was_cut(
    engine: Engine,
    store: HeldStore,
    clock: VirtualClock,
    topic: Topic,
    endpoint: ScriptedEndpoint,
    lost: str,
) -> None:
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    cut = store.hold("settle") if lost == "the question" else store.hold_answer("settle")
    await publish(engine, topic, "a")
    await cut.reached
    cut.lose()
    await clock.sleep_until(clock.now() + 2 * LEASE_MS)
    assert [body for _, body in endpoint.pushed] == ["a"]
    assert await store.real.peek(subscription.queue_id, 10) == []


@pytest.mark.parametrize(("thinks_ms", "left"), [(9_000, ["b"]), (60_000, ["a", "b"])])
async def test_a_node_that_is_about_to_close_ends_what_it_began_and_begins_nothing(
    engine: Engine,
    store: HeldStore,
    clock: VirtualClock,
    topic: Topic,
    endpoint: ScriptedEndpoint,
    thinks_ms: int,
    left: list[str],
) -> None:
    async def think(_: PushRequest) -> None:
        await clock.sleep_until(began + thinks_ms)

    endpoint.before = think
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    began = clock.now()
    await publish(engine, topic, "a")
    await clock.sleep_until(began + 1)
    draining = asyncio.create_task(engine.drain(10))
    await clock.sleep_until(began + 2)
    await publish(engine, topic, "b")
    await draining
    assert clock.now() - began == min(thinks_ms, 10_001)
    await engine.parts.dispatcher.close()
    assert [one.body for one in await store.real.peek(subscription.queue_id, 10)] == left
    assert [body for _, body in endpoint.pushed] == ["a"]


async def test_a_node_that_has_closed_pushes_nothing(
    engine: Engine, clock: VirtualClock, topic: Topic, endpoint: ScriptedEndpoint
) -> None:
    endpoint.otherwise = BROKEN
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    await publish(engine, topic, "a")
    await clock.sleep_until(clock.now() + 1)
    await engine.parts.dispatcher.close()
    await engine.parts.dispatcher.look_round()
    engine.parts.notifier.announce(subscription.queue_id)
    await clock.sleep_until(clock.now() + 60_000)  # its timer for the next attempt
    assert [body for _, body in endpoint.pushed] == ["a"]


@pytest.mark.parametrize("lost", ["made", "changed"])
async def test_a_node_that_missed_the_notice_of_a_subscription_publishes_to_it(
    engine: Engine, two: Engine, store: HeldStore, clock: VirtualClock, topic: Topic, lost: str
) -> None:
    await publish(engine, topic, "before")  # so that the node remembers who wants what
    if lost == "made":
        work = asyncio.create_task(engine.resources.subscriptions.create(wanted(topic)))
    else:
        made = await engine.resources.subscriptions.create(wanted(topic))
        await publish(engine, topic, "before")
        work = asyncio.create_task(
            engine.resources.subscriptions.update(made, lambda one: replace(one, raw=True))
        )
    held = store.hold_answer("put")
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await work
    found = await engine.resources.subscriptions.wanting(topic, Subject({}, "a"))
    assert [(one.id, one.raw) for one in found.subscriptions] == [("s", lost == "changed")]
    with pytest.raises(AlreadyExists):
        await engine.resources.subscriptions.create(wanted(topic))


# ---- what is cut short


async def test_a_topic_whose_deletion_was_cut_short_can_be_deleted_again(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    for one in ("a", "b"):
        await engine.resources.subscriptions.create(wanted(topic, one))
    await cut_short(store, "remove", asyncio.create_task(engine.resources.topics.delete(topic)))
    assert await engine.resources.topics.get(topic.name) is not None
    await engine.resources.topics.delete(topic)
    assert await documents(engine, TOPIC.name) == await documents(engine, SUBSCRIPTION.name) == 0


async def test_a_topic_can_be_made_on_a_node_that_has_not_heard_of_its_deletion(
    engine: Engine, two: Engine, topic: Topic
) -> None:
    assert await two.resources.topics.get(topic.name) == topic
    await engine.resources.topics.delete(topic)
    again = await two.resources.topics.create(Topic(0, topic.name, "plain"))
    assert again.id != topic.id
    assert await two.resources.topics.get_stored(topic.name) == again


async def test_a_node_that_finds_out_what_it_missed_counts_and_matches_by_it(
    engine: Engine, two: Engine, topic: Topic
) -> None:
    """`two` has not heard that its subscription is gone, and finds it out by a change of it."""
    subscription = await two.resources.subscriptions.create(wanted(topic))
    assert (await two.resources.subscriptions.wanting(topic, Subject({}, ""))).subscriptions == [subscription]
    assert (await two.resources.subscriptions.count(topic.name)).confirmed == 1
    await engine.resources.subscriptions.delete(subscription)
    with pytest.raises(NotFound):
        await two.resources.subscriptions.update(
            subscription, lambda current: replace(current, endpoint="elsewhere")
        )
    assert (await two.resources.subscriptions.wanting(topic, Subject({}, ""))).subscriptions == []
    assert (await two.resources.subscriptions.count(topic.name)).confirmed == 0


async def test_a_topic_made_anew_under_the_name_has_no_subscribers(
    engine: Engine, store: HeldStore, two: Engine, topic: Topic
) -> None:
    await engine.resources.subscriptions.create(wanted(topic))
    held = store.hold("remove")
    deleting = asyncio.create_task(engine.resources.topics.delete(topic))
    await held.reached
    await two.resources.subscriptions.create(wanted(topic, "late"))
    held.let_go()
    await deleting
    again = await engine.resources.topics.create(Topic(0, topic.name, "plain"))
    assert await engine.resources.subscriptions.of(again.name) == []


async def test_an_unsubscription_that_was_cut_short_leaves_the_subscription_as_it_was(
    engine: Engine, two: Engine, store: HeldStore, topic: Topic
) -> None:
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    await cut_short(store, "remove", asyncio.create_task(engine.resources.subscriptions.delete(subscription)))
    await two.operations.sweep()
    assert await two.resources.subscriptions.get(topic.name, subscription.id) == subscription
    assert await documents(engine, SUBSCRIPTION_OF_BACKLOG.name) == 1
    assert await documents(engine, "deleted_queue") == 0


async def test_a_subscription_that_was_cut_short_leaves_nothing(
    engine: Engine, store: HeldStore, topic: Topic
) -> None:
    elsewhere = replace(wanted(topic), owner="2", expires_at=1)
    await cut_short(store, "put", asyncio.create_task(engine.resources.subscriptions.create(elsewhere)))
    for kind in (SUBSCRIPTION.name, SUBSCRIPTION_OF_BACKLOG.name, "subscription_elsewhere", "due"):
        assert await documents(engine, kind) == 0


async def test_the_backlog_of_who_left_is_emptied(
    engine: Engine, clock: VirtualClock, topic: Topic, endpoint: ScriptedEndpoint
) -> None:
    async def never(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    endpoint.before = never
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    await publish(engine, topic, "a")
    await clock.sleep_until(clock.now() + 1)
    assert await engine.resources.subscriptions.delete(subscription)
    assert not await engine.resources.subscriptions.delete(subscription)
    await engine.operations.sweep()
    assert await engine.parts.store.peek(subscription.queue_id, 1) == []


async def test_a_change_made_during_a_claim_holds_for_what_is_published_after_it(
    engine: Engine, store: HeldStore, clock: VirtualClock, topic: Topic, endpoint: ScriptedEndpoint
) -> None:
    push_requests: list[str] = []

    async def note(push_request: PushRequest) -> None:
        push_requests.append(push_request.endpoint)

    endpoint.before = note
    subscription = await engine.resources.subscriptions.create(wanted(topic))
    await clock.sleep_until(clock.now() + 1)
    held = store.hold("claim")
    engine.parts.notifier.announce(subscription.queue_id)
    await held.reached
    await engine.resources.subscriptions.update(subscription, lambda one: replace(one, endpoint="elsewhere"))
    await publish(engine, topic, "a")
    held.let_go()
    await clock.sleep_until(clock.now() + 1)
    assert push_requests == ["elsewhere"]


async def test_a_topic_goes_with_all_that_its_subscriptions_became_on_another_node(
    engine: Engine, two: Engine, topic: Topic
) -> None:
    made = await engine.resources.subscriptions.create(wanted(topic))
    await two.resources.subscriptions.get(topic.name, made.id)  # and remembers it as it is now
    await engine.resources.queues.create(Queue(0, named("served"), serves=made.key))
    await engine.resources.subscriptions.update(made, lambda one: replace(one, expires_at=2**42))
    await two.resources.topics.delete(topic)
    assert await engine.resources.documents.find(SUBSCRIPTION, "") == []
    due = await engine.resources.documents.find(DUE, "")
    assert {one.kind for one in due} == {TOMBSTONE.name}, "nothing waits for the end of what is gone"

"""Sources of dead letters are right whichever node changed something, and are not read again for what did not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.configuration.dead_letter_sources import ACCOUNTS_MAX, SCOPES_MAX
from redrive.engine.configuration.kinds import QUEUE
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Subscription, Topic
from tests.engine.held_store import HeldStore
from tests.engine.samples import make_queue, named, send
from tests.engine.stage import PlainProfile

MakeNode = Callable[[str], Engine]


@pytest.fixture
async def dead(engine: Engine) -> Queue:
    return await make_queue(engine, "dead")


async def source_names(engine: Engine, queue: Queue) -> list[str]:
    found = await engine.operations.dead_letters.sources(queue)
    return [each.id if isinstance(each, Subscription) else each.name.name for each in found]


async def test_sources_follow_changes_and_cost_no_read(engine: Engine, store: HeldStore, dead: Queue) -> None:
    assert await source_names(engine, dead) == []
    orders = await make_queue(engine, "orders", dead_letters=dead)
    topic = await engine.resources.topics.create(Topic(0, named("t"), "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "http", "http://s", dead_letter=dead.name)
    subscription = await engine.resources.subscriptions.create(wanted)
    assert await source_names(engine, dead) == ["orders", "s"]
    await engine.operations.dead_letters.queues("1", "here", 100)
    store.calls.clear()
    assert await source_names(engine, dead) == ["orders", "s"]
    (found,) = await engine.operations.dead_letters.queues("1", "here", 100)
    assert (found.queue, found.from_queues, found.from_subscriptions) == (
        dead,
        [orders.name],
        [subscription],
    )
    assert store.calls == ["count_each"]
    await engine.resources.subscriptions.delete(subscription)
    await engine.resources.queues.update(orders.name, lambda queue: replace(queue, dead_letter=None))
    assert await source_names(engine, dead) == []
    assert await engine.operations.dead_letters.queues("1", "here", 100) == []


async def dead_letter_queues(engine: Engine) -> list[str]:
    found = await engine.operations.dead_letters.queues("1", "here")
    return [each.queue.name.name for each in found]


@pytest.mark.parametrize("source", ["queue", "subscription"])
async def test_a_queue_whose_source_was_deleted_is_listed_while_it_holds_dead_letters(
    engine: Engine, dead: Queue, source: str
) -> None:
    await send(engine, dead, "died")
    if source == "queue":
        orders = await make_queue(engine, "orders", dead_letters=dead)
        await engine.resources.queues.delete(orders)
    else:
        topic = await engine.resources.topics.create(Topic(0, named("t"), "plain"))
        wanted = Subscription("s", topic.name, 0, "1", "http", "http://p", False, dead_letter=dead.name)
        await engine.resources.subscriptions.delete(await engine.resources.subscriptions.create(wanted))
    assert await dead_letter_queues(engine) == ["dead"]
    await engine.messages.purge(dead)
    assert await dead_letter_queues(engine) == []
    await engine.clock.sleep_until(engine.clock.now() + 1000)
    await send(engine, dead, "an order, in a queue that has another use by now")
    assert await dead_letter_queues(engine) == []


async def test_a_carrier_of_a_services_dead_letters_is_a_source_of_them(
    nodes: MakeNode,
) -> None:
    engine = nodes("one")
    engine.add_profile("plain", PlainProfile())
    await engine.open()
    dead = await make_queue(engine, "dead")
    private = named("f")._replace(region="here:plain")
    topic = await engine.resources.topics.create(Topic(0, private, "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "http", "http://p", False, carries_to=dead.name)
    carrier = await engine.resources.subscriptions.create(wanted)
    (found,) = await engine.operations.dead_letters.queues("1", "here")
    assert (found.queue, found.from_subscriptions, found.from_services) == (dead, [], [carrier])
    assert await source_names(engine, dead) == []  # nothing of the engine's that a redrive would go back to
    await engine.resources.subscriptions.delete(carrier)
    assert await dead_letter_queues(engine) == []


async def test_sources_of_other_nodes_and_at_topics_of_others_are_heard_of(
    engine: Engine, nodes: MakeNode, dead: Queue
) -> None:
    two = nodes("two")
    assert await source_names(two, dead) == []
    orders = await make_queue(engine, "orders", dead_letters=dead)
    two.resources.documents.forget(QUEUE.name, orders.name.key)
    assert await source_names(two, dead) == ["orders"]
    topic = await engine.resources.topics.create(Topic(0, named("t")._replace(account="2"), "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "http", "http://s", dead_letter=dead.name)
    await engine.resources.subscriptions.create(wanted)
    two.resources.documents.forget("", "")  # it may have missed news
    assert await source_names(two, dead) == ["orders", "s"]


async def test_queues_are_counted_together_as_far_as_a_page_may_take(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, dead: Queue
) -> None:
    monkeypatch.setattr("redrive.engine.tasks.dead_letters.COUNTED_TOGETHER_MAX", 4)
    monkeypatch.setattr("redrive.engine.ports.store.COUNTED_MIN", 1)
    other = await make_queue(engine, "other")
    for target in (dead, other):
        await make_queue(engine, f"of-{target.name.name}", dead_letters=target)
    found = await engine.operations.dead_letters.queues("1", "here", 100)
    assert [each.at_most for each in found] == [2, 2]


async def test_origins_are_read_together_and_then_remembered(
    engine: Engine, nodes: MakeNode, store: HeldStore, dead: Queue
) -> None:
    orders = await make_queue(engine, "orders", dead_letters=dead)
    topic = await engine.resources.topics.create(Topic(0, named("t"), "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "http", "http://s", dead_letter=dead.name)
    subscription = await engine.resources.subscriptions.create(wanted)
    sources = nodes("two").parts.dead_letters._sources
    numbers = [orders.id, subscription.queue_id, 999]
    store.calls.clear()
    origins = await sources.origins(numbers)
    assert [*origins.values()] == [(orders.name, None), (None, subscription), (None, None)]
    assert store.calls == ["get_each", "get_each"]
    store.calls.clear()
    assert len(await sources.origins(numbers[:2])) == 2
    assert store.calls == []


async def test_places_are_looked_for_again_once_queues_or_topics_change(
    engine: Engine, store: HeldStore, dead: Queue
) -> None:
    assert await engine.operations.dead_letters.scopes() == [named("")]
    store.calls.clear()
    assert await engine.operations.dead_letters.scopes() == [named("")]
    assert store.calls == []
    name = dead.name._replace(region="there")
    moved = await engine.resources.queues.create(Queue(0, name, dead_letter=DeadLetterTarget(dead.name, 1)))
    assert await engine.operations.dead_letters.scopes() == [named(""), name._replace(name="")]
    await engine.resources.queues.delete(moved)
    assert await engine.operations.dead_letters.scopes() == [named("")]


async def test_places_behind_the_first_fifty_are_found_by_the_last_of_them(engine: Engine) -> None:
    subscription = "00000000-0000-0000-0000-000000000001"
    regions = [
        *(f"rg-{number:03}" for number in range(2 * SCOPES_MAX)),
        "rg",
        "rg.old",
    ]  # `rg-0/` is before `rg/`
    for number, region in enumerate(regions):
        name = named("t")._replace(account=subscription, region=region)
        if number % 2:
            await engine.resources.queues.create(Queue(0, name))
        else:
            await engine.resources.topics.create(Topic(0, name, "plain"))
    found: list[ResourceName] = []
    while page := await engine.operations.dead_letters.scopes(subscription, found[-1] if found else None):
        assert len(page) <= SCOPES_MAX
        found += page
    assert [place.region for place in found] == sorted(regions, key=lambda region: f"{region}/")


async def test_places_of_however_many_accounts_are_asked_for_are_forgotten_again(
    engine: Engine, dead: Queue
) -> None:
    sources = engine.parts.dead_letters._sources
    for number in range(ACCOUNTS_MAX + 10):
        assert await sources.scopes(f"{number:012}") == (
            [named("")] if f"{number:012}" == dead.name.account else []
        )
        await sources.by_target(f"{number:012}", "here")
    assert len(sources._scopes) <= ACCOUNTS_MAX
    assert len(sources._elsewhere) <= ACCOUNTS_MAX

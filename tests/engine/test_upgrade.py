"""Unfinished work of an older version is completed when its store is first opened."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from redrive.engine.configuration.kinds import (
    DUE,
    ELSEWHERE,
    OF_ARCHIVE,
    QUEUE,
    SERVING,
    SUBSCRIPTION,
    SUBSCRIPTION_OF_BACKLOG,
    TOMBSTONE,
    TOPIC,
    QueueRecord,
    number_key,
)
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind, DocumentSealing, Resource
from redrive.engine.ports.sealing import NO_SEALING
from redrive.engine.upgrade import CURRENT, FORMAT, Upgrade
from redrive.model.topic import Publication, Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore
from tests.engine.samples import bodies, make_queue, named, send

MINUTE_MS = 60_000


@pytest.fixture
async def older(engine: Engine) -> Engine:
    """A node whose store is as an older version left it: nothing says what falls due."""
    await engine.resources.documents.clear(FORMAT)
    return engine


async def brought_up_to_date(nodes: Callable[[str], Engine], older: Engine) -> Engine:
    for kind in (DUE, SERVING):
        await older.resources.documents.clear(kind)
    newer = nodes("newer")
    await upgrade(newer)
    return newer


async def upgrade(engine: Engine) -> None:
    """As when a node opens its store."""
    await Upgrade(
        engine.resources.documents,
        engine.resources.queues,
        engine.parts.subscriptions,
        engine.parts.sealed_store,
    ).run()


async def buried(engine: Engine, queue_id: int, name: str, **fields: bool) -> QueueRecord:
    """Write a tombstone, as an older version did first of all when it deleted something."""
    tombstone = QueueRecord(queue_id, named(name), deleted_at=engine.clock.now(), **fields)
    await engine.resources.documents.create(
        TOMBSTONE, f"{tombstone.name.key}/{number_key(queue_id)}", tombstone
    )
    return tombstone


async def topic_of(engine: Engine) -> Topic:
    return await engine.resources.topics.create(Topic(0, named("t"), "plain"))


def wanted(topic: Topic, **fields: int) -> Subscription:
    return Subscription("s", topic.name, 0, "2", "http", "http://a", **fields)


async def test_a_deleted_queue_is_emptied_and_forgotten_in_the_end(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    queue = await make_queue(older, "q")
    await send(older, queue, "a")
    await older.resources.queues.delete(queue)
    newer = await brought_up_to_date(nodes, older)
    assert await newer.operations.sweep() == 1
    assert [tombstone.emptied for tombstone in await newer.resources.queues.tombstones()] == [True]


async def test_the_deletion_of_a_queue_that_was_cut_short_is_ended(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    queue = await make_queue(older, "q")
    await send(older, queue, "a")
    await buried(older, queue.id, "q")
    newer = await brought_up_to_date(nodes, older)
    assert await newer.resources.queues.get(queue.name) is None
    await newer.operations.sweep()
    assert await bodies(newer, queue) == []


async def test_a_queue_made_anew_under_the_name_of_a_deleted_one_stays(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    queue = await make_queue(older, "q")
    await buried(older, queue.id + 1000, "q")
    newer = await brought_up_to_date(nodes, older)
    assert await newer.resources.queues.get(queue.name) == queue


@pytest.mark.parametrize("waits", [False, True])
async def test_an_unsubscription_that_was_cut_short_is_ended(
    older: Engine, nodes: Callable[[str], Engine], waits: bool
) -> None:
    topic = await topic_of(older)
    more = {"waiting_id": 999} if waits else {}
    subscription = await older.resources.subscriptions.create(wanted(topic, **more))
    for backlog in subscription.backlogs:
        await buried(older, backlog, "s")
    await buried(older, subscription.queue_id + 1000, "s")  # of one that left long ago
    newer = await brought_up_to_date(nodes, older)
    for kind in (SUBSCRIPTION, SUBSCRIPTION_OF_BACKLOG, ELSEWHERE):
        assert await newer.resources.documents.find(kind, "") == []
    await newer.operations.sweep()
    assert all(tombstone.emptied for tombstone in await newer.resources.queues.tombstones())
    assert len(await newer.resources.queues.tombstones()) == 2 + waits


async def test_a_subscription_without_its_topic_is_deleted(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    topic = await topic_of(older)
    await older.resources.subscriptions.create(wanted(topic))
    await older.resources.documents.remove(TOPIC, topic.name.key)
    newer = await brought_up_to_date(nodes, older)
    assert await newer.resources.documents.find(SUBSCRIPTION, "") == []


async def test_a_subscription_goes_when_its_time_is_over(
    older: Engine, nodes: Callable[[str], Engine], clock: VirtualClock
) -> None:
    topic = await topic_of(older)
    await older.resources.subscriptions.create(wanted(topic, expires_at=clock.now() + MINUTE_MS))
    newer = await brought_up_to_date(nodes, older)
    await newer.operations.sweep()
    assert len(await newer.resources.documents.find(SUBSCRIPTION, "")) == 1
    await clock.sleep_until(clock.now() + MINUTE_MS)
    await newer.operations.sweep()
    assert await newer.resources.documents.find(SUBSCRIPTION, "") == []


async def test_a_queue_goes_whose_subscription_was_not_made_in_the_end_and_another_with_its_own(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    topic = await topic_of(older)
    subscription = await older.resources.subscriptions.create(wanted(topic))
    served = await make_queue(older, "served", serves=subscription.key)
    await make_queue(older, "left", serves=f"{topic.name.key}/nobody")
    newer = await brought_up_to_date(nodes, older)
    assert await newer.resources.documents.find(QUEUE, "") == [served]
    await newer.resources.subscriptions.delete(subscription)
    assert await newer.resources.documents.find(QUEUE, "") == []


async def test_the_archive_of_an_ordered_topic_is_swept(
    older: Engine, nodes: Callable[[str], Engine], clock: VirtualClock
) -> None:
    fifo = Topic(0, named("fifo"), "plain", ordered=True, archive_ms=MINUTE_MS)
    topic = await older.resources.topics.create(fifo)
    await topic_of(older)
    await older.messages.publish(
        topic, [Publication(b"0" * 16, "a", {}, {}, b"{}", 1, group_id="g", deduplication_id="d")]
    )
    await older.resources.documents.clear(OF_ARCHIVE)
    await older.resources.documents.create(FORMAT, "resources", 2)
    newer = await brought_up_to_date(nodes, older)
    assert await newer.resources.documents.entries(OF_ARCHIVE) == [(number_key(topic.id), topic.name.key)]
    await clock.sleep_until(clock.now() + MINUTE_MS)
    assert await newer.operations.sweep() == 1


async def test_many_documents_are_put_right_in_turns_and_once(
    older: Engine, nodes: Callable[[str], Engine], store: HeldStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.engine.upgrade._AT_ONCE", 2)
    for number in range(5):
        await older.resources.queues.delete(await make_queue(older, f"q{number}"))
    newer = await brought_up_to_date(nodes, older)
    assert len(await newer.resources.documents.find(DUE, "")) == 5
    store.calls.clear()
    await upgrade(nodes("third"))
    assert "write" not in store.calls


async def test_two_nodes_may_put_it_right_at_the_same_time(
    older: Engine, nodes: Callable[[str], Engine], store: HeldStore
) -> None:
    queue = await make_queue(older, "q")
    await older.resources.queues.delete(queue)
    await older.resources.documents.clear(DUE)
    two, three = nodes("two"), nodes("three")
    held = store.hold("write")
    opening = asyncio.create_task(upgrade(two))
    await held.reached
    await upgrade(three)
    held.let_go()
    await opening
    assert len(await three.resources.documents.find(DUE, "")) == 1


async def test_a_node_that_opens_its_store_has_put_it_right(engine: Engine) -> None:
    assert await engine.resources.documents.get(FORMAT, "resources") == CURRENT


class Backwards(DocumentSealing):
    """Seals by writing backwards."""

    def sealed(self, _kind: str, _key: str, document: Any) -> Any:
        return {"content": json.dumps(document)[::-1]}

    def opened(self, resource: Resource) -> Resource:
        return resource._replace(document=json.loads(resource.document["content"][::-1]))


async def test_documents_of_a_secret_kind_are_sealed_once_and_others_stay(
    older: Engine, nodes: Callable[[str], Engine]
) -> None:
    secret: DocumentKind[dict[str, str]] = DocumentKind("secret", dict, dict, secret=True)
    plain: DocumentKind[dict[str, str]] = DocumentKind("plain", dict, dict)
    for kind in (secret, plain):
        await older.resources.documents.create(kind, "a", {"password": "1234"})
    newer = nodes("newer")
    newer.add_kinds([secret, plain])
    newer.seal_by(NO_SEALING, Backwards())
    assert await newer.resources.documents.get(secret, "a") == {"password": "1234"}
    await upgrade(newer)
    await newer.resources.documents.create(secret, "b", {"password": "5678"})
    for key, password in {"a": "1234", "b": "5678"}.items():
        stored = await newer.parts.store.get("secret", key)
        assert stored is not None
        assert password not in str(stored.document)
        assert password[::-1] in str(stored.document)
        assert await newer.resources.documents.get_stored(secret, key) == {"password": password}
    assert [value for _, value in await newer.resources.documents.entries(secret)] == [
        {"password": "1234"},
        {"password": "5678"},
    ]
    before = await newer.parts.store.get("secret", "a")
    await upgrade(newer)
    assert await newer.parts.store.get("secret", "a") == before
    (kept,) = await newer.parts.store.find("plain", "")
    assert kept.document == {"password": "1234"}

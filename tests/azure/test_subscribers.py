"""The engine's documents of an event subscription come and go together."""

from dataclasses import replace
from typing import Any

import pytest

from redrive.azure.arm.event_sources import new_topic
from redrive.azure.arm.subscribers import DEAD_LETTERS_KEPT_MS, Subscribers
from redrive.azure.arm.subscription_documents import engine_subscription
from redrive.azure.arm.subscription_forms import SubscriptionForm
from redrive.azure.eventgrid import names
from redrive.azure.wire.answers import AzureError
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound
from redrive.model.topic import Subscription, Topic
from tests.azure.stage import ACCOUNT, CONTAINER, TOPIC, Stage

WEBHOOK = {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example"}}
LETTERS = {
    "endpointType": "StorageBlob",
    "properties": {"resourceId": ACCOUNT.text, "blobContainerName": "dead"},
}


@pytest.fixture
async def topic(stage: Stage) -> Topic:
    return await stage.engine.resources.topics.create(new_topic(TOPIC, {"inputSchema": "EventGridSchema"}))


def wanted(topic: Topic, *, letters: bool) -> Subscription:
    given = {"destination": WEBHOOK, **({"deadLetterDestination": LETTERS} if letters else {})}
    accepted = SubscriptionForm().accept(given, {}, topic, lambda _: None, 0)
    return engine_subscription(topic, f"{TOPIC.text}/x/Billing", accepted)


async def kept(stage: Stage, topic: Topic) -> list[tuple[str, str, bool]]:
    found = await stage.engine.resources.subscriptions.of(topic.name)
    return [(one.id, one.endpoint, one.confirmed) for one in found]


async def test_dead_letters_have_a_queue_and_a_store(stage: Stage, topic: Topic) -> None:
    subscribers = Subscribers(stage.engine)
    made = await subscribers.write(topic, wanted(topic, letters=True))
    assert await kept(stage, topic) == [
        ("billing", "https://hook.example", True),
        ("billing:dead-letters", CONTAINER, False),
    ]
    assert made.dead_letter == names.dead_letter_queue(topic.name, "billing")
    assert made.dead_letter is not None
    queue = await stage.engine.resources.queues.get(made.dead_letter)
    assert queue is not None
    assert queue.retention_ms == DEAD_LETTERS_KEPT_MS
    assert await subscribers.of(topic) == [made]
    await subscribers.remove(made)
    assert await kept(stage, topic) == []
    assert await stage.engine.resources.queues.get(made.dead_letter) is None


async def test_a_change_keeps_the_backlog_and_the_dead_letters(stage: Stage, topic: Topic) -> None:
    subscribers = Subscribers(stage.engine)
    before = await subscribers.write(topic, wanted(topic, letters=True))
    assert before.dead_letter is not None
    queue = await stage.engine.resources.queues.get(before.dead_letter)
    after = await subscribers.write(
        topic, replace(wanted(topic, letters=True), endpoint="https://other.example")
    )
    assert (after.queue_id, after.created_at) == (before.queue_id, before.created_at)
    assert await stage.engine.resources.queues.get(before.dead_letter) == queue


async def test_dead_letters_go_with_their_destination(stage: Stage, topic: Topic) -> None:
    subscribers = Subscribers(stage.engine)
    before = await subscribers.write(topic, wanted(topic, letters=True))
    after = await subscribers.write(topic, wanted(topic, letters=False))
    assert (after.queue_id, after.dead_letter) == (before.queue_id, None)
    assert await kept(stage, topic) == [("billing", "https://hook.example", True)]
    assert before.dead_letter is not None
    assert await stage.engine.resources.queues.get(before.dead_letter) is None


async def test_a_topic_goes_with_all_its_event_subscriptions(stage: Stage, topic: Topic) -> None:
    subscribers = Subscribers(stage.engine)
    await subscribers.write(topic, wanted(topic, letters=True))
    await subscribers.remove_topics([topic])
    assert await kept(stage, topic) == []
    assert await stage.engine.resources.queues.find(topic.name._replace(name="")) == []


async def test_an_event_subscription_at_a_removed_topic_is_refused(stage: Stage, topic: Topic) -> None:
    await stage.engine.resources.topics.delete(topic)
    with pytest.raises(NotFound):
        await Subscribers(stage.engine).write(topic, wanted(topic, letters=False))


async def test_each_change_is_one_commit(stage: Stage, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the topic that comes by itself, the queue of dead letters and the store that they go to."""
    written: list[int] = []
    write = stage.engine.parts.store.write

    async def counted(changes: Any, *others: Any) -> Any:
        written.append(len(changes))
        return await write(changes, *others)

    monkeypatch.setattr(stage.engine.parts.store, "write", counted)
    subscribers = Subscribers(stage.engine)
    new = new_topic(TOPIC._replace(parts=("topics", "Other")), {"inputSchema": "EventGridSchema"})
    for each in (topic, new):
        made = await subscribers.write(each, wanted(each, letters=True))
        assert len(written) == 1
        written.clear()
    await subscribers.write(new, replace(wanted(new, letters=False), endpoint="https://other.example"))
    assert len(written) == 1
    written.clear()
    await subscribers.remove(made)
    assert len(written) == 1
    written.clear()
    await subscribers.remove_topics([topic])
    assert len(written) == 1
    assert await kept(stage, topic) == await kept(stage, new) == []


DOMAIN = TOPIC._replace(parts=("domains", "shops"))
INNER = DOMAIN.child("topics", "one")


@pytest.fixture
async def domain(stage: Stage) -> Topic:
    return await stage.engine.resources.topics.create(new_topic(DOMAIN, {}))


async def test_a_domain_topic_is_not_made_once_its_domain_is_gone(
    stage: Stage, domain: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribers, topics = Subscribers(stage.engine), stage.engine.resources.topics
    create_in = topics.create_in

    async def create_late(draft: Draft, wanted: Topic) -> Topic:
        if await topics.get(domain.name) is not None:
            await subscribers.remove_topic(domain)
        return await create_in(draft, wanted)

    monkeypatch.setattr(topics, "create_in", create_late)
    inner = new_topic(INNER, {})
    for make in (subscribers.make_topic(inner), subscribers.write(inner, wanted(inner, letters=False))):
        with pytest.raises(AzureError, match="was not found"):
            await make
    assert await topics.find(names.within(domain.name)) == []


async def test_a_domain_takes_the_topics_along_that_are_made_meanwhile(
    stage: Stage, domain: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribers, topics = Subscribers(stage.engine), stage.engine.resources.topics
    delete_in, inner = topics.delete_in, new_topic(INNER, {})
    makes = iter([True])

    async def delete_late(draft: Draft, topic: Topic) -> bool:
        if topic == domain and next(makes, False):
            await subscribers.make_topic(inner)
        return await delete_in(draft, topic)

    monkeypatch.setattr(topics, "delete_in", delete_late)
    await subscribers.remove_topic(domain)
    assert [await topics.get(name) for name in (domain.name, inner.name)] == [None, None]

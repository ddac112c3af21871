"""Bodies are sealed by every verb that carries them into the store."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from redrive.engine.configuration.draft import Draft
from redrive.engine.node.sealed_store import SealedStore
from redrive.engine.ports import DocumentStore, MessageStore, NewDelivery, Resource, Sealer, StoredContent
from redrive.model.attempt import Attempt
from redrive.model.delivery import SEAL_MARK, Delivery
from redrive.model.errors import Refused
from redrive.model.queue import Queue
from redrive.model.topic import Message, Topic
from redrive.testing import VirtualClock
from tests.engine.stage import Stage

TEXT = "the text that nobody may read"


class Reversing(Sealer):
    """Seals by reversing."""

    @property
    def lasts(self) -> bool:
        return True

    async def admit(self, topic: Topic) -> Attempt | None:
        return None

    async def prepare(self) -> None:
        pass

    def seal(self, queue_id: int, message_id: bytes, body: str, headers: bytes | None) -> StoredContent:
        return SEAL_MARK + body[::-1], None, b"sealed"


class SealedQueues:
    """`MessageSealing` of every queue."""

    def of_queue(self, queue: Queue) -> Sealer | None:
        return Reversing()

    def of_topic(self, topic: Topic) -> Sealer | None:
        return None

    async def opened(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return list(deliveries)


class ClearDocuments:
    """`DocumentSealing` that leaves them as they are."""

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        return document

    def opened(self, resource: Resource) -> Resource:
        return resource


@pytest.fixture
async def stage(clock: VirtualClock, rng: random.Random) -> Stage:
    stage = Stage(clock, rng)
    stage.engine.seal_by(SealedQueues(), ClearDocuments())
    return stage


def verbs(*ports: type) -> set[str]:
    return {name for port in ports for name in vars(port) if not name.startswith("_")}


def test_the_sealed_store_has_each_verb_that_carries_bodies_itself() -> None:
    assert verbs(MessageStore, DocumentStore) <= verbs(SealedStore)


async def test_a_delivery_that_enters_with_a_change_of_documents_is_sealed(stage: Stage) -> None:
    await stage.engine.open()
    queue = await stage.queue("orders")
    entering = NewDelivery(queue.id, b"m" * 16, TEXT, b"{}", 0, 0, None, ordered=False)
    entering.sealer = Reversing()

    async def decide(draft: Draft) -> None:
        draft.enqueue(entering)

    await stage.engine.resources.write(decide)
    assert await stage.bodies_in(queue) == [SEAL_MARK + TEXT[::-1]]


async def sealed_letters(stage: Stage, queue: Queue) -> Sequence[int]:
    await stage.engine.messages.send(queue, [Message(b"m" * 16, TEXT, b"{}")])
    return [delivery.seq for delivery in await stage.store.peek(queue.id, 10)]


async def test_a_sealed_message_gets_no_other_body_when_it_is_moved(stage: Stage) -> None:
    await stage.engine.open()
    source, destination = await stage.queue("source"), await stage.queue("destination")
    (seq,) = await sealed_letters(stage, source)
    with pytest.raises(Refused, match=f"message {seq} is encrypted"):
        await stage.engine.operations.moves.move(source, [seq], destination, {seq: "another"})
    moved = await stage.engine.operations.moves.move(source, [seq], destination)
    assert moved.total == 1
    assert await stage.bodies_in(destination) == [SEAL_MARK + TEXT[::-1]]

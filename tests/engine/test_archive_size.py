"""The size of an archive: exact while it is small, else estimated from a sample spread over it."""

import pytest

from redrive.engine.engine import Engine
from redrive.engine.publish.archive import SAMPLED, archive_rows, size
from redrive.model.topic import Publication, Topic
from tests.engine.held_store import HeldStore
from tests.engine.stage import name


@pytest.mark.parametrize("number", [0, 1, 99, 100, SAMPLED, SAMPLED + 1, 3 * SAMPLED])
async def test_the_size_of_an_archive(engine: Engine, store: HeldStore, number: int) -> None:
    topic = await engine.resources.topics.create(Topic(0, name("t"), "plain", ordered=True, archive_ms=1))
    rows = []
    for index in range(number):
        publication = Publication(
            index.to_bytes(16), "", {}, {}, b'{"a":1}', index, "g", deduplication_id=str(index)
        )
        rows += archive_rows(topic, publication, engine.clock.now())
    if rows:
        await store.enqueue(rows)
    held, held_bytes = await size(store, engine.clock, topic)
    assert held == number
    total = number * (number - 1) // 2
    assert held_bytes == total if number <= SAMPLED else 0.9 * total < held_bytes < 1.1 * total

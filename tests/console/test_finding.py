"""Names that are looked for: written otherwise than they are, or with a wrong letter."""

from typing import Final

import pytest

from redrive.model.queue import Queue
from redrive.model.topic import Topic
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, visiting

_FIND: Final = f"{ROOT}/find?at={SCOPE.account}/{SCOPE.region}&q="


async def _make(visitor: Visitor) -> None:
    resources = visitor.server.core.engine.resources
    for name in ("Rentals-DLQ", "Rental-Fulfilment", "invoices"):
        await resources.queues.create(Queue(0, SCOPE._replace(name=name)))
    await resources.queues.create(Queue(0, SCOPE._replace(region="eu-west-1", name="rental-elsewhere")))
    await resources.topics.create(Topic(0, SCOPE._replace(name="Rentals"), "sns"))


async def test_search_finds_a_part_of_a_name_in_any_case() -> None:
    async with visiting() as visitor:
        await _make(visitor)
        for typed in ("rent", "RENTAL", "Rental"):
            page = (await visitor.get(_FIND + typed)).body.decode()
            for link in ("queues/Rentals-DLQ", "queues/Rental-Fulfilment", "topics/Rentals"):
                assert page.count(f'href="{ROOM}/{link}"') == 1, (typed, link)
            assert "invoices" not in page
            assert "elsewhere" not in page
        assert f"{ROOM}/queues/Rentals-DLQ" in (await visitor.get(f"{_FIND}dlq")).body.decode()


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("queues/invoises", "queues/invoices"),
        ("queues/rentals-dlq", "queues/Rentals-DLQ"),
        ("topics/Rentalz", "topics/Rentals"),
        ("queues/zebra", ""),
    ],
)
async def test_a_name_that_is_not_there_leads_to_the_one_most_like_it(path: str, near: str) -> None:
    async with visiting() as visitor:
        await _make(visitor)
        response = await visitor.get(f"{ROOM}/{path}")
        assert response.status == 404
        page = response.body.decode()
        assert ("the one?" in page) == bool(near)
        assert not near or f'<a class="mono" href="{ROOM}/{near}">' in page

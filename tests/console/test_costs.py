"""Costs of a page: store calls and rows; `python -m benchmarks console` measures them at a million dead letters."""

from typing import Final

from tests.console.store_calls import counting
from tests.console.world import make_world, pages_of, visiting

CALLS_MAX: Final = 6
ROWS_MAX: Final = 130  # two ends of each cause, and a page with its notes
DIED: Final = 120


async def test_a_page_asks_the_store_a_few_times_whatever_stands_there() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        for first in range(0, DIED, 10):
            seqs = await world.die(*(f'{{"order": {first + each}}}' for each in range(10)))
        with counting() as store:
            for path in pages_of(world, seqs[0]):
                await visitor.get(
                    f"{path}{'&' if '?' in path else '?'}first"
                )  # documents are remembered then
                store.clear()
                response = await visitor.get(path)
                assert response.status == 200, path
                assert store.calls.total() <= CALLS_MAX, (path, store.calls)
                most = ROWS_MAX + (DIED if "q=" in path else 0)  # a search looks at a slice
                assert store.rows <= most, (path, store.rows)

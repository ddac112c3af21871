"""Costs of a page: store calls and rows, counted, so that no clock is involved."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from redrive.stores.sqlite.store import SqliteStore
from tests.console.world import make_world, pages_of, visiting

CALLS_MAX: Final = 6
ROWS_MAX: Final = 130  # two ends of each cause, and a page with its notes
DIED: Final = 120


class StoreCalls:
    """The calls of a store's verbs and the rows that they answered with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Count every verb that somebody waits for."""
        self.calls: Counter[str] = Counter()
        self.rows = 0
        for name, verb in inspect.getmembers(SqliteStore, inspect.iscoroutinefunction):
            if not name.startswith("_"):
                monkeypatch.setattr(SqliteStore, name, self._counted(name, verb))

    def _counted(self, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
        async def count(store: SqliteStore, *args: Any, **named: Any) -> Any:
            answer = await verb(store, *args, **named)
            self.calls[name] += 1
            self.rows += len(answer) if isinstance(answer, list | Mapping) else 0
            return answer

        return count

    def clear(self) -> None:
        """Begin again."""
        self.calls.clear()
        self.rows = 0


async def test_a_page_asks_the_store_a_few_times_whatever_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        for first in range(0, DIED, 10):
            seqs = await world.die(*(f'{{"order": {first + each}}}' for each in range(10)))
        store = StoreCalls(monkeypatch)
        for path in pages_of(world, seqs[0]):
            await visitor.get(
                f"{path}{'&' if '?' in path else '?'}first"
            )  # documents are remembered from then on
            store.clear()
            response = await visitor.get(path)
            assert response.status == 200, path
            assert store.calls.total() <= CALLS_MAX, (path, store.calls)
            most = ROWS_MAX + (DIED if "q=" in path else 0)  # a search looks at a slice
            assert store.rows <= most, (path, store.rows)

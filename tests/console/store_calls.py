"""Calls of a store's verbs, counted with the rows that they answer with: what a page costs, without a clock."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from redrive.stores.sqlite.store import SqliteStore


class StoreCalls:
    """The calls since the last look.

    Attributes:
        calls: Their numbers, by verb.
        rows: What all of them answered with together.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.calls: Counter[str] = Counter()
        self.rows = 0

    def clear(self) -> None:
        """Begin again."""
        self.calls.clear()
        self.rows = 0

    def counted(self, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
        """A verb that is counted."""

        async def count(store: SqliteStore, *args: Any, **named: Any) -> Any:
            answer = await verb(store, *args, **named)
            self.calls[name] += 1
            self.rows += len(answer) if isinstance(answer, list | Mapping) else 0
            return answer

        return count


@contextmanager
def counting() -> Iterator[StoreCalls]:
    """Count the calls of every verb that somebody waits for."""
    found = StoreCalls()
    verbs = {
        name: verb
        for name, verb in inspect.getmembers(SqliteStore, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    for name, verb in verbs.items():
        setattr(SqliteStore, name, found.counted(name, verb))
    try:
        yield found
    finally:
        for name, verb in verbs.items():
            setattr(SqliteStore, name, verb)

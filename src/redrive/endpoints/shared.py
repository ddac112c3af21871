"""Values that many pushes wait for together: a connection, an access token."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Shared(Generic[K, T]):
    """Made by whoever needs it first; whoever gives up waiting leaves it to the others.

    Args:
        usable: Whether it is of use still; where it is not, it is made anew for whoever comes next.
    """

    def __init__(self, usable: Callable[[T], bool]) -> None:
        self._usable = usable
        self._tasks: dict[K, asyncio.Task[T]] = {}

    async def of(self, key: K, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The value of a key, made if it is absent; an error of `make` is raised to all who wait."""
        task = self._tasks.get(key)
        if task is None or self._is_over(task):
            self._forget_old()
            task = self._tasks[key] = asyncio.create_task(make())
            task.add_done_callback(self._is_over)  # which looks at what went wrong, should nobody else
        return await asyncio.shield(task)

    def forget(self, key: K, value: T) -> None:
        """Drop the value of a key, if it is still the given one."""
        task = self._tasks.get(key)
        if task is not None and task.done() and not self._is_over(task) and task.result() == value:
            del self._tasks[key]

    async def close(self) -> None:
        """Make no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _forget_old(self) -> None:
        """So that no more is remembered than is of use, of however many keys."""
        for key, task in list(self._tasks.items()):
            if self._is_over(task):
                del self._tasks[key]

    def _is_over(self, task: "asyncio.Task[T]") -> bool:
        if not task.done():
            return False
        return task.cancelled() or task.exception() is not None or not self._usable(task.result())

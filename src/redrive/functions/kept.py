"""Environments that are kept ready whether anybody needs them or not: provisioned concurrency."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from redrive.model.function import FunctionVersion, InvocationResult
from redrive.model.names import ResourceName

Key: TypeAlias = tuple[ResourceName, str, str]


class KeptEnvironments:
    """Sees to it that there are as many environments of a revision as are to be kept."""

    def __init__(
        self,
        count: Callable[[Key], int],
        start: Callable[[FunctionVersion], Awaitable[InvocationResult | None]],
    ) -> None:
        """Keep environments.

        Args:
            count: The number of environments of a revision.
            start: Starts another one; what went wrong, as an invocation's result, or None.
        """
        self._count = count
        self._start = start
        self._wanted: dict[Key, tuple[FunctionVersion, int]] = {}
        self._failures: dict[Key, str] = {}
        self._starting: dict[Key, asyncio.Task[None]] = {}

    def keep(self, function: FunctionVersion, count: int) -> None:
        """Keep so many environments from now on; 0: none beyond those that invocations need."""
        if count == 0:
            self.forget(function.key)
            return
        self._wanted[function.key] = replace(function, provisioned=True), count
        self._failures.pop(function.key, None)
        self.refill(function.key)

    def forget(self, key: Key) -> None:
        """Keep none of a revision any more."""
        self._wanted.pop(key, None)
        self._failures.pop(key, None)

    def wants(self, key: Key) -> bool:
        """True if no environment of a revision is too many."""
        wanted = self._wanted.get(key)
        return wanted is not None and self._count(key) <= wanted[1]

    def failure(self, key: Key) -> str:
        """The reason that the last start failed for; empty: it did not."""
        return self._failures.get(key, "")

    def refill(self, key: Key) -> None:
        """Start what is missing, one after the other; what fails to start is not tried again by itself."""
        if key not in self._wanted or key in self._starting or key in self._failures:
            return
        starting = asyncio.get_running_loop().create_task(self._fill(key))
        self._starting[key] = starting
        starting.add_done_callback(lambda _: self._starting.pop(key, None))

    async def _fill(self, key: Key) -> None:
        while (wanted := self._wanted.get(key)) is not None and self._count(key) < wanted[1]:
            failure = await self._start(wanted[0])
            if failure is not None:
                self._failures[key] = failure.payload.decode(errors="replace")
                return

    async def close(self) -> None:
        """Keep nothing any more."""
        self._wanted.clear()
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)

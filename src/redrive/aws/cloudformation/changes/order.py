"""Runs steps in the order of their dependencies, up to 32 of them at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from redrive.aws.cloudformation.documents.signals import Activity

AT_ONCE_MAX: Final = 32  # steps at the same time, those that wait for a signal included


class StepFailed(Exception):  # noqa: N818 - an outcome
    """A step of a change failed; the reason is in the document of its resource."""


def reversed_order(dependencies: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The opposite order: for each name those that depend on it."""
    dependents: dict[str, list[str]] = {name: [] for name in dependencies}
    for name, others in dependencies.items():
        for other in others:
            if other in dependents:
                dependents[other].append(name)
    return dependents


class OrderedSteps:
    """Runs the steps of one phase.

    Attributes:
        failed_names: The names of the steps that failed, in the order in which they did.
    """

    def __init__(self, activity: Activity, must_stop: Callable[[], bool]) -> None:
        """Begin no further step after a failure, or when `must_stop` says so."""
        self._activity = activity
        self._must_stop = must_stop
        self.failed_names: list[str] = []

    @property
    def is_over(self) -> bool:
        """True if no further step begins."""
        return bool(self.failed_names) or self._must_stop()

    async def run(
        self,
        dependencies: Mapping[str, Iterable[str]],
        step: Callable[[str], Awaitable[None]],
        *,
        keep_on: bool = False,
    ) -> None:
        """Run a step for each name, after those that it depends on; a step may raise StepFailed.

        With `keep_on`, continue with what does not depend on a failed step.
        """
        waiting = {
            name: {other for other in others if other in dependencies}
            for name, others in dependencies.items()
        }
        running: dict[asyncio.Task[None], str] = {}
        try:
            while True:
                ready = [name for name, others in waiting.items() if not others]
                for name in ready[: AT_ONCE_MAX - len(running)]:
                    if not self.is_over or keep_on:
                        del waiting[name]
                        running[asyncio.ensure_future(step(name))] = name
                        self._activity.add(1)
                if not running:
                    return
                for name in await self._wait_for_some(running):
                    for others in waiting.values():
                        others.discard(name)
        except BaseException:
            await self._give_up(running)
            raise

    async def _wait_for_some(self, running: dict["asyncio.Task[None]", str]) -> list[str]:
        """Wait until a step ends, or several; returns the names of those that succeeded."""
        self._activity.add(-1)  # what waits here is no work: its steps count for themselves
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._activity.add(1)
        succeeded = []
        for task in done:
            name = running.pop(task)
            self._activity.add(-1)
            try:
                task.result()
            except StepFailed:
                self.failed_names.append(name)
            else:
                succeeded.append(name)
        return succeeded

    async def _give_up(self, running: dict["asyncio.Task[None]", str]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._activity.add(-len(running))

"""Leased tasks: work in the background that survives its node.

A task is a document. The node that works at it holds it by a lease which each step renews as it writes down how far it
is; a task whose lease ran out is taken up by any node. A step may be repeated after a crash.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from redrive.engine.configuration.directory import Directory
from redrive.engine.ports import DocumentKind, Runtime
from redrive.model.errors import NotFound, StoreUnavailable

logger = logging.getLogger(__name__)

# Many times what a step takes; a task whose node died goes on this much later.
LEASE_MS = 30_000


class TaskProgress(Protocol):
    """The state of a task."""

    @property
    def active(self) -> bool:
        """True if there is something left to do."""
        ...


class LeasedTask(Protocol):
    """A task that a node holds by a lease: a frozen dataclass with these fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def id(self) -> str:
        """Unique."""
        ...

    @property
    def key(self) -> str:
        """The key of its document."""
        ...

    @property
    def node(self) -> str:
        """The node that works at it, or did."""
        ...

    @property
    def lease_until(self) -> int:
        """The moment from which another node may take it up (ms)."""
        ...

    @property
    def state(self) -> TaskProgress:
        """The task's state."""
        ...


Leased = TypeVar("Leased", bound=LeasedTask)
Work = Callable[[Leased], Awaitable[None]]


class LeasedTasks(Generic[Leased]):
    """Runs the tasks of a kind on this node, each at most once at a time."""

    def __init__(self, runtime: Runtime, documents: Directory, kind: DocumentKind[Leased]) -> None:
        self._runtime = runtime
        self._documents = documents
        self._kind: DocumentKind[Leased] = kind
        self._working: dict[str, asyncio.Future[None]] = {}  # by the task's id
        self._next: dict[str, tuple[Leased, Work[Leased]]] = {}  # to begin when the present work ends

    # ---- leases -----------------------------------------------------------------------------------------

    def with_lease(self, task: Leased) -> Leased:
        """The task as held by this node from now on."""
        lease_until = self._runtime.clock.now() + LEASE_MS
        return replace(task, node=self._runtime.node, lease_until=lease_until)

    def is_ours(self, task: Leased) -> bool:
        """True if this node was the last to hold the task."""
        return task.node == self._runtime.node

    async def take_up(self, tasks: Iterable[Leased], work: Work[Leased]) -> int | None:
        """Begin those of some tasks that are active and that no node works on: after a restart, or when their node died.

        Returns:
            The moment (ms) at which the first lease of the others ends; None if no other node holds any.
        """
        leases = []
        for task in tasks:
            if not task.state.active:
                continue
            if not self._is_free(task):
                leases.append(task.lease_until)
            elif task.id not in self._working:
                await self._take_up(task, work)
        return min(leases, default=None)

    async def _take_up(self, task: Leased, work: Work[Leased]) -> None:
        """Take the lease of a free task and begin it; of all nodes that try at the same time, one gets it."""

        def lease_if_free(current: Leased) -> Leased:
            return self.with_lease(current) if current.state.active and self._is_free(current) else current

        with contextlib.suppress(NotFound):  # removed meanwhile
            current = await self._documents.update(self._kind, task.key, lease_if_free)
            if current.state.active and self.is_ours(current):
                self.begin(current, work)

    def _is_free(self, task: Leased) -> bool:
        return self.is_ours(task) or task.lease_until <= self._runtime.clock.now()

    # ---- work -------------------------------------------------------------------------------------------

    def begin(self, task: Leased, work: Work[Leased]) -> None:
        """Begin work at a task; if this node works at it already, once that has ended."""
        if task.id in self._working:
            self._next[task.id] = (task, work)
            return
        working = self._working[task.id] = asyncio.ensure_future(work(task))
        working.add_done_callback(lambda done: self._on_end(task, done))

    def _on_end(self, task: Leased, working: asyncio.Future[None]) -> None:
        """Begin what was to follow the work that ended; after a failure, that is left to the next `take_up`."""
        self._working.pop(task.id, None)
        next_work = self._next.pop(task.id, None)
        if working.cancelled():
            return
        if (error := working.exception()) is not None:
            # The store itself logs once that it is away: no task needs a traceback of that.
            logged_error = None if isinstance(error, StoreUnavailable) else error
            logger.error(
                "%s.interrupted task=%s: resumed later", self._kind.name, task.key, exc_info=logged_error
            )
        elif next_work is not None:
            self.begin(*next_work)

    @property
    def is_quiet(self) -> bool:
        """True if no task is being worked at on this node."""
        return not self._working

    async def until_quiet(self) -> None:
        """Return when no task is being worked at on this node."""
        while self._working:
            await asyncio.wait(self._working.values())

    async def stop(self) -> None:
        """Leave the tasks that are being worked at to the next start, or to another node."""
        self._next.clear()
        working = list(self._working.values())
        for work in working:
            work.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    async def reset(self) -> None:
        """Stop, and forget every task."""
        await self.stop()
        await self._documents.clear(self._kind)

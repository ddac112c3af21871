"""One engine, as it is, in a process that can die and come back."""

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime, Store, Timer
from redrive.model.errors import StoreUnavailable
from redrive.testing import VirtualClock
from tests.simulation.rules import Rule, Violation, require
from tests.simulation.trace import Trace
from tests.simulation.wire import Wire

T = TypeVar("T")

MakeWire = Callable[[str, random.Random, Callable[[str], None]], Wire]

_LIFE: contextvars.ContextVar["Life | None"] = contextvars.ContextVar("life", default=None)


class Unanswered(Exception):  # noqa: N818 - what befell the client
    """The node went away before it answered: the client does not know what was done."""


class WrongClock:
    """`redrive.engine.ports.Clock`, off by some milliseconds, and stepping."""

    def __init__(self, clock: VirtualClock, skew_ms: int) -> None:
        self._clock = clock
        self.skew_ms = skew_ms

    def now(self) -> int:
        """Return this node's time (ms), which may be wrong."""
        return self._clock.now() + self.skew_ms

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call in as long as it is until then by this clock."""
        return self._clock.call_at(at - self.skew_ms, call)

    async def sleep_until(self, at: int) -> None:
        """Sleep as long as it is until then by this clock."""
        await self._clock.sleep_until(at - self.skew_ms)


class Node:
    """A place where an engine runs, one life after another."""

    def __init__(
        self,
        name: str,
        clock: WrongClock,
        make_wire: MakeWire,
        make_engine: Callable[[Store, Runtime], Engine],
        trace: Trace,
        fail: Callable[[BaseException], None],
    ) -> None:
        self.name = name
        self.clock = clock
        self._make_wire = make_wire
        self._make_engine = make_engine
        self._trace = trace
        self._fail = fail
        self._lives = 0
        self.life: Life | None = None

    async def start(self, rng: random.Random) -> None:
        """Begin a new life."""
        self._lives += 1
        name = f"{self.name}.{self._lives}"
        wire = self._make_wire(name, random.Random(rng.getrandbits(64)), self.die)
        runtime = Runtime(self.clock, random.Random(rng.getrandbits(64)), name)
        engine = self._make_engine(cast("Store", wire), runtime)
        self.life = life = Life(name, engine, wire, self._fail)
        self._trace.note(name, "starts")
        try:
            await life.begin()
        except (StoreUnavailable, Unanswered):
            pass
        finally:
            if not life.serves:
                self.die("while it starts")

    def die(self, how: str) -> None:
        """End this life, at any moment."""
        life, self.life = self.life, None
        if life is not None:
            self._trace.note(life.name, "dies", how)
            self._trace.mark("a node died")
            life.end()


class Life:
    """An engine from start to death, and every task that it made."""

    def __init__(self, name: str, engine: Engine, wire: Wire, fail: Callable[[BaseException], None]) -> None:
        self.name = name
        self.engine = engine
        self.serves = False
        self.ended = False
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in order, so that a run can be repeated
        self._wire = wire
        self._fail = fail
        self._context = contextvars.copy_context()
        self._context.run(_LIFE.set, self)

    async def begin(self) -> None:
        """Begin to serve."""
        await self.call(lambda engine: engine.open())
        self._upkeep = self.spawn(self.engine.run())
        self._upkeep.add_done_callback(self._upkeep_ended)
        self.serves = True

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Let something be done in this life; it ends with it."""
        return asyncio.get_running_loop().create_task(coroutine, context=self._context)

    async def call(self, verb: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """Ask the node for something, as a client does.

        Raises:
            Unanswered: It died meanwhile.
        """
        task = self.spawn(verb(self.engine))
        task.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # perhaps nobody listens any more
        try:
            return await asyncio.shield(task)  # a client that leaves stops nothing half-way
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Unanswered(self.name) from None

    def end(self) -> None:
        """Stop everything where it stands."""
        self.ended = True
        self._wire.cut()
        for task in list(self.tasks):
            task.cancel()

    async def leave(self) -> None:
        """Close in good order; nothing may be left running."""
        self._upkeep.cancel()
        await asyncio.wait([self._upkeep])
        await self.call(lambda engine: engine.close())
        require(not self.tasks, Rule.STANDS, self.name, "closed, but for", *self.tasks)

    def _upkeep_ended(self, upkeep: "asyncio.Task[None]") -> None:
        if not upkeep.cancelled() and not self.ended:
            self._fail(Violation(Rule.STANDS, f"{self.name}: upkeep ended with {upkeep.exception()!r}"))


def own_life() -> Callable[[], bool]:
    """True if the life goes on that the caller is part of."""
    life = _LIFE.get()
    return lambda: life is not None and not life.ended


def track_lives(loop: asyncio.AbstractEventLoop) -> None:
    """Let every task made in a life be known to it, so that it dies with it."""

    def make(
        loop: asyncio.AbstractEventLoop, coroutine: Any, context: contextvars.Context | None = None
    ) -> "asyncio.Task[Any]":
        task = asyncio.Task(coroutine, loop=loop, context=context)
        life = _LIFE.get() if context is None else context.get(_LIFE)
        if life is not None:
            life.tasks[task] = None
            task.add_done_callback(life.tasks.pop)
        return task

    loop.set_task_factory(make)

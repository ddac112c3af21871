"""One run: the cluster of a seed, in trouble, then at rest; what came of it, or which rule was broken."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from redrive.testing import NothingScheduled, VirtualClock, run_virtual
from tests.simulation.cluster import Cluster
from tests.simulation.options import CALM, HANG_MS_MAX, draw
from tests.simulation.rest import Rest
from tests.simulation.rules import Rule, Violation, require
from tests.simulation.trouble import Trouble
from tests.simulation.world import World

STORY_SECONDS_MAX = 24 * 60 * 60  # of virtual time; no run comes near it


@dataclass(frozen=True)
class Result:
    """A run that kept all rules.

    Attributes:
        marks: What was met, and how often.
        calls: What the store carried out.
        virtual_ms: How long it took in its own time.
        digest: Equal for two runs in which the same happened.
        lines: What happened, where that was asked for.
    """

    marks: dict[str, int]
    calls: int
    virtual_ms: int
    digest: int
    lines: list[str]


class Broken(Exception):  # noqa: N818 - what the run says
    """A run broke a rule; its seed repeats it."""

    def __init__(self, seed: int, rule: Rule, why: str, lines: list[str]) -> None:
        super().__init__(seed, rule, why, lines)
        self.seed = seed
        self.rule = rule
        self.why = why
        self.lines = lines

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.why} (python -m tests.simulation --seed {self.seed} shows the whole run)"


def simulate(seed: int, make_store: Callable[[], World], *, lines: bool = False) -> Result:
    """Run the cluster of a seed.

    Args:
        seed: Everything follows from it.
        make_store: Makes the store that all nodes share, right or wrong.
        lines: Whether to keep what happened for a reader.

    Raises:
        Broken: A rule did not hold.
    """
    runs: list[Cluster] = []

    async def story(clock: VirtualClock, rng: random.Random) -> Result:
        cluster = Cluster(draw(seed), make_store(), clock, rng, lines=lines)
        runs.append(cluster)
        began = clock.now()
        await _run(cluster)
        trace = cluster.trace
        return Result(dict(trace.marks), trace.calls, clock.now() - began, trace.digest, trace.lines)

    try:
        with _quiet():
            return run_virtual(story, seed)
    except Violation as violation:
        raise Broken(seed, violation.rule, str(violation), runs[0].trace.lines) from violation
    except NothingScheduled as error:
        raise Broken(seed, Rule.RESTS, str(error), runs[0].trace.lines) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The engine's warnings are about what is done to it here all the time."""
    logger = logging.getLogger("redrive")
    level, logger.level = logger.level, logging.CRITICAL
    try:
        yield
    finally:
        logger.level = level


async def _run(cluster: Cluster) -> None:
    """Everything, or the first rule that was broken."""
    await cluster.database.store.open()
    story = asyncio.create_task(_story(cluster), name="story")
    serving = asyncio.create_task(cluster.database.serve(), name="store")
    running = (serving, story, cluster.failure)
    try:
        await asyncio.wait(running, timeout=STORY_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
        ended = next((one for one in running if one.done()), None)
        require(ended is not None, Rule.RESTS, "the story has no end")
        if ended is not None:
            await ended
    except* Exception as group:
        raise _violation(group) from group
    finally:
        story.cancel()
        serving.cancel()
    await cluster.database.store.close()


async def _story(cluster: Cluster) -> None:
    await cluster.build()
    cluster.faults = cluster.options.faults
    reviving = asyncio.create_task(cluster.revive_for_ever(), name="reviving")
    await Trouble(cluster).happen()
    cluster.faults = CALM
    cluster.trace.note("cluster", "---- the faults stop")
    await cluster.pause(HANG_MS_MAX)  # until the last call that hangs has arrived
    reviving.cancel()
    await Rest(cluster).come()


def _violation(group: BaseExceptionGroup[Exception]) -> Violation:
    """The first thing that went wrong; what is no broken rule is something that a client should not have met."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Violation) else Violation(Rule.ANSWERS, repr(error))

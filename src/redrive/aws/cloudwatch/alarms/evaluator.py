"""The evaluator: at each whole minute it looks at what alarms watch, and brings them to the state that follows.

On a simulated clock it does so at each minute on the way, where there are alarms. On a real one some seconds later: what
other nodes counted is in the store five seconds after the minute.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from redrive.aws.cloudwatch.alarms.composites import Composites
from redrive.aws.cloudwatch.alarms.describing import History
from redrive.aws.cloudwatch.alarms.readings import AlarmReadings
from redrive.aws.cloudwatch.alarms.records import TURN, Alarm, Turn
from redrive.aws.cloudwatch.alarms.transitions import TargetState, Transitions
from redrive.aws.cloudwatch.alarms.verdict import AlarmVerdict, Datapoint, data_of, decide, reason_of
from redrive.aws.cloudwatch.alarms.watch import AlarmRegistry, AlarmWatch
from redrive.engine.ports import Clock, Runtime
from redrive.engine.resources import Documents, Draft
from redrive.model.durations import MINUTE_MS
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import DAY_MS

logger = logging.getLogger(__name__)

LATE_MS: Final = 6_000
#: A round is each minute; of a dead node's turn at most the next one is missed.
LEASE_MS: Final = 75_000
_KEY: Final = "turn"


class EvaluationTurns:
    """This node's turns: of several nodes one evaluates, by a lease that others take once it ran out.

    Two nodes that evaluate at once, because a clock runs ahead, write no transition twice: see `Transitions.bring`.
    """

    def __init__(self, documents: Documents, runtime: Runtime) -> None:
        self._documents = documents
        self._runtime = runtime

    async def take(self) -> bool:
        """Returns whether it is this node's turn, which it then is for `LEASE_MS`."""
        now, node = self._runtime.clock.now(), self._runtime.node

        async def decide(draft: Draft) -> bool:
            turn = await draft.get(TURN, _KEY)
            if turn is not None and turn.node != node and turn.until > now:
                return False
            draft.put(TURN, _KEY, Turn(node, now + LEASE_MS))
            return True

        return await self._documents.transact(decide)


class Evaluator:
    """Evaluates all alarms (`redrive.composition.extension.ClockDriven`)."""

    def __init__(
        self,
        registry: AlarmRegistry,
        readings: AlarmReadings,
        transitions: Transitions,
        turns: EvaluationTurns,
        composites: Composites,
        history: History,  # swept once a day
        clock: Clock,
        settle: Callable[[], Awaitable[None]],  # lets what this node has counted arrive in the store
        *,
        simulated: bool,  # the clock is a simulated one, and this node the only one
    ) -> None:
        self._registry = registry
        self._readings = readings
        self._transitions = transitions
        self._turns = turns
        self._composites = composites
        self._history = history
        self._clock = clock
        self._settle = settle
        self._simulated = simulated
        self._alarms_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        registry.on_change = self._alarms_changed.set

    def start(self) -> None:
        """Begin to evaluate."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def is_quiet(self) -> bool:
        """True if no round is under way."""
        return not self._lock.locked()

    async def until_quiet(self) -> None:
        """Return when no round is under way."""
        async with self._lock:
            pass

    # ---- when --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Evaluate at each multiple of the registry's grain, a little late; while there are no alarms, not at all."""
        while True:
            self._alarms_changed.clear()
            await _survive(self._registry.follow())
            grain_seconds = self._registry.grain_seconds
            if grain_seconds is None:
                await self._alarms_changed.wait()
                continue
            grain_ms, late_ms = grain_seconds * 1000, 0 if self._simulated else LATE_MS
            moment = ((self._clock.now() - late_ms) // grain_ms + 1) * grain_ms
            await self._evaluate_at(moment, moment + late_ms)

    async def _evaluate_at(self, moment: int, at: int) -> None:
        """Evaluate for a moment (ms) when the clock comes to another.

        The task is begun by whoever moves the clock: what a leap does may be deferred, and this is a part of it.
        """
        task_future: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_at(at, functools.partial(self._begin, task_future, moment))
        try:
            await (await task_future)
        finally:
            timer.cancel()

    def _begin(self, task_future: "asyncio.Future[asyncio.Task[None]]", moment: int) -> None:
        if not task_future.done():
            task_future.set_result(asyncio.get_running_loop().create_task(_survive(self.evaluate(moment))))

    # ---- what --------------------------------------------------------------------------------------------

    async def evaluate(self, moment: int) -> None:
        """Evaluate for a moment (ms): alarms of short periods always, others where a minute is whole."""
        async with self._lock:
            if not self._simulated and not await self._turns.take():
                return
            await self._registry.follow()
            await self._settle()
            is_whole_minute = moment % MINUTE_MS == 0
            due_watches = [
                watch
                for watch in self._registry.watches
                if is_whole_minute or watch.period_seconds * 1000 < MINUTE_MS
            ]
            for watch, window in await self._readings.read(due_watches, moment):
                await self._judge(watch, window)
            await self._composites.settle(self._clock.now())
            if moment % DAY_MS == 0:
                await self._history.sweep(moment)

    async def _judge(self, watch: AlarmWatch, window: Sequence[Datapoint]) -> None:
        """Bring an alarm to the state that its window means, unless the alarm was redefined meanwhile."""
        verdict = decide(watch.rule, window)
        if verdict is None or verdict.state == watch.alarm.state.value or _says_nothing(watch, verdict):
            return
        target = _target_state(watch, verdict, self._clock.now())

        def target_if_unchanged(alarm: Alarm) -> TargetState | None:
            return target if alarm.given == watch.alarm.given else None

        change = await self._transitions.bring(watch.alarm.name, target_if_unchanged, self._clock.now())
        if change is not None:
            logger.info("alarm.changed alarm=%s state=%s", watch.alarm.name.key, verdict.state)


def _says_nothing(watch: AlarmWatch, verdict: AlarmVerdict) -> bool:
    """True if a percentile is of too few samples."""
    return any(point.value is not None and point.samples < watch.samples_min for point in verdict.judged)


def _target_state(watch: AlarmWatch, verdict: AlarmVerdict, now: int) -> TargetState:
    """The state that a verdict leads to, with its reason."""
    is_m_of_n = bool(watch.alarm.given.get("DatapointsToAlarm"))
    data = data_of(
        watch.rule,
        verdict,
        now,
        statistic=watch.statistic,
        unit=watch.unit,
        period_seconds=watch.period_seconds,
    )
    return TargetState(verdict.state, reason_of(watch.rule, verdict, is_m_of_n=is_m_of_n), data)


async def _survive(work: Awaitable[None]) -> None:
    """Await work and log its error: the next evaluation tries again, and no error may end evaluating."""
    try:
        await work
    except StoreUnavailable as error:
        logger.warning("alarms.interrupted error=%s", error)
    except Exception:
        logger.exception("alarms.failed")

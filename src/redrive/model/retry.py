"""Retry schedules: when the next attempt is due, and when there is none.

A schedule is a row of stages. Retry number n follows failed attempt number n, both counted from 1, so a
schedule of three retries makes four attempts. Nothing here is ever listed out: the longest published schedule
has 100,015 retries, and asking for the last of them costs as much as asking for the first.
"""

import enum
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self

# Curves of the wait between a first and a last delay: four, each pinned at both ends.
#
# No vendor publishes formulas. What is published is that the first retry of a backoff waits the minimum and the
# last one the maximum, so "double until capped" is ruled out: it reaches the maximum too early or not at all.
# These four are convex, never decrease and never rise above the straight line.


class RetryCurve(enum.StrEnum):
    """The shape of a backoff between its first and its last delay."""

    LINEAR = "linear"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    EXPONENTIAL = "exponential"

    def at(self, retry: int, retries: int, first: float, last: float) -> float:
        """The delay before one retry of a backoff, in the unit of `first` and `last`.

        With t = (retry - 1) / (retries - 1): linear is m + (M - m)t, arithmetic m + (M - m)t², geometric
        m(M/m)^t, exponential m + (M - m)(2^(retry - 1) - 1)/(2^(retries - 1) - 1).

        Args:
            retry: Its number within the backoff, from 1.
            retries: How many retries the backoff has; with one, both ends coincide and `first` is the answer.
            first: m, the delay before the first retry; more than 0 for a geometric curve.
            last: M, the delay before the last one.
        """
        if retry <= 1:
            return first
        if retry >= retries:
            return last
        if self is RetryCurve.GEOMETRIC:
            return float(first * (last / first) ** ((retry - 1) / (retries - 1)))
        return first + (last - first) * self._rise(retry, retries)

    def _rise(self, retry: int, retries: int) -> float:
        """The share of the way from the first to the last delay, 0 to 1."""
        t = (retry - 1) / (retries - 1)
        if self is RetryCurve.LINEAR:
            return t
        if self is RetryCurve.ARITHMETIC:
            return t * t  # the delays' increments grow linearly
        return _doubling(retry, retries)  # exponential; `at` answers for the geometric one


_HALF: Final = 0.5


def _doubling(retry: int, retries: int) -> float:
    # Numerator and denominator are both divided by 2^(retries - 1): 2.0 ** 1024 would overflow.
    floor: float = _HALF ** (retries - 1)
    return float((_HALF ** (retries - retry) - floor) / (1 - floor))


_PERMILLE: Final = 1000


class Phase(enum.StrEnum):
    """The four phases that a schedule may have, in their order."""

    IMMEDIATE = "immediate"
    PRE_BACKOFF = "pre-backoff"
    BACKOFF = "backoff"
    POST_BACKOFF = "post-backoff"


@dataclass(frozen=True, slots=True)
class Stage:
    """Some retries that share one rule for their delays.

    Raises:
        ValueError: A count or a delay is negative, the delays shrink, or a geometric curve starts at 0.
    """

    phase: Phase  # Name of the stage
    retries: int  # How many there are
    first_ms: int  # The delay before its first retry
    last_ms: int  # The delay before its last retry
    curve: RetryCurve = RetryCurve.LINEAR  # How the delay grows from the first to the last

    def __post_init__(self) -> None:
        if self.retries < 0 or not 0 <= self.first_ms <= self.last_ms:
            raise ValueError(f"not a stage of a retry schedule: {self}")
        if self.curve is RetryCurve.GEOMETRIC and self.first_ms == 0 and self.last_ms > 0:
            raise ValueError(f"a geometric curve cannot start at 0: {self}")

    def nominal_ms(self, retry: int) -> int:
        """The delay before the stage's retry number `retry` (from 1), to the millisecond."""
        return round(self.curve.at(retry, self.retries, self.first_ms, self.last_ms))

    def waits(self) -> Iterator[tuple[Phase, int, int]]:
        """The delays in order, each with the number of retries that have it; a constant stage is not walked."""
        if self.first_ms == self.last_ms:
            yield self.phase, self.first_ms, self.retries
            return
        for retry in range(1, self.retries + 1):
            yield self.phase, self.nominal_ms(retry), 1

    def total_ms(self) -> int:
        """All its delays together; a constant stage is not walked, the longest has 100,000 retries."""
        if self.first_ms == self.last_ms:
            return self.retries * self.first_ms
        return sum(self.nominal_ms(retry) for retry in range(1, self.retries + 1))


class Step(NamedTuple):
    """One retry of a schedule, as `redrive schedule` prints it."""

    attempt: int  # The failed attempt that it follows, from 1
    phase: Phase  # Phase of the retry
    nominal_ms: int  # The wait after that failure as published
    earliest_ms: int  # The shortest wait that jitter makes of it
    latest_ms: int  # The longest one


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The schedule by which a failed delivery is tried again.

    Jitter is drawn evenly from the bounds around each nominal delay. By default a wait is up to 2.5 % shorter
    and never longer: no sum of waits exceeds the published total, and the longest published schedule stays
    within 22.57 to 23.15 days, its "23 days". An immediate retry stays immediate.
    """

    stages: tuple[Stage, ...]  # In order; empty for no retry at all
    # Attempts including the first; None if the stages alone say when it ends.
    attempts_max: int | None = None
    # How long after publication an attempt may still begin. It is looked at only when an attempt falls due
    # (`expired`), so a delivery can wait past it. None for no limit.
    expires_after_ms: int | None = None
    earlier_permille: int = 25  # By how many thousandths jitter may shorten a wait
    later_permille: int = 0  # By how many it may lengthen one

    def __post_init__(self) -> None:
        if not 0 <= self.earlier_permille <= _PERMILLE or self.later_permille < 0:
            raise ValueError("jitter may not make a wait negative")

    @property
    def retries_max(self) -> int:
        """The number of retries in all."""
        retries = sum(stage.retries for stage in self.stages)
        return retries if self.attempts_max is None else min(retries, self.attempts_max - 1)

    def delay_ms(self, attempt: int, rng: random.Random) -> int | None:
        """The wait after failed attempt number `attempt`, from 1, with jitter from `rng`; None when no retry is left."""
        step = self.step(attempt)
        return None if step is None else rng.randint(step.earliest_ms, step.latest_ms)

    def nominal_ms(self, attempt: int) -> int | None:
        """The published wait after failed attempt number `attempt`; None when no retry is left."""
        step = self.step(attempt)
        return None if step is None else step.nominal_ms

    def expired(self, published_at: int, now: int) -> bool:
        """True if a delivery published then (ms) may no longer be attempted now (ms)."""
        return self.expires_after_ms is not None and now - published_at >= self.expires_after_ms

    def step(self, attempt: int) -> Step | None:
        """The retry after failed attempt number `attempt`; None when no retry is left.

        Raises:
            ValueError: Attempts count from 1.
        """
        if attempt < 1:
            raise ValueError("attempts count from 1")
        if attempt > self.retries_max:
            return None
        retry = attempt
        for stage in self.stages:
            if retry <= stage.retries:
                return self._step(attempt, stage.phase, stage.nominal_ms(retry))
            retry -= stage.retries
        return None

    def steps(self) -> Iterator[Step]:
        """Every retry in order, one at a time."""
        attempt = 1
        while (step := self.step(attempt)) is not None:
            yield step
            attempt += 1

    def equal_waits(self) -> Iterator[tuple[Step, int]]:
        """The retries, grouped where one phase and one wait repeat: the first retry of each group, and their number."""
        waits = (wait for stage in self.stages for wait in stage.waits())
        attempt = 1
        for (phase, nominal_ms), equal in groupby(waits, key=itemgetter(0, 1)):
            retries = min(sum(number for _, _, number in equal), self.retries_max - attempt + 1)
            if retries < 1:
                return
            yield self._step(attempt, phase, nominal_ms), retries
            attempt += retries

    def total_ms(self) -> int:
        """All published delays of all stages together, whatever `attempts_max` and expiry cut off."""
        return sum(stage.total_ms() for stage in self.stages)

    def remaining_ms(self, attempt: int) -> int:
        """The published delays after failed attempt number `attempt` and after all that follow it."""
        return sum(
            step.nominal_ms * max(0, step.attempt + retries - max(step.attempt, attempt))
            for step, retries in self.equal_waits()
        )

    def to_document(self) -> dict[str, Any]:
        """The schedule as a JSON-ready document."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        stages = tuple(
            Stage(**{**stage, "phase": Phase(stage["phase"]), "curve": RetryCurve(stage["curve"])})
            for stage in document["stages"]
        )
        return cls(**{**document, "stages": stages})

    def _step(self, attempt: int, phase: Phase, nominal_ms: int) -> Step:
        earliest_ms = nominal_ms - nominal_ms * self.earlier_permille // _PERMILLE
        latest_ms = nominal_ms + nominal_ms * self.later_permille // _PERMILLE
        return Step(attempt, phase, nominal_ms, earliest_ms, latest_ms)

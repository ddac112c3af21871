"""Meters of a node: what operators alert on, counted in memory since the start and shown by the exposition.

Nothing here is told by topic or subscription: of those there may be a hundred thousand, and of protocols, outcomes and
reasons some dozens.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from typing_extensions import override

from redrive.engine.ports.facts import Attempted, Listener, Undelivered
from redrive.model.attempt import Reason
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.queue import Queue

#: Of a dead letter, or a loss: where it was on its way (`subscription`, `queue`), and why it ended.
Cause = tuple[str, str]

_SUBSCRIPTION: Final = "subscription"
_QUEUE: Final = "queue"
_MS: Final = 1000
# All there can be, from the start: of a counter that appears with a 1, Prometheus sees no increase.
_CAUSES: Final = (
    *((_SUBSCRIPTION, reason) for reason in Reason if reason is not Reason.ACCEPTED),
    *((_QUEUE, reason) for reason in DeadLetterReason),
)


class StoreMeter:
    """`redrive.engine.ports.CommitMeter`: how long commits take, and how many calls share one."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.begin = monotonic
        self._monotonic = monotonic
        self.seconds = Histogram(SHORT_SECONDS)
        self.calls = Histogram(SHARED)

    def end(self, began: float, calls: int) -> None:
        """See `CommitMeter.end`."""
        self.seconds.observe(self._monotonic() - began)
        self.calls.observe(calls)


class NodeMeters(Listener):
    """All meters of a node.

    Attributes:
        attempts: Seconds that attempts took, by protocol and outcome.
        dead_letters: Deliveries that ended in a dead-letter queue, or in a letter to a store of them.
        losses: Deliveries that ended, undelivered, without either.
        commits: Of the store.
        loop_lag: Seconds by which a call that the event loop was asked for came too late.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.attempts: dict[tuple[str, str], Histogram] = {}
        self.dead_letters: Counter[Cause] = Counter(dict.fromkeys(_CAUSES, 0))
        self.losses: Counter[Cause] = Counter(dict.fromkeys(_CAUSES, 0))
        self.commits = StoreMeter(monotonic)
        self.loop_lag = Histogram(SHORT_SECONDS)

    @override
    def attempted(self, fact: Attempted) -> None:
        key = fact.subscription.protocol, fact.transition.outcome.value
        histogram = self.attempts.get(key)
        if histogram is None:
            histogram = self.attempts[key] = Histogram(LONG_SECONDS)
        histogram.observe(fact.attempt.duration_ms / _MS)

    @override
    def undelivered(self, fact: Undelivered) -> None:
        if fact.confirmation:
            return
        counter = self.dead_letters if fact.outcome is Outcome.DEAD_LETTERED else self.losses
        counter[_SUBSCRIPTION, fact.last.attempt.reason] += 1

    @override
    def buried(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        self.dead_letters[_QUEUE, why] += messages

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        self.losses[_QUEUE, why] += messages


# Histograms as Prometheus understands them: how many values were no greater than each of some bounds, and their sum.
#
# Of our own, since prometheus_client's takes a lock for each number: 710 ns a value where this takes 140 (decision 0007).

#: Of what waits for a disk, a database or the loop: 0.5 ms to 10 s.
SHORT_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Of what waits for somebody else's server: 5 ms to 60 s. SNS gives a webhook 15 s, Event Grid 30 s.
LONG_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)
#: Of calls that share a transaction, of which there are `GROUP_CALLS_MAX` at most.
SHARED: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)


class Reading(NamedTuple):
    """The state of a histogram."""

    # Bounds, and how many values were no greater; the last bound is infinite, and has them all.
    buckets: Sequence[tuple[float, int]]
    sum: float  # Sum of all values


class Histogram:
    """Values counted by bounds. One thread adds; others may read, and see a value more or less."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Add a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def median_bound(self) -> float | None:
        """The least bound that half of the values are no greater than; None: there are no values."""
        buckets, _ = self.read()
        _, total = buckets[-1]
        return next((bound for bound, count in buckets if total and 2 * count >= total), None)

    def read(self) -> Reading:
        """The counts so far."""
        buckets, total = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        return Reading(buckets, self._sum)

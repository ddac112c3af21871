"""Meters of a node: what operators alert on, counted in memory since the start and shown by the exposition.

Nothing here is told by topic or subscription: of those there may be a hundred thousand, and of protocols, outcomes and
reasons some dozens.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from redrive.engine.facts import Attempted, Listener, Undelivered
from redrive.model.attempt import Reason
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.queue import Queue
from redrive.telemetry.histogram import LONG_SECONDS, SHARED, SHORT_SECONDS, Histogram

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
        ended = self.dead_letters if fact.outcome is Outcome.DEAD_LETTERED else self.losses
        ended[_SUBSCRIPTION, fact.last.attempt.reason] += 1

    @override
    def buried(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        self.dead_letters[_QUEUE, why] += messages

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        self.losses[_QUEUE, why] += messages

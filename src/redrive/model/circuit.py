"""Circuit breakers: while an endpoint fails its deliveries wait (Event Grid calls it probation, delayed delivery).

Two rules open one, and the longer time holds. Some failures say how long to stay away (a busy endpoint for seconds, one
that is not there for minutes). And after so many failures in a row it is open for longer each time that the probe fails.
Then it is half open: one delivery goes first, the probe, from one node; the others follow if it is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from redrive.model.attempt import Attempt, Reason
from redrive.model.document import Document
from redrive.model.durations import MINUTE_MS

_SLACK_MS: Final = 1_000  # a time that would end this much later is the same
_DOUBLINGS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class CircuitPolicy:
    """The failures that open an endpoint's circuit, and for how long."""

    # The time (ms) it is open after an answer with this status.
    by_status: Mapping[int, int] = field(default_factory=dict)
    # The time (ms) after a failure for this reason, where the status has none.
    by_reason: Mapping[Reason, int] = field(default_factory=dict)
    failures_max: int = 10  # So many failures in a row open it whatever they were
    # How long it is open the first time; each time that follows is twice as long.
    first_ms: int = 1 * MINUTE_MS
    longest_ms: int = 240 * MINUTE_MS  # It is never open for longer without a probe

    def open_ms(self, attempt: Attempt) -> int:
        """The time that this failure alone opens it for."""
        return self.by_status.get(attempt.status) or self.by_reason.get(attempt.reason, 0)

    def with_times(
        self, by_status: Mapping[int, int] | None = None, by_reason: Mapping[Reason, int] | None = None
    ) -> Self:
        """This policy with further times (ms), which replace its own for the same status or reason."""
        return replace(
            self,
            by_status={**self.by_status, **(by_status or {})},
            by_reason={**self.by_reason, **(by_reason or {})},
        )


# Seconds for an endpoint that is busy or hangs, minutes for one that is not there. The figures are Event Grid's, which
# has times for more (`Event Grid message delivery and retry`, probation).
USUAL: Final = CircuitPolicy(
    by_status={404: 5 * MINUTE_MS, 429: 10_000, 503: 10_000},
    by_reason={
        Reason.TIMED_OUT: 10_000,
        Reason.CONNECTION: 30_000,
        Reason.TLS: 30_000,
        Reason.NAME_NOT_RESOLVED: 5 * MINUTE_MS,
    },
)


@dataclass(frozen=True, slots=True)
class OpenCircuit(Document):
    """One subscription's circuit breaker, open or half open."""

    restored: ClassVar = {"reason": Reason}

    reason: Reason  # Reason of the failure that opened it
    status: int  # Its status code, or 0
    since: int  # When it was opened first (ms); a probe that fails keeps it
    until: int  # When it is half open (ms). The state lasts until a delivery is taken.
    failures: int  # How many attempts failed in a row
    rests: int = 0  # How many times in a row a long row of failures has opened it; named as stores have it
    endpoint: str = ""  # Endpoint it applies to: a subscription that has another one by now is not affected
    prober: str = ""  # The node that probes, once it is half open, whether the endpoint takes something again
    probing_until: int = 0  # For so long (ms) no other node does

    def may_probe(self, node: str, now: int) -> bool:
        """True if that node may try, now (ms), whether the endpoint takes something again."""
        return now >= self.until and (node == self.prober or now >= self.probing_until)

    def next_at(self, node: str, now: int) -> int:
        """The moment (ms) that the node may probe."""
        return now if self.may_probe(node, now) else max(self.until, self.probing_until)


def after_failure(
    policy: CircuitPolicy, circuit: OpenCircuit | None, failures: int, attempt: Attempt, now: int
) -> OpenCircuit | None:
    """The circuit breaker of an endpoint after a failed attempt; None: it stays closed.

    Attempts that were under way when it was opened fail too: they count, and keep it open for longer only if their
    own time would end more than a second later.

    Args:
        policy: The rules.
        circuit: As it was before; None: closed.
        failures: How many attempts failed in a row, this one included.
        attempt: The failure.
        now: When it ended (ms).
    """
    open_ms = policy.open_ms(attempt)
    if circuit is not None and circuit.until > now:
        if now + open_ms <= circuit.until + _SLACK_MS:
            return circuit
        return replace(
            circuit, reason=attempt.reason, status=attempt.status, until=now + open_ms, failures=failures
        )
    since, rests = (now, 0) if circuit is None else (circuit.since, circuit.rests)
    if failures >= policy.failures_max:
        doubled_ms = policy.first_ms << min(rests, _DOUBLINGS_MAX)
        open_ms = max(open_ms, min(doubled_ms, policy.longest_ms))
        rests += 1
    if not open_ms:  # such a failure opens nothing by itself
        return circuit
    return OpenCircuit(attempt.reason, attempt.status, since, now + open_ms, failures, rests)

"""The backlogs that Redrive itself empties: each claim and each attempt's end, as plan and endpoint want it."""

from dataclasses import dataclass, field

from redrive.engine.ports import ClaimRequest, Settlement
from redrive.model.attempt import AttemptResult
from redrive.model.circuit import OpenCircuit
from redrive.model.delivery import Outcome
from tests.simulation.entry import Entry
from tests.simulation.outside import Seen
from tests.simulation.rules import Rule, require
from tests.simulation.subscribers import LEASE_MS, SubscriptionPlan
from tests.simulation.trace import Trace

SLOW_MS = 100  # an endpoint that is not slow takes half of that
HEARD_MS = 8_000  # until every node has heard of a change or that it missed some, and has read what it is now


@dataclass
class Backlog:
    """One subscription's.

    Attributes:
        seen: What its endpoint saw.
        skew_ms: How far the clocks of two nodes may be apart.
        claimed: When each claimed delivery was, by its claimer's clock (ms), in the order of the claims.
        outages: Whether the store's outages are all that goes wrong between nodes and store.
    """

    seen: Seen
    skew_ms: int
    trace: Trace
    outages: bool
    claimed: list[int] = field(default_factory=list)

    @property
    def plan(self) -> SubscriptionPlan:
        """The plan by which the backlog is pushed."""
        return self.seen.plan

    def rests(self, circuit: OpenCircuit | None, now: int) -> None:
        """A node wrote that the endpoint rests, or that it does no more; `now` is the true time."""
        seen = self.seen
        if circuit is not None and circuit.until == seen.rest:
            self.trace.mark("a probe")
            return
        seen.rest = 0 if circuit is None else circuit.until
        seen.rest_known_at = now + HEARD_MS
        self.trace.mark("a rest begins" if circuit else "a rest ends")

    def claim(self, request: ClaimRequest, number: int) -> None:
        """So many were claimed together."""
        if number:
            seen = self.seen
            resting = seen.rest_known_at + self.skew_ms <= request.now < seen.rest - self.skew_ms
            require(not resting, Rule.RESTED, self.plan.name, "at", request.now, "until", seen.rest)
        if number and self.plan.rate_max is not None:
            self.claimed += [request.now] * number
            self._keep_pace(self.plan.rate_max, request.now)

    def resume(self, entry: Entry, now: int) -> None:
        """A claim of it ran out unsettled, and it is handed out again; `now` is the true time."""
        if entry.token is None or not self.outages:
            return
        taken_at, lives = self.seen.taken.get((entry.seq, entry.token), (now, bool))
        in_time = now - taken_at > LEASE_MS - SLOW_MS
        require(not (in_time and lives()), Rule.SETTLED, entry, "was taken", now - taken_at, "ms ago")

    def _keep_pace(self, rate_max: int, now: int) -> None:
        """However long one looks back, no more were claimed than the rate allows."""
        for at, then in enumerate(self.claimed):
            number, elapsed_ms = len(self.claimed) - at, now - then + 1
            require(
                (number - 1) * 1000 <= elapsed_ms * rate_max, Rule.PACED, self.plan.name, number, elapsed_ms
            )
        self.trace.mark("paced", len(self.claimed) > 1)

    def end_attempt(self, entry: Entry, one: Settlement, now: int) -> str:
        """Check a settlement, and return how the delivery leaves; empty where it is to be tried again."""
        answer = self.seen.answers.get((one.seq, one.token))
        if one.outcome is Outcome.DELIVERED:
            require(
                answer is AttemptResult.DELIVERED or self.plan.queue, Rule.HONEST, entry, "was never accepted"
            )
            soft_timeout_ms = self.plan.soft_timeout_ms
            self.trace.mark(
                "taken late", soft_timeout_ms is not None and now - entry.claimed_at > 2 * soft_timeout_ms
            )
            return "delivered"
        require(answer is not AttemptResult.DELIVERED, Rule.TAKEN, entry, "and yet", one.outcome)
        spent = entry.attempts > len(self.plan.waits_ms)
        if one.outcome is Outcome.RETRY:
            # A refusal that came after it had failed changes nothing.
            too_late = self.plan.soft_timeout_ms is not None
            refused = answer is AttemptResult.REFUSED and not too_late
            require(not spent and not refused, Rule.EXHAUSTED, entry, "is to be tried again")
            self._wait(entry, one)
            self.trace.mark("retried")
            return ""
        overdue = self._overdue(entry, now)
        why = spent or overdue or answer is AttemptResult.REFUSED
        require(why, Rule.EXHAUSTED, entry, "was given up too early")
        require(overdue or one.outcome is not Outcome.EXPIRED, Rule.OVERDUE, entry, "was given up too early")
        self.trace.mark("overdue", overdue)
        if one.target is not None:
            return "dead-lettered"
        return "overdue" if one.outcome is Outcome.EXPIRED else "dropped"

    def _wait(self, entry: Entry, one: Settlement) -> None:
        """The wait begins when the attempt failed; with patience, that was before it was given up."""
        require(one.note is not None, Rule.AGREES, entry, "is to be tried again, and nothing says why")
        ended_at = 0 if one.note is None else one.note.at
        wait_ms, failed_at = self.plan.waits_ms[entry.attempts - 1], ended_at
        if self.plan.soft_timeout_ms is not None:
            failed_at = min(ended_at, entry.claimed_at + self.plan.soft_timeout_ms) - self.skew_ms
        waits_ms = one.available_at - failed_at
        require(waits_ms >= wait_ms, Rule.EARLY, entry, "waits", waits_ms, "not", wait_ms)

    def _overdue(self, entry: Entry, now: int) -> bool:
        lives_ms = self.plan.lives_ms
        return lives_ms is not None and now - entry.enqueued_at >= lives_ms - self.skew_ms

    def follow_ups(self, how: str, entry: Entry, one: Settlement) -> None:
        """Check that a delivery given up has one follow-up, where there is a queue for it; else none."""
        letters = [letter.body for letter in one.follow_ups]
        wanted = [entry.body] if self.plan.letters and how not in ("", "delivered") else []
        require(letters == wanted, Rule.LED, entry, how, "leads to", letters)
        self.trace.mark("a letter", len(letters))

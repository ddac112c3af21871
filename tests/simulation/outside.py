"""The world outside: endpoints that answer, fail, refuse or hang, and see to it that they get what they asked for."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.names import bytes_of
from tests.simulation.rules import Rule, Violation, require
from tests.simulation.subscribers import LEASE_MS, SubscriptionPlan
from tests.simulation.trace import Trace

_SLACK_MS = 500  # between a claim and its push

_OK = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1)
_BROKEN = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "", 1)
_REFUSED = Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400, "", 1)


class Pushed(NamedTuple):
    """A delivery as an endpoint gets it: what it is known by, when it was published (ms), and the message."""

    seq: int
    token: int
    sent_at: int
    body: str


@dataclass
class Seen:
    """Deliveries that an endpoint saw, by place and claim token.

    Attributes:
        answers: How it answered.
        rest: Until when (ms) it is let rest, by the clock of who said so; 0: it is not.
        rest_known_at: When every node knew that (ms of true time).
        asked: When each push began that is under way.
        taken: Where it took it at once: when (ms), and whether the node that was told so lives yet.
    """

    plan: SubscriptionPlan
    answers: dict[tuple[int, int], AttemptResult] = field(default_factory=dict)
    rest: int = 0
    rest_known_at: int = 0
    asked: list[int] = field(default_factory=list)
    taken: dict[tuple[int, int], tuple[int, Callable[[], bool]]] = field(default_factory=dict)


class Outside:
    """All endpoints, each by the name of its subscription: `redrive.engine.ports.Endpoint`."""

    def __init__(
        self,
        plans: Mapping[str, SubscriptionPlan],
        now: Callable[[], int],
        pause: Callable[[float], Awaitable[None]],
        rng: random.Random,
        trace: Trace,
        skew_ms: int,
        fail: Callable[[BaseException], None],
        life: Callable[[], Callable[[], bool]],
    ) -> None:
        self.seen = {name: Seen(plan) for name, plan in plans.items()}
        self.well = False
        self._now = now
        self._pause = pause
        self._rng = rng
        self._trace = trace
        self._skew_ms = skew_ms
        self._fail = fail
        self._life = life  # tells of who pushes whether he lives yet

    @property
    def is_asked(self) -> bool:
        """True if something is being pushed."""
        return any(seen.asked for seen in self.seen.values())

    async def push(self, push_request: PushRequest) -> Attempt:
        """Take deliveries, or not: all that came together."""
        seen, pushed = self.seen[push_request.endpoint], unpacked(push_request)
        try:
            self._inspect(seen.plan, pushed)
            self._leave_alone(seen)
        except Violation as violation:  # the engine would take it for a failed attempt
            self._fail(violation)
        began = self._now()
        seen.asked.append(began)
        try:
            slow = not self.well and self._rng.random() < seen.plan.slow
            await self._pause(self._rng.uniform(0, 2 * LEASE_MS if slow else 50))
        finally:
            seen.asked.remove(began)
        attempt = self._attempt(seen.plan)
        seen.answers.update({(one.seq, one.token): attempt.result for one in pushed})
        if attempt.delivered and not slow:  # what took longer than a lease may have been handed out again
            seen.taken.update({(one.seq, one.token): (self._now(), self._life()) for one in pushed})
        bodies = [one.body for one in pushed]
        self._trace.note(push_request.endpoint, "sees", bodies, "and says", attempt.status)
        self._trace.mark(f"pushed: {attempt.reason}")
        self._trace.mark("a batch of several", len(pushed) > 1)
        return attempt

    def _leave_alone(self, seen: Seen) -> None:
        """After a rest one push goes first, for as long as its claim holds; `rest` is 0 as soon as one was taken."""
        over_at = max(seen.rest + self._skew_ms, seen.rest_known_at)
        now = self._now()
        if seen.rest and now >= over_at:
            held_ms = LEASE_MS - self._skew_ms - _SLACK_MS
            lately = [at for at in seen.asked if at >= over_at and now - at < held_ms]
            require(not lately, Rule.PROBED, seen.plan.name, "at", now, "and at", *lately)

    def _inspect(self, plan: SubscriptionPlan, pushed: list[Pushed]) -> None:
        batch, weight = plan.batch, sum(bytes_of(one.body) for one in pushed)
        fits = len(pushed) <= batch.deliveries_max and weight <= batch.bytes_target
        require(fits or len(pushed) == 1, Rule.BATCHED, len(pushed), "of", weight, "bytes, not", batch)
        for one in pushed:
            require(plan.wants(one.body), Rule.FILTERED, one.body, "for", plan.name)
            age_ms = self._now() - one.sent_at
            in_time = plan.lives_ms is None or age_ms < plan.lives_ms + self._skew_ms
            require(in_time, Rule.OVERDUE, one.body, "after", age_ms, "not", plan.lives_ms)

    def _attempt(self, plan: SubscriptionPlan) -> Attempt:
        roll = 1.0 if self.well else self._rng.random()
        if roll < plan.broken:
            return _BROKEN
        return _REFUSED if roll < plan.broken + plan.refused else _OK

    async def close(self) -> None:
        """They go on without us."""


def unpacked(push_request: PushRequest) -> list[Pushed]:
    """Return the content that a dialect's `push_request` packed."""
    marks, bodies = push_request.headers["deliveries"].split(), push_request.body.decode().split("\n")
    return [Pushed(*_numbers(mark), body) for mark, body in zip(marks, bodies, strict=True)]


def _numbers(mark: str) -> tuple[int, int, int]:
    seq, token, sent_at = map(int, mark.split("/"))
    return seq, token, sent_at

"""A claim's decisions: which of the due deliveries it gets, how they are stamped, and which leave their queue instead.

A store looks rows up and writes them; what is to happen to them is said here, once for every store. A statement that
decides for itself, for speed, is held against this by a test.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from redrive.model.delivery import DeadLetterReason, Delivery, Limits, LinePosition, Outcome


class ClaimTerms(Protocol):
    """The terms of a claim; `redrive.engine.ports.ClaimRequest` in full."""

    limit: int
    now: int
    lease_ms: int
    token: int
    limits: Limits
    resumes: bool
    looks_ahead: bool


@dataclass(slots=True)
class ClaimResult:
    """The result of a claim."""

    deliveries: list[Delivery] = field(default_factory=list)  # Claimed now, in the queue's order
    dead_lettered: int = 0  # How many went to the dead-letter queue on the way
    expired: int = 0  # How many were out of their retention period
    dropped: int = 0  # How many had all their claims and no dead-letter queue to go to
    # When nothing was claimed, or fewer than asked for by a request that looks ahead: the moment (ms) the
    # next waiting delivery falls due, if there is one; those just claimed wait for the end of their lease.
    next_at: int | None = None

    @property
    def removed(self) -> int:
        """The number of deliveries that left the queue on the way."""
        return self.dead_lettered + self.expired + self.dropped


# A delivery and its position in its queue's line: a plain tuple, which each claim makes in a fifth of the time.
Placed = tuple[Delivery, int]
Followers = dict[str, list[Delivery]]  # the deliveries behind the turn of each group, the oldest first

# Bound once: a claim meets each of them for each delivery, and looking up an enum's member takes 30 ns.
_RETRY: Final = Outcome.RETRY
_HEAD: Final = LinePosition.HEAD.value


def offer(delivery: Delivery, limits: Limits, now: int) -> Outcome:
    """The outcome for a delivery that is due when a claim meets it: RETRY if it may be claimed (again).

    Claims that ran out without an answer are counted here, on the attempt that would exceed the limit: that
    is the moment SQS moves a message to its dead-letter queue. Without dead letters it is offered for ever,
    since nobody ever said that it failed; or dropped, where the queue's owner wants that.
    """
    if limits.is_expired(delivery.enqueued_at, now):
        return Outcome.DEAD_LETTERED if limits.buries_expired and limits.dead_letters else Outcome.EXPIRED
    if delivery.attempts >= limits.attempts_max and limits.ends_exhausted:
        return Outcome.DEAD_LETTERED if limits.dead_letters else Outcome.DROPPED
    return Outcome.RETRY


def death_reason(delivery: Delivery, limits: Limits, now: int) -> DeadLetterReason:
    """The reason why a delivery becomes a dead letter, for which `offer` returned DEAD_LETTERED."""
    return (
        DeadLetterReason.EXPIRED
        if limits.is_expired(delivery.enqueued_at, now)
        else DeadLetterReason.EXHAUSTED
    )


def stamp(delivery: Delivery, request: ClaimTerms) -> None:
    """Give a delivery to a claim: its token, until its lease ends, and counted as an attempt.

    One that was claimed before and is resumed is the same attempt still.
    """
    if not (request.resumes and delivery.token is not None):
        delivery.attempts += 1
    if delivery.first_claimed_at is None:
        delivery.first_claimed_at = request.now
    delivery.token = request.token
    delivery.available_at = request.now + request.lease_ms


TermsT_co = TypeVar("TermsT_co", bound=ClaimTerms, covariant=True)


class ClaimShare(Generic[TermsT_co]):
    """One request, and the deliveries that it has got so far."""

    __slots__ = ("claimed", "request")

    def __init__(self, request: TermsT_co) -> None:
        self.request = request
        self.claimed = ClaimResult([])

    @property
    def room(self) -> int:
        """The number of deliveries that it may still get."""
        return self.request.limit - len(self.claimed.deliveries)

    @property
    def wants_next_at(self) -> bool:
        """True if the answer says when the next delivery falls due."""
        return wants_next_at(self.claimed, self.request, self.request.limit)


def order_of_due(delivery: Delivery) -> tuple[int, int]:
    """The sort key of deliveries that are due: the order in which claims take them.

    One whose claim ran out, or was given back, is back at its place of arrival, before what arrived after it. In a group
    it comes at the moment it fell due, so that one group's failures do not keep the others waiting.
    """
    if delivery.token is not None and delivery.group_id is None:
        return 0, delivery.seq
    return delivery.available_at, delivery.seq


def line_of_due(back: Sequence[Placed], waiting: Sequence[Placed]) -> Sequence[Placed]:
    """Both lines, of what claims gave back and of what waits, merged in the order of `order_of_due`."""
    if not back:
        return waiting
    return sorted((*back, *waiting), key=lambda placed: order_of_due(placed[0]))


def wants_next_at(claimed: ClaimResult, request: ClaimTerms, limit: int) -> bool:
    """True if the answer to a request for up to `limit` says when the next delivery falls due."""
    return not claimed.deliveries or (request.looks_ahead and len(claimed.deliveries) < limit)


class ClaimPlan:
    """The plan for the deliveries at the front of a line; each share has its deliveries.

    Each claim makes one, so it is not a dataclass: five factories would take 0.2 us of a claim's 13.

    Attributes:
        claimed: Stamped already; the token says by which request.
        dead: Become dead letters: they had all their claims, or expired where that is a reason.
        discarded: Out of their retention period, or dropped after all their claims.
        turns_lost: Groups whose turn left the queue with the delivery that had it.
        turns_used: Groups of a fair queue whose turn passes to their next delivery, since it was claimed for.
    """

    __slots__ = ("claimed", "dead", "discarded", "turns_lost", "turns_used")

    def __init__(self) -> None:
        self.claimed: list[Delivery] = []
        self.dead: list[Delivery] = []
        self.discarded: list[Delivery] = []
        self.turns_lost: set[str] = set()
        self.turns_used: set[str] = set()

    @property
    def removed(self) -> list[Delivery]:
        """The deliveries that leave the queue."""
        return self.dead + self.discarded

    def take(self, delivery: Delivery, share: ClaimShare[ClaimTerms], now: int) -> bool:
        """Claim one due delivery, or let it leave if its retention or its attempts are over; True if it is claimed."""
        outcome = offer(delivery, share.request.limits, now)
        if outcome is not _RETRY:
            self._let_go(delivery, share, outcome)
            return False
        stamp(delivery, share.request)
        share.claimed.deliveries.append(delivery)
        self.claimed.append(delivery)
        return True

    def end(self, delivery: Delivery, share: ClaimShare[ClaimTerms], now: int) -> bool:
        """Let a delivery leave if it may not be claimed any more; True if it leaves."""
        outcome = offer(delivery, share.request.limits, now)
        if outcome is _RETRY:
            return False
        self._let_go(delivery, share, outcome)
        return True

    def _let_go(self, delivery: Delivery, share: ClaimShare[ClaimTerms], outcome: Outcome) -> None:
        """Let a delivery leave its queue with this outcome, and count it for the request that met it."""
        if outcome is Outcome.DEAD_LETTERED:
            self.dead.append(delivery)
            share.claimed.dead_lettered += 1
        elif outcome is Outcome.EXPIRED:
            self.discarded.append(delivery)
            share.claimed.expired += 1
        else:
            self.discarded.append(delivery)
            share.claimed.dropped += 1


def plan_ordered(
    shares: Sequence[ClaimShare[ClaimTerms]], line: Sequence[Placed], followers: Followers, now: int
) -> ClaimPlan:
    """Give out an ordered queue: as many of a group as possible, and never one group to two requests.

    Of a group go the oldest, up to the first that is not due.
    """
    plan = ClaimPlan()
    open_shares = _with_room(shares)
    share = next(open_shares, None)
    for head, turn in line:
        if share is None:
            break
        for each in (head, *followers.get(head.group_id or "", ())):
            if not share.room or each.available_at > now:
                break
            is_claimed = plan.take(each, share, now)
            if not is_claimed and each is head and turn == _HEAD:
                plan.turns_lost.add(head.group_id or "")
        if not share.room:
            share = next(open_shares, None)
    return plan


def plan_fair(
    shares: Sequence[ClaimShare[ClaimTerms]], line: Sequence[Placed], followers: Followers, now: int
) -> ClaimPlan:
    """Give out a queue without order, one delivery of each group in turn.

    Only the delivery with its group's turn (`_HEAD`) is in the line; when it is taken, the next of the group joins the
    line's end. That one may not be due: it came in by the clock of a node that is ahead.
    """
    plan = ClaimPlan()
    behind = {name: deque(members) for name, members in followers.items()} if followers else {}
    round_robin = deque(line)
    for share in shares:
        room = share.room
        while round_robin and room:
            delivery, turn = round_robin.popleft()
            is_claimed = plan.take(delivery, share, now)
            if is_claimed:
                room -= 1
            if turn != _HEAD or delivery.group_id is None:
                continue
            turns = plan.turns_used if is_claimed else plan.turns_lost
            turns.add(delivery.group_id)
            members = behind.get(delivery.group_id)
            if members and members[0].available_at <= now:
                round_robin.append((members.popleft(), _HEAD))
    return plan


def plan_endings(share: ClaimShare[ClaimTerms], line: Sequence[Placed], now: int) -> ClaimPlan:
    """Give out nothing: only deliveries that may not be claimed any more leave."""
    plan = ClaimPlan()
    for delivery, turn in line:
        if plan.end(delivery, share, now) and turn == _HEAD:
            plan.turns_lost.add(delivery.group_id or "")
    return plan


def _with_room(shares: Sequence[ClaimShare[ClaimTerms]]) -> Iterator[ClaimShare[ClaimTerms]]:
    return (share for share in shares if share.room)


_SECOND_US = 1_000_000
_CLOCK_SKEW_MAX_MS = 60_000  # by so much nodes' clocks may differ


class Pace(NamedTuple):
    """A throttle: the time of the next delivery.

    There is no burst: `rate_max` a second are one every 1/`rate_max` s, and a pause is not made up for. Takers look
    at whole milliseconds; the part of one by which they come late is carried on, or 300 a second would become 250.
    """

    rate_max: int  # How many a second
    next_us: int  # The moment of the next (µs since the epoch); 0 before the first

    @staticmethod
    def over_us(now: int) -> int:
        """A pace whose `next_us` is no later than this has no effect any more, now (ms), and may be forgotten."""
        return (now - _CLOCK_SKEW_MAX_MS) * 1000

    @staticmethod
    def ends_at(next_us: int) -> int:
        """The moment (ms) from which a pace has no effect any more: the first whose `over_us` reaches `next_us`."""
        return -(-next_us // 1000) + _CLOCK_SKEW_MAX_MS

    def wait_until(self, now: int) -> int | None:
        """The moment (ms) to come back at, or None when one may be taken now."""
        return -(-self.next_us // 1000) if self.next_us > now * 1000 else None

    def allowance(self, now: int) -> int:
        """The number of deliveries that may be claimed now (ms)."""
        return max(0, (now * 1000 - self._due_us(now)) * self.rate_max // _SECOND_US + 1)

    def after(self, claims: int, now: int) -> int:
        """The new `next_us` after so many claims."""
        return self._due_us(now) + claims * _SECOND_US // self.rate_max

    def _due_us(self, now: int) -> int:
        return max(self.next_us, now * 1000 - 999)

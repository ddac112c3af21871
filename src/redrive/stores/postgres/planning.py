"""The plan of a claim: which request gets which of the deliveries at the front, decided without a database."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redrive.engine.ports import Claimed, ClaimRequest
from redrive.model.delivery import Delivery, LinePosition, Outcome, offer
from redrive.stores.postgres.rows import Placed

Followers = dict[str, list[Delivery]]  # who waits behind the turn, by group, the oldest first


@dataclass(slots=True)
class Share:
    """One order and what it has got so far."""

    request: ClaimRequest
    claimed: Claimed = field(default_factory=Claimed)

    @property
    def room(self) -> int:
        """The number of deliveries that it may still get."""
        return self.request.limit - len(self.claimed.deliveries)


@dataclass(slots=True)
class Plan:
    """The plan for the front of a line; each share has its deliveries.

    Attributes:
        claimed: By whom, their tokens say.
        dead: Had all their claims, or are kept too long and yet not let go.
        gone: Out of their retention period, or dropped after all their claims.
        left: Groups whose turn left the queue with the one who had it.
        handed_on: Groups of a fair queue whose turn was used, so that it is the next one's.
    """

    claimed: list[Delivery] = field(default_factory=list)
    dead: list[Delivery] = field(default_factory=list)
    gone: list[Delivery] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    handed_on: set[str] = field(default_factory=set)

    @property
    def removed(self) -> list[Delivery]:
        """Those that leave the queue."""
        return self.dead + self.gone

    def take(self, delivery: Delivery, share: Share, now: int) -> bool:
        """Put one due delivery where its retention and its count of attempts say; whether it is claimed."""
        if self.end(delivery, share, now):
            return False
        self._claim(delivery, share)
        return True

    def end(self, delivery: Delivery, share: Share, now: int) -> bool:
        """Let one leave that is not offered any more; whether it does."""
        outcome = offer(delivery, share.request.limits, now)
        if outcome is Outcome.DEAD_LETTERED:
            self.dead.append(delivery)
            share.claimed.dead_lettered += 1
        elif outcome is Outcome.EXPIRED:
            self.gone.append(delivery)
            share.claimed.expired += 1
        elif outcome is Outcome.DROPPED:
            self.gone.append(delivery)
            share.claimed.dropped += 1
        return outcome is not Outcome.RETRY

    def _claim(self, delivery: Delivery, share: Share) -> None:
        request = share.request
        if not (request.resumes and delivery.token is not None):
            delivery.attempts += 1
        if delivery.first_claimed_at is None:
            delivery.first_claimed_at = request.now
        delivery.token, delivery.available_at = request.token, request.now + request.lease_ms
        share.claimed.deliveries.append(delivery)
        self.claimed.append(delivery)


def plan_ordered(shares: Sequence[Share], line: Sequence[Placed], followers: Followers, now: int) -> Plan:
    """Give out an ordered queue: as many of a group as possible, and never one group to two.

    Of a group go the oldest, up to the first that is not due.
    """
    plan = Plan()
    open_shares = _with_room(shares)
    share = next(open_shares, None)
    for head, place in line:
        if share is None:
            break
        for one in (head, *followers.get(head.group_id or "", ())):
            if not share.room or one.available_at > now:
                break
            if not plan.take(one, share, now) and one is head and place == LinePosition.HEAD:
                plan.left.add(head.group_id or "")
        if not share.room:
            share = next(open_shares, None)
    return plan


def plan_fair(shares: Sequence[Share], line: Sequence[Placed], followers: Followers, now: int) -> Plan:
    """Give out a queue without order: one of each group in turn, for whoever follows stands at the line's end.

    Who follows may not be due: it came in by the clock of a node that is ahead.
    """
    plan = Plan()
    behind = {name: deque(members) for name, members in followers.items()}
    round_robin = deque(line)
    for share in shares:
        while round_robin and share.room:
            one, place = round_robin.popleft()
            claimed = plan.take(one, share, now)
            if place != LinePosition.HEAD or one.group_id is None:
                continue
            (plan.handed_on if claimed else plan.left).add(one.group_id)
            if (members := behind.get(one.group_id)) and members[0].available_at <= now:
                round_robin.append((members.popleft(), LinePosition.HEAD))
    return plan


def plan_endings(share: Share, line: Sequence[Placed], now: int) -> Plan:
    """Give out nothing: who is not offered any more leaves."""
    plan = Plan()
    for one, place in line:
        if plan.end(one, share, now) and place == LinePosition.HEAD:
            plan.left.add(one.group_id or "")
    return plan


def _with_room(shares: Sequence[Share]) -> Iterator[Share]:
    return (share for share in shares if share.room)

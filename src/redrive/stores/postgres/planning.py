"""Which of the deliveries at the front of a line an order gets: a decision without a database."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from redrive.engine.ports import ClaimOrder
from redrive.model.delivery import Delivery, Ending, Place, offer


@dataclass(slots=True)
class Candidate:
    """A delivery that may be claimed, and where it stands."""

    delivery: Delivery
    place: int


Followers = dict[str, list[Candidate]]  # who waits behind the turn, by group, the oldest first


@dataclass(slots=True)
class Plan:
    """What to do with the front of a line.

    Attributes:
        claimed: In the queue's order.
        dead: Had all their claims.
        expired: Out of their retention period.
        left: Groups whose turn left the queue with the one who had it.
        handed_on: Groups of a fair queue whose turn was used, so that it is the next one's.
    """

    claimed: list[Delivery] = field(default_factory=list)
    dead: list[Delivery] = field(default_factory=list)
    expired: list[Delivery] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    handed_on: set[str] = field(default_factory=set)

    @property
    def removed(self) -> int:
        """How many leave the queue."""
        return len(self.dead) + len(self.expired)

    def take(self, delivery: Delivery, order: ClaimOrder) -> bool:
        """Put one due delivery where its retention and its count of attempts say; whether it is claimed."""
        ending = offer(delivery, order.limits, order.now)
        if ending is Ending.RETRY:
            self.claimed.append(delivery)
        elif ending is Ending.EXPIRED:
            self.expired.append(delivery)
        else:
            self.dead.append(delivery)
        return ending is Ending.RETRY


def plan(order: ClaimOrder, line: Sequence[Candidate], followers: Followers, room: int) -> Plan:
    """Fill an order of which `room` is left from the front of a queue's line."""
    return (
        _plan_ordered(order, line, followers, room)
        if order.ordered
        else _plan_fair(order, line, followers, room)
    )


def _plan_ordered(order: ClaimOrder, line: Sequence[Candidate], followers: Followers, room: int) -> Plan:
    """As many of a group as possible: from its oldest on, up to the first that is not due."""
    plan = Plan()
    for head in line:
        for one in (head, *followers.get(head.delivery.group_id or "", ())):
            if len(plan.claimed) == room or one.delivery.available_at > order.now:
                break
            if not plan.take(one.delivery, order) and one is head and head.place == Place.TURN:
                plan.left.add(head.delivery.group_id or "")
    return plan


def _plan_fair(order: ClaimOrder, line: Sequence[Candidate], followers: Followers, room: int) -> Plan:
    """One of each group in turn: whoever follows a turn stands at the end of the line."""
    plan = Plan()
    waiting = {name: deque(members) for name, members in followers.items()}
    round_robin = deque(line)
    while round_robin and len(plan.claimed) < room:
        one = round_robin.popleft()
        claimed = plan.take(one.delivery, order)
        name = one.delivery.group_id
        if one.place != Place.TURN or name is None:
            continue
        (plan.handed_on if claimed else plan.left).add(name)
        if members := waiting.get(name):
            round_robin.append(Candidate(members.popleft().delivery, Place.TURN))
    return plan

"""The ledger: what clients were told, and whether it was so, and stayed so."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redrive.engine.ports import Enqueued, Settled
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Message
from tests.simulation.books import Books
from tests.simulation.rules import Rule, require
from tests.simulation.subscribers import SubscriptionPlan

# How a delivery leaves for good, by somebody's word.
ENDED = frozenset({"deleted", "delivered", "dropped"})


class Subscribed(NamedTuple):
    """A subscription, the number of the queue that its messages enter, and since when (ms) every node knows of it."""

    plan: SubscriptionPlan
    enters: int
    since: int


@dataclass
class Ledger:
    """Calls that were acknowledged to clients.

    Attributes:
        skew_ms: How far the clocks of two nodes may be apart.
        accepted: Bodies whose sender heard that they are kept.
        earliest: When a body may be received at the earliest, in true time (ms).
        asked: Places of deliveries that some consumer asked to delete, whatever it heard.
        deleted: When a client heard that a message is deleted, by the message's id and place.
        places: The last place each sender heard of, for each group.
        subscribed: The subscriptions that somebody heard are made.
        labels_asked: How often somebody changed a queue's tags; `labels_heard`: and heard that it was done.
    """

    books: Books
    skew_ms: int
    accepted: set[str] = field(default_factory=set)
    earliest: dict[str, int] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    deleted: dict[tuple[bytes, int], int] = field(default_factory=dict)
    places: dict[tuple[str, str | None], int] = field(default_factory=dict)
    subscribed: list[Subscribed] = field(default_factory=list)
    labels_asked: int = 0
    labels_heard: int = 0
    _moment: int = 0

    def moment(self) -> int:
        """A number for now, greater than all earlier ones."""
        self._moment += 1
        return self._moment

    def sending(self, queue: Queue, messages: Sequence[Message], now: int) -> None:
        """A sender begins to try."""
        for message in messages:
            delay_ms = queue.delay_ms if message.delay_ms is None else message.delay_ms
            self.earliest[message.body] = now + delay_ms - self.skew_ms

    def publishing(self, body: str, now: int) -> None:
        """A publisher begins to try."""
        self.earliest[body] = now - self.skew_ms

    def sent(self, sender: str, messages: Sequence[Message], answers: Sequence[Enqueued]) -> None:
        """A sender heard that its messages are kept."""
        for message, answer in zip(messages, answers, strict=True):
            require(self.books.bodies.get(answer.seq) == message.body, Rule.HONEST, message.body, answer)
            last = self.places.get((sender, message.group_id), 0)
            require(answer.seq > last, Rule.ORDER, message.body, "was sent later and stands before", last)
            self.places[sender, message.group_id] = answer.seq
            self.accepted.add(message.body)

    def published(self, topic: str, body: str, began: int) -> None:
        """A publisher that began to try then heard that its message is kept, for everybody who wants it."""
        wanting = [
            one
            for one in self.subscribed
            if one.since <= began and one.plan.topic == topic and one.plan.wants(body)
        ]
        for one in wanting:
            entered = (one.enters, body) in self.books.entered
            require(entered, Rule.WANTED, body, "is not in queue", one.enters)
        if wanting:
            self.accepted.add(body)

    def received(self, asked: int, deliveries: Sequence[Delivery], now: int) -> None:
        """A consumer that asked at that moment has these now."""
        for one in deliveries:
            require(
                now >= self.earliest[one.body], Rule.EARLY, one, "at", now, "not", self.earliest[one.body]
            )
            require(one.seq in self.books.claims.get(one.token or 0, ()), Rule.HONEST, one)
            deleted = self.deleted.get((one.message_id, one.seq), asked)
            require(deleted >= asked, Rule.BACK, one)

    def asked_to_delete(self, deliveries: Sequence[Delivery]) -> None:
        """A consumer that holds these, or did, says that they are done."""
        self.asked.update(one.seq for one in deliveries)

    def answered(self, deliveries: Sequence[Delivery], answers: Sequence[Settled]) -> None:
        """And heard what came of it."""
        for one, answer in zip(deliveries, answers, strict=True):
            if answer.done:
                require(self.books.left.get(one.seq) == "deleted", Rule.HONEST, one.body, answer)
                self.deleted[one.message_id, one.seq] = self.moment()

    def close(self) -> None:
        """Everything has come to rest, and every queue is empty: nothing may be unaccounted for."""
        deleted = {seq for seq, how in self.books.left.items() if how == "deleted"}
        require(deleted <= self.asked, Rule.LOST, "deleted, though nobody asked:", deleted - self.asked)
        ended = {self.books.bodies[seq] for seq, how in self.books.left.items() if how in ENDED}
        lost = self.accepted - ended - self.books.excused
        require(not lost, Rule.LOST, *sorted(lost))

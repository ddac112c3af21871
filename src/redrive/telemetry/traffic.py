"""Traffic of scopes, arrivals of dead letters, and losses: what the pages of a whole server read, minute by minute.

A page that shows the rates of a whole server reads four series of each place instead of five of each queue, of which
there may be a hundred thousand. All nodes add to the same series.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from redrive.model.metric import MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import QueueAccumulators, TopicAccumulators

SCOPE: Final = ":place"  # a namespace


class Traffic(NamedTuple):
    """Numbers that a scope, or something in it, counted."""

    sent: float = 0.0  # Messages that came into queues
    received: float = 0.0  # Messages that receivers got, each time that they did
    # Deliveries that endpoints took; queues that take a publication straight away are in `sent` alone.
    pushed: float = 0.0
    failed: float = 0.0  # Attempts at an endpoint that did not succeed


#: What is kept of each scope.
COUNTED: Final = Traffic._fields


class TrafficByPlace:
    """Adds up by scope what queues and topics counted, until it is taken."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, int], Traffic] = {}

    def add(self, tallies: QueueAccumulators | TopicAccumulators, minute: int) -> None:
        """Add what a queue or a topic counted in the minute that begins then (ms)."""
        traffic = _of_queue(tallies) if isinstance(tallies, QueueAccumulators) else _of_topic(tallies)
        if not any(traffic):
            return
        name = tallies.name
        # A private topic's region has more behind a colon.
        account_minute = (name.account, name.region.partition(":")[0], minute)
        known = self._counted.get(account_minute)
        self._counted[account_minute] = (
            traffic if known is None else Traffic(*map(sum, zip(known, traffic, strict=True)))
        )

    def take(self) -> list[MetricPoint]:
        """The sums since the last time; of what did not happen there is no point."""
        points = [
            MetricPoint(
                scope_series(ResourceName(account, region, ""), counter), minute, "", Statistics.of(value)
            )
            for (account, region, minute), traffic in self._counted.items()
            for counter, value in zip(COUNTED, traffic, strict=True)
            if value
        ]
        self._counted.clear()
        return points


def scope_series(owner: ResourceName, counter: str) -> Series:
    """A counter of a scope; it is not an account's, and so is not listed among the metrics of one."""
    return Series("", "", SCOPE, counter, (("account", owner.account), ("region", owner.region)))


def _of_queue(queue: QueueAccumulators) -> Traffic:
    return Traffic(sent=queue.messages_sent.total, received=queue.messages_received.total)


def _of_topic(topic: TopicAccumulators) -> Traffic:
    totals, failed = topic.total("deliveries_made"), topic.total("attempts_failed")
    return Traffic(pushed=totals - topic.taken_at_once, failed=failed)


# Arrivals of dead letters: how many each dead-letter queue took, and all of a scope together, minute by minute.
#
# A dead letter's row does not say when it came, and is gone once somebody sent it back. What came by hand, by a
# redrive, or was set aside is not an arrival. All nodes add to the same series; of a minute in which nothing came there
# is not a point.

_TAKEN: Final = "dead_letters_taken"


class Arrivals:
    """Counts arrivals by dead-letter queue, until they are taken."""

    def __init__(self) -> None:
        self._taken: dict[ResourceName, int] = {}

    def __bool__(self) -> bool:
        return bool(self._taken)

    def add(self, dead_letter_queue: ResourceName, letters: int) -> None:
        """Count letters that a dead-letter queue took."""
        self._taken[dead_letter_queue] = self._taken.get(dead_letter_queue, 0) + letters

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """Each queue's since the last time, and its place's."""
        taken, self._taken = self._taken, {}
        for name, letters in taken.items():
            yield arrivals_at(name), Statistics.of(letters)
            yield arrivals_in(name), Statistics.of(letters)


def arrivals_at(dead_letter_queue: ResourceName) -> Series:
    """The arrivals at a dead-letter queue; no account's either, since SQS has no such metric."""
    account, region, name = dead_letter_queue
    return Series("", "", SCOPE, _TAKEN, (("account", account), ("queue", name), ("region", region)))


def arrivals_in(owner: ResourceName) -> Series:
    """The arrivals in an account and region, whatever the name in it."""
    return scope_series(owner, _TAKEN)


# Losses: deliveries that ended undelivered and that no dead-letter queue has, minute by minute, with their causes.
#
# All nodes add to the same series, one for each subscription or queue and cause, so that a page names what is lost in
# an account and region whichever node lost it. Where nothing is lost there is no series.

LOST: Final = ":lost"
_COUNTED: Final = "deliveries_lost"


class Loss(NamedTuple):
    """A cause for which something loses what it cannot deliver."""

    of: ResourceName  # The topic or the queue; without a name: those of one kind that nobody sees
    subscription: str  # Of the topic, its id, or the kind of topics; empty: the queue itself loses
    reason: str  # The cause with its status: `client_error 404`

    @property
    def series(self) -> Series:
        """The series that counts it; no account's, as none of Amazon's metrics counts the same."""
        kind = "topic" if self.subscription else "queue"
        dimensions = {
            "account": self.of.account,
            "region": self.of.region,
            kind: self.of.name,
            "reason": self.reason,
            **({"subscription": self.subscription} if self.subscription else {}),
        }
        return Series("", "", LOST, _COUNTED, tuple(sorted(dimensions.items())))

    @classmethod
    def of_series(cls, series: Series) -> "Loss":
        """The loss that a series counts."""
        dimensions = dict(series.dimensions)
        name = dimensions["topic"] if "topic" in dimensions else dimensions["queue"]
        of = ResourceName(dimensions["account"], dimensions["region"], name)
        return cls(of, dimensions.get("subscription", ""), dimensions["reason"])


class Losses:
    """Counts losses until they are taken."""

    def __init__(self) -> None:
        self._lost: dict[Loss, int] = {}

    def __bool__(self) -> bool:
        return bool(self._lost)

    def add(self, loss: Loss, messages: int) -> None:
        """Count messages that are lost."""
        if loss.of.private:  # one topic for each destination, of which there may be a million
            region, _, kind = loss.of.region.partition(":")
            loss = loss._replace(of=ResourceName(loss.of.account, region, ""), subscription=kind)
        self._lost[loss] = self._lost.get(loss, 0) + messages

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The losses since the last time, each cause as points of its series."""
        lost, self._lost = self._lost, {}
        for loss, messages in lost.items():
            yield loss.series, Statistics.of(messages)

"""Tallies: counting in memory, at a fraction of a microsecond, until the counts are taken.

Beside the metrics of queues and topics: the answers of receivers by the minute; and what the pages of a whole server
read, the traffic of scopes, arrivals of dead letters, and losses.

All nodes add to the same series of a subscription: one of each result, and of each result one for each span of time
that an answer took, so that its distribution is known. Where nothing is pushed there is none. Queues that take a
publication straight away answer nobody, and are left out.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from redrive.model.metric import SPANS_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.model.queue import Queue

QUEUE = ":queue"  # namespaces; a colon leads them, and no sender's namespace begins with one
TOPIC = ":topic"

Labels = tuple[tuple[str, str], ...]
WEB: Labels = (("endpoint", "web"),)
OTHER: Labels = (("endpoint", "other"),)


class MetricAccumulator:
    """Statistics that grow."""

    __slots__ = ("greatest", "least", "samples", "total")

    def __init__(self) -> None:
        self.samples = 0.0
        self.total = 0.0
        self.least = math.inf
        self.greatest = -math.inf

    def add(self, value: float, samples: float = 1) -> None:
        """Add samples that all have one value."""
        if value < self.least:  # noqa: PLR1730 - a call of min takes three times as long, and this is done at each message
            self.least = value
        if value > self.greatest:  # noqa: PLR1730 - as above
            self.greatest = value
        self.samples += samples
        self.total += value * samples

    def add_statistics(self, other: Statistics) -> None:
        """Add what was measured elsewhere."""
        self.least = min(self.least, other.least)
        self.greatest = max(self.greatest, other.greatest)
        self.samples += other.samples
        self.total += other.total

    @property
    def statistics(self) -> Statistics:
        """The statistics of the samples added so far, of which there is at least one."""
        return Statistics(self.samples, self.total, self.least, self.greatest)


QUEUE_COUNTERS = ("messages_sent", "bytes_sent", "messages_received", "empty_receives", "messages_deleted")


class QueueAccumulators:
    """The counters of one queue, as attributes: looking them up in a dictionary would take as long as counting."""

    __slots__ = ("name", *QUEUE_COUNTERS)

    def __init__(self, name: ResourceName) -> None:
        self.name = name
        self.messages_sent = MetricAccumulator()
        self.bytes_sent = MetricAccumulator()
        self.messages_received = MetricAccumulator()
        self.empty_receives = MetricAccumulator()
        self.messages_deleted = MetricAccumulator()

    def __iter__(self) -> Iterator[tuple[Series, Statistics]]:
        for counter in QUEUE_COUNTERS:
            tally: MetricAccumulator = getattr(self, counter)
            if tally.samples:
                yield queue_series(self.name, counter), tally.statistics


class TakenTogether(NamedTuple):
    """Publications that the same queues took: counted once, and shared out among the queues when they are collected."""

    queues: Sequence[Queue]  # The identical sequence of all these publications
    accumulators: Sequence[QueueAccumulators]  # Theirs
    bodies: MetricAccumulator  # Bytes of each publication's text


TOPIC_COUNTERS = (
    "messages_published",
    "bytes_published",
    "deliveries_made",
    "attempts_failed",
    "deliveries_failed",
    "deliveries_filtered",
    "dead_letters_kept",
    "dead_letters_lost",
    "messages_archived",
    "bytes_archived",
    "replays_delivered",
    "replays_failed",
)


class TopicAccumulators:
    """The counters of one topic, by name and labels; what each publication moves, as attributes."""

    __slots__ = (
        "_tallies",
        "bytes_published",
        "messages_published",
        "name",
        "taken",
        "taken_at_once",
        "taken_by_queues",
    )

    def __init__(self, name: ResourceName) -> None:
        self.name = name
        self._tallies: dict[tuple[str, Labels], MetricAccumulator] = {}
        self.messages_published = self.of("messages_published")
        self.bytes_published = self.of("bytes_published")
        self.taken_by_queues = self.of("deliveries_made", OTHER)
        #: Deliveries that queues took with the publication, without a push.
        self.taken_at_once = 0.0
        self.taken: TakenTogether | None = None

    def of(self, counter: str, labels: Labels = ()) -> MetricAccumulator:
        """One counter, to be added to."""
        tally = self._tallies.get((counter, labels))
        if tally is None:
            tally = self._tallies[counter, labels] = MetricAccumulator()
        return tally

    def total(self, counter: str) -> float:
        """The sum of a counter whatever its labels."""
        return sum(tally.total for (name, _), tally in self._tallies.items() if name == counter)

    def __iter__(self) -> Iterator[tuple[Series, Statistics]]:
        for (counter, labels), tally in self._tallies.items():
            if tally.samples:
                yield topic_series(self.name, counter, labels), tally.statistics


def queue_series(queue: ResourceName, name: str) -> Series:
    """A metric of a queue."""
    return Series(queue.account, queue.region, QUEUE, name, (("queue", queue.name),))


def topic_series(topic: ResourceName, name: str, labels: Labels = ()) -> Series:
    """A metric of a topic."""
    dimensions = tuple(sorted((*labels, ("topic", topic.name))))
    return Series(topic.account, topic.region, TOPIC, name, dimensions)


NAMESPACE: Final = ":answers"
_NO_END_MS: Final = round(5 * 1.6**17)


class Answer(NamedTuple):
    """A way in which the receiver of a subscription answers."""

    topic: ResourceName
    subscription: str  # Its id
    delivered: bool  # Whether the attempt succeeded

    @property
    def series(self) -> Series:
        """The series with a sample for each attempt, of the milliseconds that it took; no account's, as losses'."""
        account, region, name = self.topic
        dimensions = (
            ("account", account),
            ("region", region),
            ("subscription", self.subscription),
            ("topic", name),
        )
        return Series(
            "", "", NAMESPACE, "attempts_delivered" if self.delivered else "attempts_failed", dimensions
        )

    def series_of_span(self, span: int) -> Series:
        """The series of those answers that took so long, with a sample for each; see `SPANS_MS`."""
        all_answers = self.series
        dimensions = tuple(sorted((*all_answers.dimensions, ("span", str(span)))))
        return all_answers._replace(name=f"{all_answers.name}_by_span", dimensions=dimensions)


class _Count:
    """The answers of one kind, and how many took how long."""

    __slots__ = ("spans", "statistics")

    def __init__(self) -> None:
        self.statistics = MetricAccumulator()
        self.spans = [0] * (len(SPANS_MS) + 1)


class Answers:
    """Counts answers until they are taken."""

    def __init__(self) -> None:
        self._counts: dict[Answer, _Count] = {}

    def add(self, answer: Answer, took_ms: int) -> None:
        """Count an answer, unless its topic stands for a single destination, of which there may be a million."""
        if answer.topic.private:
            return
        count = self._counts.get(answer)
        if count is None:
            count = self._counts[answer] = _Count()
        count.statistics.add(took_ms)
        count.spans[bisect_left(SPANS_MS, took_ms)] += 1

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The answers since the last time, each kind as points of its series."""
        counts, self._counts = self._counts, {}
        for answer, count in counts.items():
            yield answer.series, count.statistics.statistics
            for span, number in enumerate(count.spans):
                if number:
                    value = SPANS_MS[span] if span < len(SPANS_MS) else _NO_END_MS
                    yield answer.series_of_span(span), Statistics.of(value, number)


# Traffic of scopes, minute by minute.
#
# A page that shows the rates of a whole server reads four series of each place instead of five of each queue, of which
# there may be a hundred thousand. All nodes add to the same series.

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
        self._sums: dict[tuple[str, str, int], Traffic] = {}

    def add(self, tallies: QueueAccumulators | TopicAccumulators, minute: int) -> None:
        """Add what a queue or a topic counted in the minute that begins then (ms)."""
        traffic = _of_queue(tallies) if isinstance(tallies, QueueAccumulators) else _of_topic(tallies)
        if not any(traffic):
            return
        name = tallies.name
        # A private topic's region has more behind a colon.
        account_minute = (name.account, name.region.partition(":")[0], minute)
        before = self._sums.get(account_minute)
        self._sums[account_minute] = (
            traffic if before is None else Traffic(*map(sum, zip(before, traffic, strict=True)))
        )

    def take(self) -> list[MetricPoint]:
        """The sums since the last time; of what did not happen there is no point."""
        points = [
            MetricPoint(
                scope_series(ResourceName(account, region), counter), minute, "", Statistics.of(value)
            )
            for (account, region, minute), traffic in self._sums.items()
            for counter, value in zip(COUNTED, traffic, strict=True)
            if value
        ]
        self._sums.clear()
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
        self._letters: dict[ResourceName, int] = {}

    def __bool__(self) -> bool:
        return bool(self._letters)

    def add(self, dead_letter_queue: ResourceName, letters: int) -> None:
        """Count letters that a dead-letter queue took."""
        self._letters[dead_letter_queue] = self._letters.get(dead_letter_queue, 0) + letters

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The arrivals since the last time: of each queue, and of its account and region."""
        letters_by_queue, self._letters = self._letters, {}
        for name, letters in letters_by_queue.items():
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

    of: ResourceName  # The topic or the queue; without a name: the private topics of one kind
    # The id of the topic's subscription; of private topics their kind, such as `lambda`; empty: the queue itself loses.
    subscription: str
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
        self._messages: dict[Loss, int] = {}

    def __bool__(self) -> bool:
        return bool(self._messages)

    def add(self, loss: Loss, messages: int) -> None:
        """Count messages that are lost."""
        if loss.of.private:  # one topic for each destination, of which there may be a million
            region, _, kind = loss.of.region.partition(":")
            loss = loss._replace(of=ResourceName(loss.of.account, region), subscription=kind)
        self._messages[loss] = self._messages.get(loss, 0) + messages

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The losses since the last time, each cause as points of its series."""
        messages_by_loss, self._messages = self._messages, {}
        for loss, messages in messages_by_loss.items():
            yield loss.series, Statistics.of(messages)

"""Metrics: the listener that counts, minute by minute, until what it counted is collected.

A queue's metrics (namespace `:queue`, dimension `queue`):

    messages_sent, bytes_sent          a sample for each call, of its messages; for each message, of its size
    messages_received, empty_receives  a sample for each receive that brought some; for each that brought none
    messages_deleted                   a sample for each call, of its messages
    messages_available, messages_claimed, messages_delayed, oldest_age_seconds     see `gauges`

What a dead-letter queue took, what a whole place took, and what nothing took: see `traffic`.
How receivers answered: see `answers`.

A topic's (namespace `:topic`, dimension `topic` and the labels named):

    messages_published, bytes_published    a sample for each call; for each message
    deliveries_made                        by `endpoint`: accepted by a `web` endpoint, or by any `other` kind
    attempts_failed                        by `endpoint`: attempts that did not succeed, the last one included
    deliveries_failed                      by `endpoint`: given up
    deliveries_filtered                    by `reason`, a Verdict
    dead_letters_kept, dead_letters_lost   handed to a dead-letter queue, or not taken by it
    messages_archived, bytes_archived      a sample for each call; for each message
    replays_delivered, replays_failed      out of the archive: among the deliveries made, and those that failed
    archive_messages, archive_bytes        see `backlogs`
    messages_with_findings, messages_without_findings    counted where data protection is, by SNS
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from typing_extensions import override

from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered, Listener, Undelivered
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.filtering import FilterVerdict
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, SeriesGroup
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from redrive.telemetry.accumulators import (
    OTHER,
    WEB,
    Answer,
    Answers,
    Arrivals,
    Labels,
    Loss,
    Losses,
    MetricAccumulator,
    QueueAccumulators,
    TakenTogether,
    TopicAccumulators,
    TrafficByPlace,
)

logger = logging.getLogger(__name__)

# Each topic's counters since this node started: counters that only grow, for Prometheus.


class Totals:
    """The sums of tallies that were collected, by topic."""

    def __init__(self) -> None:
        self._topics: dict[ResourceName, Counter[Series]] = {}

    def add(self, tallies: TopicAccumulators) -> None:
        """Add a minute's worth."""
        counters = self._topics.setdefault(tallies.name, Counter())
        for series, statistics in tallies:
            counters[series] += round(statistics.total)

    def forget(self, name: ResourceName) -> None:
        """The topic is gone."""
        self._topics.pop(name, None)

    def clear(self) -> None:
        """Begin at zero again."""
        self._topics.clear()

    def __iter__(self) -> Iterator[tuple[ResourceName, dict[Series, int]]]:
        for name, counters in list(self._topics.items()):
            yield name, dict(counters)


# Points that a store which is away has not taken yet; 50 MB of them. What is beyond that is lost, and said so.
WAITING_MAX = 100_000


class Metrics(Listener):
    """Counts into tallies, whose points the flusher takes to the store."""

    def __init__(self, on_news: Callable[[], None]) -> None:
        """Count from zero; `on_news` is called when there is something to collect again."""
        self._on_news = on_news
        self._queues: dict[int, QueueAccumulators] = {}
        self._topics: dict[int, TopicAccumulators] = {}
        self._minute = 0
        self._until = 0
        self._accumulators: dict[tuple[Series, int, str], MetricAccumulator] = {}
        self._groups: dict[tuple[SeriesGroup, int], MetricAccumulator] = {}
        #: Queues somebody did something to, or may be about to, and when (ms); see `gauges`.
        self.activity: dict[ResourceName, int] = {}
        #: Topics whose archive took something or was replayed from, and when (ms); see `backlogs`.
        self.archives: dict[ResourceName, int] = {}
        self._totals = Totals()
        self._deleted_topics: set[ResourceName] = set()
        self._traffic = TrafficByPlace()
        self._arrivals = Arrivals()
        self._losses = Losses()
        self._answers = Answers()

    # ---- the facts ---------------------------------------------------------------------------------------

    @override
    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        tallies = self._topic(topic, now)
        if messages:
            tallies.messages_published.add(messages)
            tallies.bytes_published.add(body_bytes / messages, messages)

    @override
    def archived(self, topic: Topic, messages: int, body_bytes: int, now: int) -> None:
        if messages:
            tallies = self._archive(topic, now)
            tallies.of("messages_archived").add(messages)
            tallies.of("bytes_archived").add(body_bytes / messages, messages)

    @override
    def filtered(self, topic: Topic, verdict: FilterVerdict, subscriptions: int, now: int) -> None:
        self._topic(topic, now).of("deliveries_filtered", (("reason", verdict.value),)).add(subscriptions)

    @override
    def attempted(self, fact: Attempted) -> None:
        """See `Listener.attempted`. Asking an endpoint whether it agrees to get messages is not a delivery."""
        if not fact.subscription.confirmed:
            return
        tallies, labels = self._topic(fact.topic, fact.at), _labels(fact.subscription)
        answer = Answer(fact.topic.name, fact.subscription.id, fact.attempt.delivered)
        self._answers.add(answer, fact.attempt.duration_ms)
        if fact.attempt.delivered:
            tallies.of("deliveries_made", labels).add(1)
            if fact.replayed:
                self._archive(fact.topic, fact.at).of("replays_delivered").add(1)
            return
        tallies.of("attempts_failed", labels).add(1)
        if fact.transition.outcome is not Outcome.RETRY:
            self._count_given_up(fact)

    @override
    def expired(self, fact: Attempted) -> None:
        self._count_given_up(fact)

    def _count_given_up(self, fact: Attempted) -> None:
        self._topic(fact.topic, fact.at).of("deliveries_failed", _labels(fact.subscription)).add(1)
        if fact.replayed:
            self._archive(fact.topic, fact.at).of("replays_failed").add(1)

    @override
    def accepted(self, fact: Accepted) -> None:
        """Count a publication's deliveries to queues, for all of them together while they stay the same."""
        tallies = self._topic(fact.topic, fact.at)
        taken = tallies.taken
        if taken is None or taken.queues is not fact.queues:
            self._share_out([tallies])
            queues = self._queues  # this minute's: the topic's has been found already
            accumulators = [
                queues.get(queue.id) or self._begin_queue(queue, fact.at) for queue in fact.queues
            ]
            taken = tallies.taken = TakenTogether(fact.queues, accumulators, MetricAccumulator())
        taken.bodies.add(fact.body_bytes)
        if fact.replayed:
            self._archive(fact.topic, fact.at).of("replays_delivered").add(1, len(fact.queues))

    @override
    def dead_lettered(self, fact: DeadLettered) -> None:
        """Count a dead letter that its queue took, or that was lost as there is none."""
        counter = "dead_letters_kept" if fact.attempt.delivered else "dead_letters_lost"
        self._topic(fact.topic, fact.at).of(counter).add(1)
        if fact.subscription.dead_letter is not None:
            self.activity[fact.subscription.dead_letter] = fact.at
            if fact.attempt.delivered:
                self._count_arrivals(fact.subscription.dead_letter, 1, fact.at)

    @override
    def buried(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        if queue.dead_letter is not None:
            self._count_arrivals(queue.dead_letter.queue, messages, now)

    @override
    def undelivered(self, fact: Undelivered) -> None:
        """Count a loss: what became a dead letter, or was a confirmation, is none."""
        last = fact.last
        if fact.outcome is Outcome.DEAD_LETTERED or fact.confirmation:
            return
        reason = f"{last.attempt.reason.value} {last.attempt.status or ''}".strip()
        self._count_loss(Loss(last.topic.name, last.subscription.id, reason), 1, last.at)

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        if messages:
            self._count_loss(Loss(queue.name, "", why.value), messages, now)

    @override
    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:
        """Count messages that were sent to a queue, by the minute."""
        accumulators = self._queues.get(queue.id)
        if accumulators is None or now >= self._until:
            accumulators = self._begin_queue(queue, now)
        if messages:
            accumulators.messages_sent.add(messages)
            accumulators.bytes_sent.add(body_bytes / messages, messages)  # of a batch only the sum is known

    @override
    def received(self, queue: Queue, messages: int, now: int) -> None:
        """Count a receive from a queue, by the minute; one without messages is an empty one."""
        accumulators = self._queues.get(queue.id)
        if accumulators is None or now >= self._until:
            accumulators = self._begin_queue(queue, now)
        if messages:
            accumulators.messages_received.add(messages)
        else:
            accumulators.empty_receives.add(1)

    @override
    def deleted(self, queue: Queue, messages: int, now: int) -> None:
        accumulators = self._queues.get(queue.id)
        if accumulators is None or now >= self._until:
            accumulators = self._begin_queue(queue, now)
        accumulators.messages_deleted.add(messages)

    # ---- tallies -----------------------------------------------------------------------------------------

    def _begin_queue(self, queue: Queue, now: int) -> QueueAccumulators:
        """New accumulators for a queue in this minute; it counts as active, and so does its dead-letter queue."""
        self._turn(now)
        self.activity[queue.name] = now
        if queue.dead_letter is not None:
            self.activity[queue.dead_letter.queue] = now
        accumulators = self._queues[queue.id] = QueueAccumulators(queue.name)
        self._on_news()
        return accumulators

    def _topic(self, topic: Topic, now: int) -> TopicAccumulators:
        """The accumulators of a topic in this minute."""
        topic_accumulators = self._topics.get(topic.id)
        if topic_accumulators is None or now >= self._until:
            self._turn(now)
            topic_accumulators = self._topics[topic.id] = TopicAccumulators(topic.name)
            self._on_news()
        return topic_accumulators

    def _archive(self, topic: Topic, now: int) -> TopicAccumulators:
        self.archives[topic.name] = now
        return self._topic(topic, now)

    def _count_arrivals(self, dead_letter_queue: ResourceName, letters: int, now: int) -> None:
        self._turn(now)
        if not self._arrivals:
            self._on_news()
        self._arrivals.add(dead_letter_queue, letters)

    def _count_loss(self, loss: Loss, messages: int, now: int) -> None:
        self._turn(now)
        if not self._losses:
            self._on_news()
        self._losses.add(loss, messages)

    def _turn(self, now: int) -> None:
        """Begin the minute that `now` is in, if it has not begun."""
        if now >= self._until:
            self._collect()
            self._minute = now - now % MINUTE_MS
            self._until = self._minute + MINUTE_MS

    def _share_out(self, topics: Iterable[TopicAccumulators]) -> None:
        """Count what queues took together for each of them."""
        for tallies in topics:
            taken, tallies.taken = tallies.taken, None
            if taken is None:
                continue
            bodies = taken.bodies.statistics
            deliveries = bodies.samples * len(taken.queues)
            tallies.taken_by_queues.add(1, deliveries)
            tallies.taken_at_once += deliveries
            for accumulators in taken.accumulators:
                accumulators.messages_sent.add(1, bodies.samples)
                accumulators.bytes_sent.add_statistics(bodies)

    def _collect(self) -> None:
        """Move what was counted in this minute into the accumulators of its series."""
        # A topic that stands for one destination is nobody's, and there may be a million: SNS counts them together.
        self._share_out(self._topics.values())
        topics = [tallies for tallies in self._topics.values() if not tallies.name.private]
        all_tallies: list[QueueAccumulators | TopicAccumulators] = [*self._queues.values(), *topics]
        for tallies in all_tallies:
            for series, statistics in tallies:
                self._accumulator(series, self._minute).add_statistics(statistics)
        for of_topic in topics:
            if of_topic.name not in self._deleted_topics:
                self._totals.add(of_topic)
        self._deleted_topics.clear()
        for tallies in self._queues.values():
            self._traffic.add(tallies, self._minute)
        for of_topic in self._topics.values():
            self._traffic.add(of_topic, self._minute)
        for series, statistics in (*self._arrivals.take(), *self._losses.take(), *self._answers.take()):
            self._accumulator(series, self._minute).add_statistics(statistics)
        for (group, minute), accumulator in self._groups.items():
            for series in group.series:
                self._accumulator(series, minute).add_statistics(accumulator.statistics)
        self._queues.clear()
        self._topics.clear()
        self._groups.clear()

    def _accumulator(self, series: Series, minute: int, unit: str = "") -> MetricAccumulator:
        """The accumulator of a series in a minute."""
        key = series, minute, unit
        accumulator = self._accumulators.get(key)
        if accumulator is None:
            accumulator = self._accumulators[key] = MetricAccumulator()
        return accumulator

    # ---- what was counted --------------------------------------------------------------------------------

    def take(self) -> list[MetricPoint]:
        """All that was counted since the last time."""
        self._collect()
        points = [
            MetricPoint(series, at, unit, tally.statistics)
            for (series, at, unit), tally in self._accumulators.items()
        ]
        self._accumulators.clear()
        return points

    def take_traffic(self) -> list[MetricPoint]:
        """The traffic of places that was counted since the last time."""
        self._collect()
        return self._traffic.take()

    @property
    def totals(self) -> Totals:
        """Each topic's counters until now."""
        self._collect()
        return self._totals

    def topic_changed(self, name: ResourceName, *, is_deleted: bool) -> None:
        """Note that this node made, changed or deleted a topic: the totals of a deleted one are dropped."""
        if is_deleted:
            self._totals.forget(name)
            self._deleted_topics.add(name)  # what was counted in this minute is not in the totals yet
        else:
            self._deleted_topics.discard(name)

    def count(self, points: Iterable[MetricPoint]) -> None:
        """Add points that were counted elsewhere."""
        for point in points:
            self._accumulator(point.series, point.at, point.unit).add_statistics(point.statistics)

    def add(self, group: SeriesGroup, value: float, at: int) -> None:
        """Add a sample of that moment (ms), counted elsewhere, to each series of a group."""
        minute = group, at - at % MINUTE_MS
        accumulator = self._groups.get(minute)
        if accumulator is None:
            accumulator = self._groups[minute] = MetricAccumulator()
        accumulator.add(value)

    def put_back(self, points: Sequence[MetricPoint]) -> None:
        """Keep points that could not be stored, for the next time."""
        room = WAITING_MAX - len(self._accumulators)
        if len(points) > room:
            logger.warning("telemetry.points_lost number=%d: the store refused them", len(points) - room)
        self.count(points[-room:] if room > 0 else ())


def _labels(subscription: Subscription) -> Labels:
    return WEB if subscription.protocol in ("http", "https") else OTHER

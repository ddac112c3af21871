"""Metrics of events: how old they were when they were tried, and what was given up."""

from typing_extensions import override

from redrive.aws.lambda_.documents.backlogs import INVOCATIONS, BacklogTarget
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.engine.ports.facts import Attempted, Listener, Undelivered
from redrive.model.delivery import Outcome
from redrive.model.names import ResourceName


class EventMetrics(Listener):
    """Counts what becomes of events, and of what their ends lead to."""

    def __init__(self, metrics: InvocationMetrics) -> None:
        self._metrics = metrics

    @override
    def attempted(self, fact: Attempted) -> None:
        name = _function(fact)
        if fact.subscription.id == INVOCATIONS:
            age_ms = fact.at - fact.attempt.duration_ms - fact.delivery.sent_at
            self._metrics.count(name, "AsyncEventAge", max(0, age_ms), fact.at)
        elif not fact.attempt.delivered and fact.transition.outcome is not Outcome.RETRY:
            letter = fact.subscription.id == BacklogTarget.DEAD_LETTER
            self._metrics.count(
                name, "DeadLetterErrors" if letter else "DestinationDeliveryFailures", 1, fact.at
            )

    @override
    def undelivered(self, fact: Undelivered) -> None:
        last = fact.last
        if last.subscription.id == INVOCATIONS:
            self._metrics.count(_function(last), "AsyncEventsDropped", 1, last.at)


def _function(fact: Attempted) -> ResourceName:
    """The function behind an engine topic of events."""
    topic = fact.topic.name
    name, _, _ = topic.name.partition(":")
    region, _, _ = topic.region.partition(":")
    return ResourceName(topic.account, region, name)

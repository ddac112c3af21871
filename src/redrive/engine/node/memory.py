"""The memory of a node: the contexts of subscriptions, counts of queues, listeners, and endpoints made to fail.

A listener hears the facts of everybody, or of the dialects it is registered for alone: what Event Grid counts has no
business with a publication through SNS. A fact that nobody listens to is an empty call.

An injected fault stands in the place of the attempt itself, so everything after it is what it would be: schedule, logs,
metrics, dead letters.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from redrive.engine.ports import DeliveryProfile, SubscriptionContext
from redrive.engine.ports.facts import Listener
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

_FACTS: Final = tuple(name for name, member in vars(Listener).items() if callable(member))


class Audience(Listener):
    """Several listeners as one: for each fact, those that override its method."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        for fact in _FACTS:
            methods = [getattr(listener, fact) for listener in listeners if _hears(listener, fact)]
            if methods:
                setattr(self, fact, methods[0] if len(methods) == 1 else _each(methods))


class Listeners:
    """All listeners, by the facts that they listen to.

    Attributes:
        queues: Listeners to what happens in queues, which is not a dialect's.
    """

    def __init__(self, everywhere: Sequence[Listener] = ()) -> None:
        self._everywhere = list(everywhere)
        self._named: dict[str, list[Listener]] = {}
        self._audiences: dict[str, Audience] = {}
        self.queues = Audience(self._everywhere)

    def add(self, listener: Listener, *names: str) -> None:
        """Add a listener to the facts of these dialects' topics and profiles' attempts; without names, to all facts."""
        if not names:
            self._everywhere.append(listener)
            self.queues = Audience(self._everywhere)
        for name in names:
            self._named.setdefault(name, []).append(listener)
        self._audiences.clear()

    def remove(self, listener: Listener) -> None:
        """Remove a listener that was added without names."""
        self._everywhere.remove(listener)
        self.queues = Audience(self._everywhere)
        self._audiences.clear()

    def of(self, name: str) -> Audience:
        """The listeners to a topic's facts, by its dialect, or to an attempt's, by its profile's name."""
        audience = self._audiences.get(name)
        if audience is None:
            audience = Audience([*self._everywhere, *self._named.get(name, ())])
            self._audiences[name] = audience
        return audience


def _hears(listener: Listener, fact: str) -> bool:
    return getattr(type(listener), fact) is not getattr(Listener, fact)


def _each(methods: Sequence[Callable[..., None]]) -> Callable[..., None]:
    """A function that calls all of these."""

    def tell(*fact: Any) -> None:
        for hear in methods:
            hear(*fact)

    return tell


@dataclass(slots=True)
class QueueCounters:
    """Counts of one queue. Names of the fields after the first two are the metric names, units last."""

    queue_id: int
    name: ResourceName
    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    empty_receives: int = 0
    messages_deleted: int = 0
    messages_dead_lettered: int = 0
    messages_expired: int = 0
    messages_dropped: int = 0
    messages_redriven: int = 0


class NodeCounters:
    """The counts of every queue in which something happened on this node.

    They know the queue's name: to look up 100,000 names for each scrape took minutes.

    Attributes:
        attempts: The number of attempts begun since this node started.
    """

    def __init__(self) -> None:
        self.attempts = 0
        self._queues: dict[int, QueueCounters] = {}

    def queue(self, queue: Queue) -> QueueCounters:
        """The counts of a queue, to be added to."""
        counters = self._queues.get(queue.id)
        if counters is None:
            counters = self._queues[queue.id] = QueueCounters(queue.id, queue.name)
        return counters

    def forget(self, queue_id: int) -> None:
        """The queue is gone."""
        self._queues.pop(queue_id, None)

    def __contains__(self, queue_id: int) -> bool:
        return queue_id in self._queues

    def __iter__(self) -> Iterator[QueueCounters]:
        return iter(list(self._queues.values()))


METRIC_NAMES = tuple(field.name for field in fields(QueueCounters)[2:])


TOO_MANY_REQUESTS = 429
SERVER_ERRORS = 500


def failed_on_purpose(status: int) -> Attempt:
    """The attempt at an endpoint that answers with this status, by the rules for HTTP endpoints."""
    if status == TOO_MANY_REQUESTS:
        return Attempt(AttemptResult.FAILED, Reason.THROTTLED, status, "failed on purpose")
    if status >= SERVER_ERRORS:
        return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, status, "failed on purpose")
    return Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, status, "failed on purpose")


class FaultInjection:
    """Endpoints that are made to fail, for tests. Nothing fails by itself.

    Attributes:
        are_used: True once a fault was set: until then no publication looks one up.
    """

    def __init__(self) -> None:
        self._faults: dict[str, Attempt] = {}
        self.are_used = False

    def set(self, endpoint: str, attempt: Attempt) -> None:
        """Every attempt at this endpoint ends like this from now on."""
        self._faults[endpoint] = attempt
        self.are_used = True

    def clear(self, endpoint: str) -> None:
        """Let the endpoint answer for itself again."""
        self._faults.pop(endpoint, None)

    def of(self, endpoint: str) -> Attempt | None:
        """The attempt that stands in for real ones at the endpoint, if one does."""
        return self._faults.get(endpoint) if self.are_used else None


# About a kilobyte each. Forgetting them all costs a call of the profile for each that is asked for again.
CONTEXTS_MAX: Final = 50_000


class SubscriptionContexts:
    """Makes the context of a subscription once for each version of it and of its topic."""

    def __init__(self, profiles: Mapping[str, DeliveryProfile]) -> None:
        self._profiles = profiles
        self._contexts: dict[int, SubscriptionContext] = {}

    def of(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """The context of a subscription as it and its topic are now."""
        context = self._contexts.get(subscription.queue_id)
        if context is not None and _same(context.subscription, subscription) and _same(context.topic, topic):
            return context
        context = self._profiles[topic.dialect].context(topic, subscription)
        if len(self._contexts) >= CONTEXTS_MAX:
            self._contexts.clear()
        self._contexts[subscription.queue_id] = context
        return context

    def forget(self, queue_id: int) -> None:
        """The subscription with that backlog is gone."""
        self._contexts.pop(queue_id, None)


def _same(remembered_value: object, current: object) -> bool:
    """Equality, at once for what the directory handed out before: comparing two subscriptions takes 2 us."""
    return remembered_value is current or remembered_value == current

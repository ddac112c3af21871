"""The engine's memory of subscriptions: one context for each, shared by fan-out and push."""

from collections.abc import Mapping
from typing import Final

from redrive.engine.ports import DeliveryProfile, SubscriptionContext
from redrive.model.topic import Subscription, Topic

# About a kilobyte each. Forgetting them all costs a call of the profile for each that is asked for again.
CONTEXTS_MAX: Final = 50_000


class SubscriptionContexts:
    """Creates the context of a subscription once for each version of it and of its topic."""

    def __init__(self, profiles: Mapping[str, DeliveryProfile]) -> None:
        self._profiles = profiles
        self._contexts: dict[int, SubscriptionContext] = {}

    def of(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """The context of a subscription as it and its topic are now."""
        known = self._contexts.get(subscription.queue_id)
        if known is not None and _same(known.subscription, subscription) and _same(known.topic, topic):
            return known
        context = self._profiles[topic.dialect].context(topic, subscription)
        if len(self._contexts) >= CONTEXTS_MAX:
            self._contexts.clear()
        self._contexts[subscription.queue_id] = context
        return context

    def forget(self, queue_id: int) -> None:
        """The subscription with that backlog is gone."""
        self._contexts.pop(queue_id, None)


def _same(known: object, current: object) -> bool:
    """Equality, at once for what the directory handed out before: comparing two subscriptions takes 2 us."""
    return known is current or known == current

"""Event Grid's part in delivering: which profile each subscription goes by.

Event subscriptions of topics and of namespaces differ, and beside either may stand the store of its dead letters. All
four are kept as subscriptions of topics whose dialect is Event Grid's; this is where they are told apart.
"""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.dead_letter_profile import (
    DeadLetterProfile,
    NamespaceDeadLetterProfile,
    Notes,
    UrlOf,
)
from redrive.azure.eventgrid.event_profile import PULL, EventProfile, NamespaceEventProfile
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.rendering import rendered
from redrive.azure.webhook_tokens import WebhookTokens
from redrive.engine.ports import SubscriptionContext
from redrive.model.delivery import Delivery
from redrive.model.topic import Subscription, Topic

__all__ = ["PULL", "EventGridDeliveryProfile", "present"]


class EventGridDeliveryProfile(EventProfile):
    """`redrive.engine.ports.DeliveryProfile` of topics made through Event Grid."""

    def __init__(self, notes: Notes, tokens: WebhookTokens, url_of: UrlOf) -> None:
        """Deliver as Event Grid does.

        Args:
            notes: What is remembered of a message's attempts, by its backlog's number and its id.
            tokens: Issues those that webhooks want.
            url_of: The URL of a container, by its resource id.
        """
        super().__init__(tokens)
        self._of_namespaces = NamespaceEventProfile(tokens)
        self._dead_letters = DeadLetterProfile(notes, url_of)
        self._dead_letters_of_namespaces = NamespaceDeadLetterProfile(notes, url_of)

    @override
    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`; from the profile of the subscription's kind."""
        of_namespace = names.is_namespace_topic(topic.name)
        if names.is_dead_letter_store(subscription.id):
            letters = self._dead_letters_of_namespaces if of_namespace else self._dead_letters
            return letters.context(topic, subscription)
        if of_namespace:
            return self._of_namespaces.context(topic, subscription)
        return super().context(topic, subscription)


def present(delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
    """The delivery as a receiver of this server's queue sees it: the event, and no attributes."""
    published = PublishedEvent.unpack(delivery.headers)
    return rendered(delivery.body, published, published.delivered_as or published.schema), {}

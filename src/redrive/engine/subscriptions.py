"""Subscriptions come and go."""

from collections.abc import Callable

from redrive.engine.numbers import CONFIRMED, FILTERED, UNCONFIRMED, SubscriptionCounts
from redrive.engine.topics import Topics
from redrive.model.queue import ResourceName
from redrive.model.topic import Subscription


class Subscriptions:
    """The subscriptions of all topics."""

    def __init__(self, topics: Topics) -> None:
        """Find them beside these topics."""
        self._topics = topics

    async def get(self, topic: ResourceName, subscription_id: str) -> Subscription | None:
        """The subscription of that id."""
        return await self._topics.subscription(topic, subscription_id)

    async def of(self, topic: ResourceName, after: str = "", limit: int | None = None) -> list[Subscription]:
        """A topic's subscriptions by id, beginning after the key `after`."""
        return await self._topics.subscriptions_of(topic, after, limit)

    async def of_account(
        self, account: str, region: str = "", after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """Subscriptions of an account's topics, of one region or of all, by key, beginning after the key `after`."""
        return await self._topics.subscriptions_in(account, region, after, limit)

    async def elsewhere(
        self, account: str, region: str, after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """The subscriptions that an account has at topics of others, by key, beginning after the key `after`."""
        return await self._topics.subscriptions_elsewhere(account, region, after, limit)

    async def count(self, topic: ResourceName) -> SubscriptionCounts:
        """How many subscriptions a topic has."""
        found = await self._topics.numbers.subscriptions(topic)
        return SubscriptionCounts(found[CONFIRMED], found[UNCONFIRMED], found[FILTERED])

    async def count_filtered(self, account: str, region: str) -> int:
        """How many subscriptions of the topics of an account's region have a filter."""
        return await self._topics.numbers.filtered(account, region)

    async def unconfirmed(self, topic: ResourceName) -> list[Subscription]:
        """The subscriptions of a topic whose endpoints have not agreed; few, usually."""
        return await self._topics.numbers.unconfirmed(topic)

    async def create(self, wanted: Subscription) -> Subscription:
        """Make a subscription; `queue_id` and `created_at` are given here.

        Raises:
            AlreadyExists: There is one of that id.
            NotFound: There is no such topic.
        """
        return await self._topics.subscribe(wanted)

    async def update(
        self, subscription: Subscription, change: Callable[[Subscription], Subscription]
    ) -> Subscription:
        """Change a subscription.

        Raises:
            NotFound: It is not there (any more).
        """
        return await self._topics.change(subscription, change)

    async def delete(self, subscription: Subscription) -> bool:
        """Take a subscription away; whether it was there. What it is owed still is dropped."""
        return await self._topics.unsubscribe(subscription)

"""Numbers of topics and subscriptions, for those who ask how many there are, and for limits."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redrive.engine.configuration.count_by_key import CountByKey
from redrive.engine.configuration.directory import Directory, DocumentKind
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

# Sorts of topics, and of subscriptions.
_ORDERED, _UNORDERED = "ordered", "unordered"
_CONFIRMED, _UNCONFIRMED, _FILTERED = "confirmed", "unconfirmed", "filtered"


class TopicCounts(NamedTuple):
    """The numbers of topics of an account's region, ordered and unordered."""

    ordered: int
    unordered: int


class SubscriptionCounts(NamedTuple):
    """The numbers of subscriptions of a topic: confirmed, unconfirmed, and with a filter."""

    confirmed: int
    unconfirmed: int
    filtered: int


class ResourceCounts:
    """The numbers of topics and subscriptions."""

    def __init__(
        self, directory: Directory, topics: DocumentKind[Topic], subscriptions: DocumentKind[Subscription]
    ) -> None:
        self._directory = directory
        self._subscriptions = subscriptions
        self._tallies: Mapping[str, CountByKey[Topic] | CountByKey[Subscription]] = {
            topics.name: (
                topic_tally := CountByKey(directory, topics, lambda topic: topic.name.key, _sorts_of_topic)
            ),
            subscriptions.name: (
                tally := CountByKey(directory, subscriptions, lambda subscription: subscription.key, _sorts)
            ),
        }
        self._topic_tally = topic_tally
        self._subscription_tally = tally

    def changed(self, kind: str, key: str) -> None:
        """A document changed, on whichever node; an empty key: any of the kind, or of all where both are empty."""
        for name, tally in self._tallies.items():
            if kind in ("", name):
                tally.changed(key)

    def forget_topic(self, key: str) -> None:
        """The topic of that key is gone, or changed on another node."""
        self._subscription_tally.forget(f"{key}/")

    async def topics(self, account: str, region: str) -> TopicCounts:
        """The number of topics of an account's region."""
        numbers = await self._topic_tally.numbers(f"{account}/{region}/")
        return TopicCounts(numbers[_ORDERED], numbers[_UNORDERED])

    async def subscriptions(self, topic: ResourceName) -> SubscriptionCounts:
        """The number of subscriptions of a topic."""
        numbers = await self._subscription_tally.numbers(f"{topic.key}/")
        return SubscriptionCounts(numbers[_CONFIRMED], numbers[_UNCONFIRMED], numbers[_FILTERED])

    async def filtered(self, account: str, region: str) -> int:
        """The number of subscriptions with a filter, of the topics of an account's region."""
        return (await self._subscription_tally.numbers(f"{account}/{region}/"))[_FILTERED]

    async def unconfirmed(self, topic: ResourceName) -> list[Subscription]:
        """The subscriptions of a topic whose endpoints have not agreed; few, usually."""
        unconfirmed = []
        for key in await self._subscription_tally.keys(f"{topic.key}/", _UNCONFIRMED):
            subscription: Subscription | None = await self._directory.get(self._subscriptions, key)
            if subscription is not None:
                unconfirmed.append(subscription)
        return unconfirmed


def _sorts(subscription: Subscription) -> Sequence[str]:
    standing = _CONFIRMED if subscription.confirmed else _UNCONFIRMED
    return (standing,) if subscription.filter_text is None else (standing, _FILTERED)


def _sorts_of_topic(topic: Topic) -> Sequence[str]:
    return (_ORDERED if topic.ordered else _UNORDERED,)

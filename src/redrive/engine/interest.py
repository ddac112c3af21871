"""Interest: which subscriptions of a topic want a message, by one look into an index over all their filters.

An index is read from the store when its topic is first asked about. A change made on this node is made in the index
too: to read ten thousand filters again takes half a second. A change made on another node makes this one read again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from redrive.engine.directory import Directory, Kind
from redrive.engine.ports import Clock
from redrive.model.filtering import (
    EventFilter,
    FilterIndex,
    Scope,
    Subject,
    Verdict,
    read_event_filter,
    read_policy,
)
from redrive.model.topic import EVENTS, Subscription, Topic


@dataclass(slots=True)
class Wanted:
    """Who wants a message.

    Attributes:
        subscriptions: Those it passes the filters of.
        refused: How many filters it does not pass, by reason.
        asked: How many advanced filters on events were asked, by subscription, where there were any.
    """

    subscriptions: list[Subscription]
    refused: Mapping[Verdict, int]
    asked: Sequence[tuple[Subscription, int]] = ()


@dataclass(slots=True)
class Interest:
    """Subscriptions ready to be asked."""

    unfiltered: dict[str, Subscription] = field(default_factory=dict)
    filtered: dict[str, Subscription] = field(default_factory=dict)
    filters: FilterIndex[str] = field(default_factory=FilterIndex)
    event_filtered: dict[str, tuple[EventFilter, Subscription]] = field(default_factory=dict)
    expires_at: int | None = None  # the first of them to end, or one that ended
    _everything: list[Subscription] | None = None  # of those without a filter; handed out, so never changed

    def add(self, subscription: Subscription) -> None:
        """Ask this one too, from now on as it is now."""
        self.remove(subscription.id)
        if subscription.expires_at is not None:
            self.expires_at = min(subscription.expires_at, self.expires_at or subscription.expires_at)
        if subscription.filter_text is None:
            self.unfiltered[subscription.id] = subscription
            self._everything = None
            return
        if subscription.filter_language == EVENTS:
            wants = read_event_filter(subscription.filter_text)
            self.event_filtered[subscription.id] = (wants, subscription)
            return
        scope = Scope.BODY if subscription.filter_body else Scope.ATTRIBUTES
        self.filtered[subscription.id] = subscription
        self.filters.add(subscription.id, read_policy(subscription.filter_text, scope))

    def remove(self, subscription_id: str) -> None:
        """Ask this one no more."""
        if self.filtered.pop(subscription_id, None) is not None:
            self.filters.remove(subscription_id)
        elif self.unfiltered.pop(subscription_id, None) is not None:
            self._everything = None
        else:
            self.event_filtered.pop(subscription_id, None)

    def wanted(self, subject: Subject) -> Wanted:
        """Who wants a message."""
        everything = self._everything
        if everything is None:
            everything = self._everything = list(self.unfiltered.values())
        if not self.filtered and not self.event_filtered:
            return Wanted(everything, {})
        filtered = self.filters.filter(subject)
        passed = [self.filtered[one] for one in sorted(filtered.passed)]
        if not self.event_filtered:
            return Wanted(everything + passed, filtered.refused)
        events, asked = self._wanted_events(subject)
        refused = {Verdict.EVENT: len(self.event_filtered) - len(events), **filtered.refused}
        counted = {why: many for why, many in refused.items() if many}
        return Wanted([*everything, *passed, *events], counted, asked)

    def _wanted_events(self, subject: Subject) -> tuple[list[Subscription], list[tuple[Subscription, int]]]:
        """A topic has 500 subscriptions at most, of which each asks for something else: they are asked in turn."""
        document = subject.document
        if document is None:
            return [], []
        answers = [(one, *wants.asked(document)) for wants, one in self.event_filtered.values()]
        wanted = [one for one, passed, _ in answers if passed]
        return wanted, [(one, asked) for one, _, asked in answers if asked]


class Interests:
    """The interest in each topic that this node was asked about."""

    def __init__(self, directory: Directory, kind: Kind[Subscription], clock: Clock) -> None:
        """Read subscriptions, which are of this kind, from this directory."""
        self._directory = directory
        self._kind = kind
        self._clock = clock
        self._interests: dict[str, Interest] = {}
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._changes = 0

    async def wanted(self, topic: Topic, subject: Subject) -> Wanted:
        """The subscriptions of a topic that want a message."""
        interest = self._interests.get(topic.name.key)
        if interest is None:
            interest = await self._read_once(topic)
        wanted = interest.wanted(subject)
        if interest.expires_at is None or self._clock.now() < interest.expires_at:
            return wanted
        now = self._clock.now()
        left = [one for one in wanted.subscriptions if one.expires_at is None or now < one.expires_at]
        return Wanted(left, wanted.refused, wanted.asked)

    def forget(self, key: str) -> None:
        """Something happened to the subscription of that key, or to any where it is empty: read again."""
        self._changes += 1
        if key:
            self._interests.pop(_topic_of(key), None)
        else:
            self._interests.clear()

    def changed(self, key: str) -> None:
        """This node made or changed a subscription: what the directory remembers of it holds."""
        current: Subscription | None = self._directory.known(self._kind, key)
        interest = self._interests.get(_topic_of(key))
        if current is None or interest is None:
            self.forget(key)  # another change was under way
            return
        self._changes += 1
        interest.remove(current.id)
        if current.confirmed:
            interest.add(current)

    def removed(self, key: str) -> None:
        """This node removed a subscription."""
        self._changes += 1
        interest = self._interests.get(_topic_of(key))
        if interest is not None:
            interest.remove(key.rpartition("/")[2])

    def forget_topic(self, key: str) -> None:
        """The topic of that key changed, or is gone; all of them where it is empty."""
        self._changes += 1
        if key:
            self._interests.pop(key, None)
        else:
            self._interests.clear()

    async def _read_once(self, topic: Topic) -> Interest:
        """Read once for all who ask meanwhile."""
        key = topic.name.key
        async with self._reading.setdefault(key, asyncio.Lock()):
            return self._interests.get(key) or await self._read(topic)

    async def _read(self, topic: Topic) -> Interest:
        before = self._changes
        interest = Interest()
        for subscription in await self._directory.find(self._kind, f"{topic.name.key}/"):
            if subscription.confirmed:
                interest.add(subscription)
        if self._changes == before:
            self._interests[topic.name.key] = interest
        return interest


def wanting(subscription: Subscription) -> Callable[[Subject], bool]:
    """Whether one subscription wants messages, confirmed or not."""
    interest = Interest()
    interest.add(subscription)
    return lambda subject: bool(interest.wanted(subject).subscriptions)


def _topic_of(subscription_key: str) -> str:
    return subscription_key.rpartition("/")[0]

"""Matching: which subscriptions of a topic want a message, by one look into an index over all their filters.

An index is read from the store when its topic is first asked about. A change made on this node is made in the index
too: to read ten thousand filters again takes half a second. A change made on another node makes this one read again.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from redrive.engine.configuration.directory import Directory, DocumentKind
from redrive.engine.ports import Clock
from redrive.model.budget import OverBudgetError
from redrive.model.filtering import (
    Event,
    EventFilter,
    FilterIndex,
    FilterVerdict,
    MessageBudget,
    Scope,
    Subject,
    read_event_filter,
    read_policy,
)
from redrive.model.topic import EVENTS, Subscription, Topic

_TURN_STEPS: Final = 25_000  # 10 ms


@dataclass(slots=True)
class Matches:
    """The subscriptions that a message matches."""

    subscriptions: list[Subscription]  # Those it passes the filters of
    refused: Mapping[FilterVerdict, int]  # How many filters it does not pass, by reason
    # How many advanced filters on events were evaluated, by subscription, where there were any.
    evaluated: Sequence[tuple[Subscription, int]] = ()


@dataclass(slots=True)
class SubscriptionMatcher:
    """Subscriptions of a topic, prepared for matching."""

    unfiltered: dict[str, Subscription] = field(default_factory=dict)
    filtered: dict[str, Subscription] = field(default_factory=dict)
    filters: FilterIndex[str] = field(default_factory=FilterIndex)
    event_filtered: dict[str, tuple[EventFilter, Subscription]] = field(default_factory=dict)
    expires_at: int | None = None  # the first of them to end, or one that ended
    _unfiltered_list: list[Subscription] | None = (
        None  # of those without a filter; handed out, so never changed
    )

    def add(self, subscription: Subscription) -> None:
        """Match this subscription from now on, in place of an earlier state of it."""
        self.remove(subscription.id)
        if subscription.expires_at is not None:
            self.expires_at = min(subscription.expires_at, self.expires_at or subscription.expires_at)
        if subscription.filter_text is None:
            self.unfiltered[subscription.id] = subscription
            self._unfiltered_list = None
            return
        if subscription.filter_language == EVENTS:
            event_filter = read_event_filter(subscription.filter_text)
            self.event_filtered[subscription.id] = (event_filter, subscription)
            return
        scope = Scope.BODY if subscription.filter_body else Scope.ATTRIBUTES
        self.filtered[subscription.id] = subscription
        self.filters.add(subscription.id, read_policy(subscription.filter_text, scope, stored=True))

    def remove(self, subscription_id: str) -> None:
        """Stop matching this subscription."""
        if self.filtered.pop(subscription_id, None) is not None:
            self.filters.remove(subscription_id)
        elif self.unfiltered.pop(subscription_id, None) is not None:
            self._unfiltered_list = None
        else:
            self.event_filtered.pop(subscription_id, None)

    def matches(self, subject: Subject, budget: MessageBudget) -> Matches:
        """Find the subscriptions that a message matches, within a budget of steps."""
        unfiltered = self.unfiltered_list
        filtered = self.filters.filter(subject, budget)
        passed = [self.filtered[each] for each in sorted(filtered.passed)]
        if not self.event_filtered:
            return Matches(unfiltered + passed, filtered.refused)
        events = self._event_matches(subject, budget)
        refused = Counter(filtered.refused) + Counter(events.refused)
        return Matches([*unfiltered, *passed, *events.subscriptions], refused, events.evaluated)

    @property
    def unfiltered_list(self) -> list[Subscription]:
        """The subscriptions without a filter."""
        if self._unfiltered_list is None:
            self._unfiltered_list = list(self.unfiltered.values())
        return self._unfiltered_list

    def _event_matches(self, subject: Subject, budget: MessageBudget) -> Matches:
        """Evaluates the event filters in turn: a topic has 500 subscriptions at most, each with another filter."""
        document = subject.document
        remaining = len(self.event_filtered)
        if document is None:
            return Matches([], {FilterVerdict.EVENT: remaining})
        event = Event(document)
        subscriptions: list[Subscription] = []
        counts: list[tuple[Subscription, int]] = []
        costly = 0
        for event_filter, subscription in self.event_filtered.values():
            budget.share(remaining)
            remaining -= 1
            try:
                passed, evaluated = event_filter.evaluate(event, budget)
            except OverBudgetError:
                costly += 1
                continue
            if passed:
                subscriptions.append(subscription)
            if evaluated:
                counts.append((subscription, evaluated))
        unmatched = len(self.event_filtered) - len(subscriptions) - costly
        refused = {FilterVerdict.EVENT: unmatched, FilterVerdict.TOO_COSTLY: costly}
        return Matches(subscriptions, {verdict: count for verdict, count in refused.items() if count}, counts)


class SubscriptionMatchers:
    """The matchers of each topic that this node was asked about."""

    def __init__(self, directory: Directory, kind: DocumentKind[Subscription], clock: Clock) -> None:
        self._directory = directory
        self._kind = kind
        self._clock = clock
        self._matchers: dict[str, SubscriptionMatcher] = {}  # by topic
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._changes = 0  # noted so far: tells whether one came while a topic was read
        self._turns = Turns()

    def unfiltered(self, topic: Topic) -> Sequence[Subscription] | None:
        """The subscriptions of a topic, if it was read and none of them has a filter or an end."""
        matcher = self._matchers.get(topic.name.key)
        if matcher is None or matcher.filtered or matcher.event_filtered or matcher.expires_at is not None:
            return None
        return matcher.unfiltered_list

    async def matches(self, topic: Topic, subject: Subject) -> Matches:
        """The subscriptions of a topic that want a message."""
        matcher = self._matchers.get(topic.name.key)
        if matcher is None:
            matcher = await self._read_once(topic)
        if matcher.filtered or matcher.event_filtered:
            await self._turns.begin()
            budget = MessageBudget()
            matches = matcher.matches(subject, budget)
            self._turns.end(budget)
        else:
            matches = Matches(matcher.unfiltered_list, {})
        if matcher.expires_at is None or self._clock.now() < matcher.expires_at:
            return matches
        now = self._clock.now()
        unexpired = [
            each for each in matches.subscriptions if each.expires_at is None or now < each.expires_at
        ]
        return Matches(unexpired, matches.refused, matches.evaluated)

    def forget(self, key: str) -> None:
        """Read a topic again after an unknown change of that subscription; an empty key: every topic."""
        self._changes += 1
        if key:
            self._matchers.pop(_topic_of(key), None)
        else:
            self._matchers.clear()

    def note_change(self, key: str) -> None:
        """A subscription changed on this node: take its filter from the directory's memory."""
        current: Subscription | None = self._directory.known(self._kind, key)
        matcher = self._matchers.get(_topic_of(key))
        if current is None or matcher is None:
            self.forget(key)  # another change was under way
            return
        self._changes += 1
        matcher.remove(current.id)
        if current.confirmed:
            matcher.add(current)

    def note_removal(self, key: str) -> None:
        """Drop the filter of a subscription that this node removed."""
        self._changes += 1
        matcher = self._matchers.get(_topic_of(key))
        if matcher is not None:
            matcher.remove(key.rpartition("/")[2])

    def forget_topic(self, key: str) -> None:
        """Read a topic again that was changed or removed; an empty key: every topic."""
        self._changes += 1
        if key:
            self._matchers.pop(key, None)
        else:
            self._matchers.clear()

    async def _read_once(self, topic: Topic) -> SubscriptionMatcher:
        """Read once for all who ask meanwhile."""
        key = topic.name.key
        async with self._reading.setdefault(key, asyncio.Lock()):
            return self._matchers.get(key) or await self._read(topic)

    async def _read(self, topic: Topic) -> SubscriptionMatcher:
        """The matcher of a topic's confirmed subscriptions; remembered unless something changed while it was read."""
        before = self._changes
        matcher = SubscriptionMatcher()
        for subscription in await self._directory.find(self._kind, f"{topic.name.key}/"):
            if subscription.confirmed:
                matcher.add(subscription)
        if self._changes == before:
            self._matchers[topic.name.key] = matcher
        return matcher


class Turns:
    """Lets others run while messages are filtered: what matters to them is how long one turn of the event loop takes.

    Messages that cost much are filtered in different turns, in the order in which they came, also where many publish
    at once: twenty costly ones in one turn were 0.8 s.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_is_due = False  # always where somebody waits

    async def begin(self) -> None:
        """Wait for a turn that has room for another message."""
        if self._next_is_due:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def end(self, budget: MessageBudget) -> None:
        """Count what filtering a message took."""
        self._steps += budget.spent
        if self._steps >= _TURN_STEPS:
            self._let_others_run()

    def _let_others_run(self) -> None:
        if not self._next_is_due:
            self._next_is_due = True
            asyncio.get_running_loop().call_soon(self._begin_next)

    def _begin_next(self) -> None:
        """Begin a turn with the task that has waited longest; the others get a turn each after it."""
        self._steps = 0
        self._next_is_due = False
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else who waited was cancelled
                turn.set_result(None)
                self._let_others_run()
                return


def filter_of(subscription: Subscription) -> Callable[[Subject, MessageBudget], bool]:
    """The filter of one subscription, confirmed or not, as a function: True if it matches a message."""
    matcher = SubscriptionMatcher()
    matcher.add(subscription)
    return lambda subject, budget: bool(matcher.matches(subject, budget).subscriptions)


def _topic_of(subscription_key: str) -> str:
    return subscription_key.rpartition("/")[0]

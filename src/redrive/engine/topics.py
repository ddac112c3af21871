"""Topics and subscriptions come and go."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from redrive.engine.directory import Directory, Kind
from redrive.engine.interest import Interests, Wanted
from redrive.engine.numbers import ORDERED, UNORDERED, Numbers, TopicCounts
from redrive.engine.ports import Clock, Store
from redrive.engine.queues import Queues
from redrive.model.errors import AlreadyExists, Conflict, NotFound
from redrive.model.filtering import Subject
from redrive.model.queue import ResourceName
from redrive.model.topic import Subscription, Topic

TOPIC: Kind[Topic] = Kind("topic", Topic.to_document, Topic.from_document)
SUBSCRIPTION: Kind[Subscription] = Kind("subscription", Subscription.to_document, Subscription.from_document)
_OF_QUEUE: Kind[str] = Kind(
    "subscription_of_queue", lambda key: {"key": key}, lambda document: document["key"]
)
# Those that an account has at topics of others, by the account: they are found among nobody's own.
_ELSEWHERE: Kind[str] = Kind("subscription_elsewhere", _OF_QUEUE.write, _OF_QUEUE.read)


class Topics:
    """The topics of all accounts and regions, with their subscriptions."""

    def __init__(self, store: Store, directory: Directory, queues: Queues, clock: Clock) -> None:
        """Keep topics in this directory, and bury the backlogs of removed subscriptions among these queues."""
        self._queues = queues
        self._store = store
        self._directory = directory
        self._clock = clock
        self._interests = Interests(directory, SUBSCRIPTION, clock)
        self.numbers = Numbers(directory, TOPIC, SUBSCRIPTION)
        self.on_subscription: Callable[[Subscription], None] = lambda _: None
        self.on_unsubscription: Callable[[Subscription], None] = lambda _: None
        directory.on_forget(self._forget)

    def _forget(self, kind: str, key: str) -> None:
        if kind in ("", SUBSCRIPTION.name):
            self._interests.forget(key)
        self.numbers.changed(kind, key)

    # ---- topics -----------------------------------------------------------------------------------------

    def known(self, name: ResourceName) -> Topic | None:
        """The topic if this node remembers it, without waiting."""
        return self._directory.known(TOPIC, name.key)

    async def get(self, name: ResourceName) -> Topic | None:
        """The topic of that name."""
        return await self._directory.get(TOPIC, name.key)

    async def find(self, beginning: ResourceName, after: str = "", limit: int | None = None) -> list[Topic]:
        """Topics of an account's region whose name begins so, by name, beginning after the key `after`."""
        return await self._directory.find(TOPIC, beginning.key, after, limit)

    async def of_account(
        self, account: str, region: str = "", after: str = "", limit: int | None = None
    ) -> list[Topic]:
        """Topics of an account, of one region or of all, by key, beginning after the key `after`."""
        return await self._directory.find(TOPIC, _beginning(account, region), after, limit)

    async def count(self, account: str, region: str) -> TopicCounts:
        """How many topics an account's region has."""
        found = await self.numbers.topics(account, region)
        return TopicCounts(found[ORDERED], found[UNORDERED])

    async def everybodys(self, limit: int | None = None, after: str = "") -> list[Topic]:
        """Topics of all accounts, by key, beginning after the key `after`."""
        return await self._directory.find(TOPIC, "", after, limit)

    async def create(self, wanted: Topic) -> Topic:
        """Make a topic; `wanted.id` and `created_at` are given here.

        Raises:
            AlreadyExists: There is one of that name.
        """
        topic = replace(wanted, id=await self._store.new_id(), created_at=self._clock.now())
        try:
            await self._directory.create(TOPIC, topic.name.key, topic)
        except Conflict:
            raise AlreadyExists(topic.name.key) from None
        finally:
            self._forget(TOPIC.name, topic.name.key)
        return topic

    async def update(self, name: ResourceName, change: Callable[[Topic], Topic]) -> Topic:
        """Change a topic.

        Raises:
            NotFound: There is none of that name.
        """
        return await self._directory.update(TOPIC, name.key, change)

    async def delete(self, topic: Topic) -> None:
        """Take a topic away with its subscriptions; what they are owed still is dropped.

        The topic goes after its subscriptions, so that a deletion cut short can be repeated, and before those that
        came meanwhile: a topic that is made under the same name must not find any.
        """
        await self._unsubscribe_all(topic)
        if topic.ordered:
            await self._queues.bury(topic.id, topic.name._replace(name=f"archive:{topic.id}"))
        try:
            await self._directory.remove(TOPIC, topic.name.key)
        finally:
            self._forget(TOPIC.name, topic.name.key)
        await self._unsubscribe_all(topic)

    async def _unsubscribe_all(self, topic: Topic) -> None:
        for subscription in await self.subscriptions_of(topic.name):
            await self.unsubscribe(subscription)

    # ---- subscriptions ----------------------------------------------------------------------------------

    async def subscribe(self, wanted: Subscription, *, topic_follows: bool = False) -> Subscription:
        """Make a subscription; `queue_id` and `created_at` are given here.

        Args:
            wanted: What it is to be.
            topic_follows: Its topic is only made after it.

        Raises:
            AlreadyExists: There is one of that id.
            NotFound: There is no such topic (any more): whoever deletes one looks for subscriptions after it is gone,
                so that of a deletion and a subscription at the same moment one at least sees the other.
        """
        made = replace(wanted, queue_id=await self._store.new_id(), created_at=self._clock.now())
        await self._directory.create(_OF_QUEUE, _queue_key(made.queue_id), made.key)
        if made.owner != made.topic.account:
            with contextlib.suppress(Conflict):  # left by one whose removal was cut short
                await self._directory.create(_ELSEWHERE, _elsewhere_key(made), made.key)
        try:
            await self._directory.create(SUBSCRIPTION, made.key, made)
        except Conflict:
            await self._directory.remove(_OF_QUEUE, _queue_key(made.queue_id))
            raise AlreadyExists(made.key) from None
        except BaseException:
            self._forget(SUBSCRIPTION.name, made.key)  # made or not: the answer may have been lost
            raise
        self._changed(made.key)
        if not topic_follows and await self._store.get(TOPIC.name, made.topic.key) is None:
            await self.unsubscribe(made)
            raise NotFound(f"{TOPIC.name} {made.topic.key}")
        self.on_subscription(made)
        return made

    async def subscription(self, topic: ResourceName, subscription_id: str) -> Subscription | None:
        """The subscription of that id."""
        return await self._directory.get(SUBSCRIPTION, f"{topic.key}/{subscription_id}")

    async def is_there(self, key: str) -> bool:
        """Whether there is a subscription with that key."""
        return await self._directory.get(SUBSCRIPTION, key) is not None

    async def subscription_of_queue(self, queue_id: int) -> Subscription | None:
        """The subscription whose backlog that is."""
        key = await self._directory.get(_OF_QUEUE, _queue_key(queue_id))
        if key is None:
            return None
        subscription: Subscription | None = await self._directory.get(SUBSCRIPTION, key)
        return subscription

    async def subscriptions_of(
        self, topic: ResourceName, after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """A topic's subscriptions by id, beginning after the key `after`."""
        return await self._directory.find(SUBSCRIPTION, f"{topic.key}/", after, limit)

    async def subscriptions_in(
        self, account: str, region: str, after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """The subscriptions of all topics of an account's region, by key, beginning after the key `after`.

        Without a region those of all its regions.
        """
        return await self._directory.find(SUBSCRIPTION, _beginning(account, region), after, limit)

    async def subscriptions_elsewhere(
        self, account: str, region: str, after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """The subscriptions that an account has at topics of others, by key, beginning after the key `after`."""
        prefix = f"{account}/{region}/"
        found: list[Subscription] = []
        while keys := await self._directory.find(
            _ELSEWHERE, prefix, f"{prefix}{after}" if after else "", limit
        ):
            after = keys[-1]
            for key in keys:
                subscription: Subscription | None = await self._directory.get(SUBSCRIPTION, key)
                if subscription is not None and subscription.owner == account:
                    found.append(subscription)
            if limit is None or len(found) >= limit:
                break
        return found[:limit]

    async def dead_lettering_to(self, queue: ResourceName) -> list[Subscription]:
        """The subscriptions whose dead letters go to a queue; they belong to its account, in its region."""
        found = await self.subscriptions_in(queue.account, queue.region)
        found += await self.subscriptions_elsewhere(queue.account, queue.region)
        return [one for one in found if one.dead_letter == queue]

    async def all_after(self, key: str, limit: int) -> Sequence[Subscription]:
        """Subscriptions of anybody, by key."""
        return await self._directory.find(SUBSCRIPTION, "", key, limit)

    async def change(
        self, subscription: Subscription, change: Callable[[Subscription], Subscription]
    ) -> Subscription:
        """Change a subscription.

        Raises:
            NotFound: It is not there (any more).
        """
        try:
            changed = await self._directory.update(SUBSCRIPTION, subscription.key, change)
        except BaseException:
            self._forget(SUBSCRIPTION.name, subscription.key)
            raise
        self._changed(subscription.key)
        self.on_subscription(changed)
        return changed

    def _changed(self, key: str) -> None:
        self._interests.changed(key)
        self.numbers.changed(SUBSCRIPTION.name, key)

    async def unsubscribe(self, subscription: Subscription) -> bool:
        """Take a subscription away; whether it was there. What it is owed still is dropped.

        The sweep empties the backlog, and ends here what is cut short.
        """
        backlog = subscription.topic._replace(name=subscription.id)
        await self._queues.bury(subscription.queue_id, backlog)
        if subscription.waiting_id is not None:
            await self._queues.bury(subscription.waiting_id, backlog)
        return await self._take_away(subscription)

    async def finish_removal(self, queue_id: int) -> None:
        """Take away the subscription whose backlog that is, if whoever removed it did not come so far."""
        key = await self._directory.get(_OF_QUEUE, _queue_key(queue_id))
        stored = None if key is None else await self._store.get(SUBSCRIPTION.name, key)
        subscription = None if stored is None else SUBSCRIPTION.read(stored.document)
        if subscription is not None and subscription.queue_id == queue_id:
            await self._take_away(subscription)
        elif key is not None:
            await self._directory.remove(_OF_QUEUE, _queue_key(queue_id))

    async def _take_away(self, subscription: Subscription) -> bool:
        try:
            removed = await self._directory.remove(SUBSCRIPTION, subscription.key)
        except BaseException:
            self._forget(SUBSCRIPTION.name, subscription.key)
            raise
        self._interests.removed(subscription.key)
        self.numbers.changed(SUBSCRIPTION.name, subscription.key)
        await self._directory.remove(_OF_QUEUE, _queue_key(subscription.queue_id))
        if subscription.owner != subscription.topic.account:
            await self._directory.remove(_ELSEWHERE, _elsewhere_key(subscription))
        self.on_unsubscription(subscription)
        return removed

    # ---- who wants it -----------------------------------------------------------------------------------

    async def wanted(self, topic: Topic, subject: Subject) -> Wanted:
        """The subscriptions that want a message."""
        return await self._interests.wanted(topic, subject)


def _beginning(account: str, region: str) -> str:
    return f"{account}/{region}/" if region else f"{account}/"


def _elsewhere_key(subscription: Subscription) -> str:
    return f"{subscription.owner}/{subscription.topic.region}/{subscription.key}"


def _queue_key(queue_id: int) -> str:
    return f"{queue_id:020d}"

"""Subscriptions come and go, each with its backlog; and who wants a message."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from redrive.engine.configuration.count_by_key import ResourceCounts, SubscriptionCounts
from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.kinds import (
    DUE,
    ELSEWHERE,
    QUEUE,
    SERVING,
    SUBSCRIBER,
    SUBSCRIPTION,
    SUBSCRIPTION_OF_BACKLOG,
    TOPIC,
    Due,
    expiry_of,
    of_account,
)
from redrive.engine.configuration.matching import Matches, SubscriptionMatchers
from redrive.engine.configuration.queues import Queues
from redrive.engine.ports import Clock, DocumentStore
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.filtering import Subject
from redrive.model.names import ResourceName, number_key
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic


class Subscriptions:
    """The subscriptions of all topics.

    Verbs that end with `_in` change what a draft holds; the others write at once.

    Attributes:
        on_backlog: Called with each subscription that this node made or changed.
        on_no_backlog: Called with the number of the backlog of each that it removed.
    """

    def __init__(self, store: DocumentStore, directory: Directory, queues: Queues, clock: Clock) -> None:
        self._store = store
        self._directory = directory
        self._queues = queues
        self._clock = clock
        self._matchers = SubscriptionMatchers(directory, SUBSCRIPTION, clock)
        self.numbers = ResourceCounts(directory, TOPIC, SUBSCRIPTION)
        self.on_backlog: Callable[[Subscription], None] = lambda _: None
        self.on_no_backlog: Callable[[int], None] = lambda _: None
        directory.on_change_elsewhere(self._forget)
        directory.on_write(self._note_write)

    def _forget(self, kind: str, key: str) -> None:
        """Forget what is remembered of a subscription or topic that changed; an empty kind: of everything."""
        if kind in ("", SUBSCRIPTION.name):
            self._matchers.forget(key)
        elif kind == TOPIC.name:
            self._forget_topic(key)
        self.numbers.note_change(kind, key)

    def _note_write(self, kind: str, key: str, value: object | None) -> None:
        """Follow a document that this node wrote (`value`) or removed (None)."""
        if kind == SUBSCRIPTION.name:
            note = self._matchers.note_removal if value is None else self._matchers.note_change
            note(key)
        elif kind == TOPIC.name and value is None:
            self._forget_topic(key)
        self.numbers.note_change(kind, key)
        if isinstance(value, Subscription):
            self.on_backlog(value)
        elif kind == SUBSCRIPTION_OF_BACKLOG.name and value is None:
            self.on_no_backlog(int(key))

    def _forget_topic(self, key: str) -> None:
        self._matchers.forget_topic(key)
        self.numbers.forget_topic(key)

    # ---- reading ----------------------------------------------------------------------------------------

    async def get(self, topic: ResourceName, subscription_id: str) -> Subscription | None:
        """The subscription of that id."""
        return await self._directory.get(SUBSCRIPTION, f"{topic.key}/{subscription_id}")

    async def get_stored(self, topic: ResourceName, subscription_id: str) -> Subscription | None:
        """As `get`, of the store: for who ends or changes what another node may have made again."""
        return await self._directory.get_stored(SUBSCRIPTION, f"{topic.key}/{subscription_id}")

    async def exists(self, key: str) -> bool:
        """True if there is a subscription with that key."""
        return await self._directory.get(SUBSCRIPTION, key) is not None

    async def of_backlog(self, queue_id: int) -> Subscription | None:
        """The subscription whose backlog has that number."""
        key = await self._directory.get(SUBSCRIPTION_OF_BACKLOG, number_key(queue_id))
        if key is None:
            return None
        subscription: Subscription | None = await self._directory.get(SUBSCRIPTION, key)
        return subscription

    async def of(self, topic: ResourceName, after: str = "", limit: int | None = None) -> list[Subscription]:
        """A topic's subscriptions by id, beginning after the key `after`."""
        return await self._directory.find(SUBSCRIPTION, f"{topic.key}/", after, limit)

    async def of_account(
        self, account: str, region: str = "", after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """Subscriptions of an account's topics, of one region or of all, by key, beginning after the key `after`."""
        return await self._directory.find(SUBSCRIPTION, of_account(account, region), after, limit)

    async def elsewhere(
        self, account: str, region: str, after: str = "", limit: int | None = None
    ) -> list[Subscription]:
        """The subscriptions that an account has at topics of others, by key, beginning after the key `after`."""
        prefix = of_account(account, region)
        subscriptions: list[Subscription] = []
        while subscription_keys := await self._directory.find(
            ELSEWHERE, prefix, f"{prefix}{after}" if after else "", limit
        ):
            after = subscription_keys[-1]
            for key in subscription_keys:
                subscription: Subscription | None = await self._directory.get(SUBSCRIPTION, key)
                if subscription is not None and subscription.owner == account:
                    subscriptions.append(subscription)
            if limit is None or len(subscriptions) >= limit:
                break
        return subscriptions[:limit]

    async def dead_lettering_to(self, queue: ResourceName) -> list[Subscription]:
        """The subscriptions whose dead letters go to a queue; they belong to its account, in its region."""
        subscriptions = await self.of_account(queue.account, queue.region)
        subscriptions += await self.elsewhere(queue.account, queue.region)
        return [subscription for subscription in subscriptions if subscription.dead_letter == queue]

    async def all_after(self, key: str, limit: int) -> list[Subscription]:
        """Subscriptions of all accounts, by key."""
        return await self._directory.find(SUBSCRIPTION, "", key, limit)

    async def count(self, topic: ResourceName) -> SubscriptionCounts:
        """The number of subscriptions of a topic."""
        return await self.numbers.subscriptions(topic)

    async def count_filtered(self, account: str, region: str) -> int:
        """The number of subscriptions with a filter, of the topics of an account's region."""
        return await self.numbers.count_filtered(account, region)

    async def unconfirmed(self, topic: ResourceName) -> list[Subscription]:
        """The subscriptions of a topic whose endpoints have not agreed; few, usually."""
        return await self.numbers.unconfirmed_subscriptions(topic)

    def wanting_all(self, topic: Topic) -> Sequence[Subscription] | None:
        """The subscriptions of a topic if all of them want every message now; the same object until one changes."""
        return self._matchers.unfiltered(topic)

    async def wanting(self, topic: Topic, subject: Subject) -> Matches:
        """The subscriptions of a topic that want a message."""
        return await self._matchers.matches(topic, subject)

    # ---- writing ----------------------------------------------------------------------------------------

    async def create(self, new_subscription: Subscription) -> Subscription:
        """Make a subscription; `queue_id` and `created_at` are given here.

        Raises:
            AlreadyExists: There is one of that id.
            NotFound: There is no such topic.
        """
        return await self._directory.transact(lambda draft: self.create_in(draft, new_subscription))

    async def create_in(self, draft: Draft, new_subscription: Subscription) -> Subscription:
        """Create a subscription in a draft, with the documents that find it by its backlog, owner and subscriber."""
        if await draft.get(SUBSCRIPTION, new_subscription.key) is not None:
            raise AlreadyExists(new_subscription.key)
        if await draft.get(TOPIC, new_subscription.topic.key) is None:
            raise NotFound(f"{TOPIC.name} {new_subscription.topic.key}")
        subscription = replace(
            new_subscription, queue_id=await self._store.new_id(), created_at=self._clock.now()
        )
        draft.put(SUBSCRIPTION, subscription.key, subscription)
        draft.put(SUBSCRIPTION_OF_BACKLOG, number_key(subscription.queue_id), subscription.key)
        if subscription.owner != subscription.topic.account:
            await draft.overwrite(ELSEWHERE, _elsewhere_key(subscription), subscription.key)
        if subscription.subscriber is not None:
            await draft.overwrite(SUBSCRIBER, _subscriber_key(subscription), subscription.key)
        await _put_end(draft, None, subscription)
        return subscription

    async def get_in(self, draft: Draft, topic: ResourceName, subscription_id: str) -> Subscription | None:
        """The subscription of that id; the draft is only written if it is still the same, or still absent, then."""
        return await draft.get(SUBSCRIPTION, f"{topic.key}/{subscription_id}")

    async def of_in(self, draft: Draft, topic: ResourceName) -> list[Subscription]:
        """See `of`: as the draft leaves them; whoever decides by there being none requires the topic (`Topics`)."""
        return [subscription for _, subscription in await draft.find(SUBSCRIPTION, f"{topic.key}/")]

    async def of_subscriber_in(
        self, draft: Draft, topic: ResourceName, subscriber: str
    ) -> Subscription | None:
        """The subscription of a subscriber; the draft is only written if it is still the same then."""
        key = await draft.get(SUBSCRIBER, f"{topic.key}/{subscriber}")
        if key is None:
            return None
        subscription: Subscription | None = await draft.get(SUBSCRIPTION, key)
        return subscription

    async def put_in(self, draft: Draft, new_subscription: Subscription) -> Subscription:
        """Make a subscription, or change the one of its id to what is wanted, which keeps its backlog.

        Raises:
            NotFound: There is no such topic.
        """
        current = await draft.get(SUBSCRIPTION, new_subscription.key)
        if current is None:
            return await self.create_in(draft, new_subscription)
        changed = replace(new_subscription, queue_id=current.queue_id, created_at=current.created_at)
        return await self._change_in(draft, current, changed)

    async def update(
        self, subscription: Subscription, change: Callable[[Subscription], Subscription]
    ) -> Subscription:
        """Change a subscription; raises NotFound if it is not there (any more)."""
        return await self._directory.transact(lambda draft: self.update_in(draft, subscription, change))

    async def update_in(
        self, draft: Draft, subscription: Subscription, change: Callable[[Subscription], Subscription]
    ) -> Subscription:
        """See `update`."""
        current = await draft.get(SUBSCRIPTION, subscription.key)
        if current is None:
            raise NotFound(f"{SUBSCRIPTION.name} {subscription.key}")
        return await self._change_in(draft, current, change(current))

    async def _change_in(self, draft: Draft, current: Subscription, changed: Subscription) -> Subscription:
        await _put_end(draft, current, changed)
        return draft.change(SUBSCRIPTION, current.key, current, lambda _: changed)

    async def end(self, due: Due) -> None:
        """Delete the subscription that expires at `due.at`, unless it has another end by now."""

        async def decide(draft: Draft) -> None:
            current = await draft.get(SUBSCRIPTION, due.key)
            if current is not None and current.expires_at == due.at:
                await self.delete_in(draft, current)
            draft.remove(DUE, due.due_key)

        await self._directory.transact(decide)

    async def delete(self, subscription: Subscription) -> bool:
        """Take a subscription away with its backlog; whether it was there."""
        return await self._directory.transact(lambda draft: self.delete_in(draft, subscription))

    async def delete_in(self, draft: Draft, subscription: Subscription) -> bool:
        """Delete a subscription in a draft, with the queue that serves it; False if it does not exist (any more)."""
        current = await draft.get(SUBSCRIPTION, subscription.key)
        if current is None or current.queue_id != subscription.queue_id:
            return False
        queue_key = await draft.get(SERVING, current.key)
        if queue_key is not None:
            queue: Queue | None = await draft.get(QUEUE, queue_key)
            if queue is not None:
                await self._queues.delete_in(draft, queue)
        await self.remove_in(draft, current)
        return True

    async def remove_in(self, draft: Draft, current: Subscription) -> None:
        """Delete a subscription that the draft has read and that no queue serves, with its backlogs."""
        draft.remove(SUBSCRIPTION, current.key)
        draft.remove(SUBSCRIPTION_OF_BACKLOG, number_key(current.queue_id))
        if current.owner != current.topic.account:
            # Read, so that only this version of it goes: a later subscription of that id has the same key.
            await draft.get(ELSEWHERE, _elsewhere_key(current))
            draft.remove(ELSEWHERE, _elsewhere_key(current))
        if current.subscriber is not None:
            draft.remove(SUBSCRIBER, _subscriber_key(current))
        if current.expires_at is not None:
            draft.remove(DUE, expiry_of(current, current.expires_at).due_key)
        for queue_id in current.backlogs:
            target = current.dead_letter or current.carries_to
            self._queues.mark_deleted(draft, queue_id, current.backlog_name, target)


async def _put_end(draft: Draft, current: Subscription | None, changed: Subscription) -> None:
    """Have the sweep take a subscription away when its time is over."""
    before = None if current is None else current.expires_at
    if before == changed.expires_at:
        return
    if before is not None:
        draft.remove(DUE, expiry_of(changed, before).due_key)
    if changed.expires_at is not None:
        due = expiry_of(changed, changed.expires_at)
        await draft.overwrite(DUE, due.due_key, due)


def _elsewhere_key(subscription: Subscription) -> str:
    return f"{subscription.owner}/{subscription.topic.region}/{subscription.key}"


def _subscriber_key(subscription: Subscription) -> str:
    return f"{subscription.topic.key}/{subscription.subscriber}"

"""Sources of dead letters: who sends them to which queue, without reading every queue and subscription each time.

Remembered as tallies are: a change on another node is heard of a moment later. That is enough for who looks; whoever
decides by it (a redrive, the SQS facade) reads the documents themselves.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from redrive.engine.configuration.count_by_key import CountByKey
from redrive.engine.configuration.directory import Directory, DocumentKind
from redrive.engine.configuration.kinds import (
    ELSEWHERE,
    QUEUE,
    QUEUE_RECORD,
    SUBSCRIPTION,
    SUBSCRIPTION_OF_BACKLOG,
    TOMBSTONE,
    TOPIC,
    QueueRecord,
    of_account,
    tombstone_key,
)
from redrive.engine.configuration.subscriptions import Subscriptions
from redrive.model.names import ResourceName, number_key
from redrive.model.queue import Queue
from redrive.model.topic import Subscription

SCOPES_MAX: Final = 50
ACCOUNTS_MAX: Final = 1000  # remembered: callers name accounts, and may name any
_AFTER_ALL: Final = "\U0010ffff"


class DeadLetterOrigin(NamedTuple):
    """The origin of dead letters, as far as it is known."""

    queue: ResourceName | None  # The name of the queue that they failed in, if it was one
    subscription: Subscription | None  # The subscription that they were for, if it was one


UNKNOWN: Final = DeadLetterOrigin(None, None)


class Sources(NamedTuple):
    """The queues and topics whose dead letters go to one queue."""

    queues: list[ResourceName]
    subscriptions: list[Subscription]
    # Subscriptions by which services send dead letters of their own: those of a function, for instance.
    services: list[Subscription]
    # When the last of those that were deleted went (ms); None: none was, as far as is remembered.
    deleted_at: int | None = None


class DeadLetterSources:
    """The queues and subscriptions that dead letters come from."""

    def __init__(
        self, directory: Directory, subscriptions: Subscriptions, dialects: Collection[str] = ()
    ) -> None:
        """Look into this directory; `dialects` name the facades whose private topics may carry dead letters."""
        self._dialects = dialects
        self._directory = directory
        self._subscriptions = subscriptions
        self._queues = CountByKey(directory, QUEUE, lambda queue: queue.name.key, _target_of_queue)
        self._of_topics = CountByKey(
            directory, SUBSCRIPTION, lambda subscription: subscription.key, _target_of_subscription
        )
        self._of_deleted = CountByKey(directory, TOMBSTONE, tombstone_key, _target_of_deleted)
        self._elsewhere: dict[tuple[str, str], list[Subscription]] = {}  # by account and region
        # By account, and the key they begin behind
        self._scopes: dict[tuple[str, str], list[ResourceName]] = {}
        directory.on_change_elsewhere(self._note_change)
        directory.on_write(lambda kind, key, _: self._note_change(kind, key))

    def _note_change(self, kind: str, key: str) -> None:
        """Note a change of a document on any node; an empty key: any of the kind, or of all where both are empty."""
        if kind in ("", QUEUE.name, TOPIC.name):
            self._scopes.clear()
        if kind in ("", QUEUE.name):
            self._queues.note_change(key)
        if kind in ("", SUBSCRIPTION.name):
            self._of_topics.note_change(key)
        if kind in ("", TOMBSTONE.name):
            self._of_deleted.note_change(key)
        if kind in ("", SUBSCRIPTION.name, ELSEWHERE.name):
            self._elsewhere.clear()

    async def of(self, target: ResourceName) -> list[Queue | Subscription]:
        """The queues, and then the subscriptions, whose dead letters go to `target`, each by name."""
        prefix = of_account(target.account, target.region)
        queues = await self._queues.keys(prefix, target.key)
        subscriptions = await self._of_topics.keys(prefix, target.key)
        elsewhere = await self._subscriptions_elsewhere(target.account, target.region)
        return [
            *await self._values(QUEUE, sorted(queues)),
            *await self._values(SUBSCRIPTION, sorted(subscriptions)),
            *(subscription for subscription in elsewhere if subscription.dead_letter == target),
        ]

    async def by_target(self, account: str, region: str) -> dict[ResourceName, Sources]:
        """The sources of dead letters of an account's region by their target, and those that were deleted."""
        by_name: dict[ResourceName, Sources] = {}

        def sources_of(target: ResourceName) -> Sources:
            return by_name.setdefault(target, Sources([], [], []))

        for target, keys in (await self._queues.keys_by_category(of_account(account, region))).items():
            sources_of(ResourceName.from_key(target)).queues.extend(map(ResourceName.from_key, keys))
        for subscription in await self._dead_lettering_subscriptions(account, region):
            if subscription.dead_letter is not None:
                sources_of(subscription.dead_letter).subscriptions.append(subscription)
            if subscription.carries_to is not None:
                sources_of(subscription.carries_to).services.append(subscription)
        for tombstone in await self._tombstones(account, region):
            if tombstone.dead_letters_to is not None:
                sources = sources_of(tombstone.dead_letters_to)
                latest = max(sources.deleted_at or 0, tombstone.deleted_at or 0)
                by_name[tombstone.dead_letters_to] = sources._replace(deleted_at=latest)
        return dict(sorted(by_name.items()))

    def _prefixes(self, account: str, region: str) -> list[str]:
        """The beginnings of the keys of an account's topics in a region, its own and private ones.

        A facade's private topics are in the region `region:dialect`; without a region, the account's prefix has them all.
        """
        private_regions = [f"{region}:{dialect}" for dialect in self._dialects] if region else []
        return [of_account(account, each) for each in (region, *private_regions)]

    async def _dead_lettering_subscriptions(self, account: str, region: str) -> list[Subscription]:
        """The subscriptions of an account's region whose own dead letters, or whose deliveries, go to a queue."""
        keys: list[str] = []
        for prefix in self._prefixes(account, region):
            by_target = await self._of_topics.keys_by_category(prefix)
            keys += [key for target_keys in by_target.values() for key in target_keys]
        return [
            *await self._values(SUBSCRIPTION, keys),
            *await self._subscriptions_elsewhere(account, region),
        ]

    async def _tombstones(self, account: str, region: str) -> list[QueueRecord]:
        """The tombstones of sources of dead letters, which are kept for as long as a message can be."""
        keys: list[str] = []
        for prefix in self._prefixes(account, region):
            by_target = await self._of_deleted.keys_by_category(prefix)
            keys += [key for target_keys in by_target.values() for key in target_keys]
        return await self._values(TOMBSTONE, keys)

    async def origins(self, numbers: Collection[int]) -> dict[int, DeadLetterOrigin]:
        """The queue or the subscription that each number stands or stood for: two reads, and none once remembered."""
        lookups: list[tuple[DocumentKind[Any], str]] = []
        for key in map(number_key, numbers):
            # A number is a backlog's or a queue's: if one of the two is in memory, the other is not looked for.
            kinds: tuple[DocumentKind[Any], ...] = (SUBSCRIPTION_OF_BACKLOG, QUEUE_RECORD)
            kinds_in_memory = [kind for kind in kinds if self._directory.known(kind, key) is not None]
            lookups += [(kind, key) for kind in kinds_in_memory or kinds]
        values = await self._directory.get_each(lookups)
        subscription_keys = {
            number: values.get((SUBSCRIPTION_OF_BACKLOG.name, number_key(number))) for number in numbers
        }
        subscriptions = await self._directory.get_each(
            [(SUBSCRIPTION, key) for key in subscription_keys.values() if key]
        )
        origins = {}
        for number, subscription_key in subscription_keys.items():
            record = values.get((QUEUE_RECORD.name, number_key(number)))
            subscription = (
                subscriptions.get((SUBSCRIPTION.name, subscription_key)) if subscription_key else None
            )
            queue_name = None if record is None or subscription else record.name
            origins[number] = DeadLetterOrigin(queue_name, subscription)
        return origins

    async def scopes(self, account: str = "", after: ResourceName | None = None) -> list[ResourceName]:
        """The first 50 accounts and regions that have queues or topics, in order of keys: names whose `name` is empty.

        Only those of `account`, unless that is empty, and behind the scope `after`. They are looked for again only once a
        queue or a topic has changed: each costs two reads.
        """
        begin = "" if after is None else f"{after.account}/{after.region}/{_AFTER_ALL}"
        if (account, begin) in self._scopes:
            return self._scopes[account, begin]
        prefix = f"{account}/" if account else ""
        changes_before = self._directory.changes
        with_queues, with_topics = [await self._places_with(kind, prefix, begin) for kind in (QUEUE, TOPIC)]
        # In the order of keys, which the next ones are looked for by: `rg-a/` comes before `rg/`.
        scopes = sorted({*with_queues, *with_topics}, key=lambda name: name.key)[:SCOPES_MAX]
        if self._directory.changes == changes_before:  # else they may be out of date already
            if len(self._scopes) >= ACCOUNTS_MAX:
                self._scopes.clear()
            self._scopes[account, begin] = scopes
        return scopes

    async def _places_with(self, kind: DocumentKind[Any], prefix: str, after: str) -> list[ResourceName]:
        """The first scopes that have something of a kind, by a read each."""
        names: list[ResourceName] = []
        while len(names) < SCOPES_MAX and (page := await self._directory.find(kind, prefix, after, 1)):
            names.append(page[0].name._replace(name=""))
            after = f"{names[-1].key}{_AFTER_ALL}"  # behind all others of the same scope
        return names

    async def _subscriptions_elsewhere(self, account: str, region: str) -> Sequence[Subscription]:
        """The subscriptions that an account has at topics of others."""
        remembered_subscriptions = self._elsewhere.get((account, region))
        if remembered_subscriptions is not None:
            return remembered_subscriptions
        changes_before = self._directory.changes
        subscriptions = await self._subscriptions.elsewhere(account, region)
        if self._directory.changes == changes_before:  # else they may be out of date already
            if len(self._elsewhere) >= ACCOUNTS_MAX:
                self._elsewhere.clear()
            self._elsewhere[account, region] = subscriptions
        return subscriptions

    async def _values(self, kind: DocumentKind[Any], keys: Sequence[str]) -> list[Any]:
        values = await self._directory.get_each([(kind, key) for key in keys])
        return [values[kind.name, key] for key in keys if (kind.name, key) in values]


def _target_of_queue(queue: Queue) -> Sequence[str]:
    return () if queue.dead_letter is None else (queue.dead_letter.queue.key,)


def _target_of_subscription(subscription: Subscription) -> Sequence[str]:
    target = subscription.dead_letter or subscription.carries_to
    return () if target is None else (target.key,)


def _target_of_deleted(tombstone: QueueRecord) -> Sequence[str]:
    return () if tombstone.dead_letters_to is None else (tombstone.dead_letters_to.key,)

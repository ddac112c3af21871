"""Topics come and go, with their subscriptions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from redrive.engine.configuration.count_by_key import TopicCounts
from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.kinds import OF_ARCHIVE, SERVING, SUBSCRIPTION, TOPIC, of_account
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.subscriptions import Subscriptions
from redrive.engine.ports import Clock, DocumentStore
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.names import ResourceName, number_key
from redrive.model.topic import Topic

# Subscriptions removed in one transaction, 4 changes each: 20 ms of SQLite's, in which nobody else has a turn.
REMOVED_AT_ONCE: Final = 500


class Topics:
    """The topics of all accounts and regions.

    Verbs that end with `_in` change what a draft holds; the others write at once.
    """

    def __init__(
        self,
        store: DocumentStore,
        directory: Directory,
        queues: Queues,
        subscriptions: Subscriptions,
        clock: Clock,
    ) -> None:
        self._store = store
        self._directory = directory
        self._queues = queues
        self.subscriptions = subscriptions
        self._clock = clock

    def known(self, name: ResourceName) -> Topic | None:
        """The topic if this node remembers it, without waiting."""
        return self._directory.known(TOPIC, name.key)

    async def get(self, name: ResourceName) -> Topic | None:
        """The topic of that name."""
        return await self._directory.get(TOPIC, name.key)

    async def get_stored(self, name: ResourceName) -> Topic | None:
        """As `get`, from the store: an answer "it exists already" must not rest on this node's memory."""
        return await self._directory.get_stored(TOPIC, name.key)

    async def of_archive(self, number: int) -> Topic | None:
        """The ordered topic of that number, under which its archive is."""
        key = await self._directory.get(OF_ARCHIVE, number_key(number))
        return None if key is None else await self.get(ResourceName.from_key(key))

    async def find(self, beginning: ResourceName, after: str = "", limit: int | None = None) -> list[Topic]:
        """Topics of an account's region whose name begins so, by name, beginning after the key `after`."""
        return await self._directory.find(TOPIC, beginning.key, after, limit)

    async def of_account(
        self, account: str, region: str = "", after: str = "", limit: int | None = None
    ) -> list[Topic]:
        """Topics of an account, of one region or of all, by key, beginning after the key `after`."""
        return await self._directory.find(TOPIC, of_account(account, region), after, limit)

    async def count(self, account: str, region: str) -> TopicCounts:
        """The number of topics of an account's region."""
        return await self.subscriptions.numbers.topics(account, region)

    async def all_after(self, key: str, limit: int | None = None) -> list[Topic]:
        """Topics of all accounts, by key."""
        return await self._directory.find(TOPIC, "", key, limit)

    async def create(self, new_topic: Topic) -> Topic:
        """Make a topic; its `id` and `created_at` are assigned here.

        Raises:
            AlreadyExists: There is one of that name.
        """
        return await self._directory.transact(lambda draft: self.create_in(draft, new_topic))

    async def get_in(self, draft: Draft, name: ResourceName) -> Topic | None:
        """The topic of that name; the draft is only written if it is still the same, or still absent, then."""
        return await draft.get(TOPIC, name.key)

    async def create_in(self, draft: Draft, new_topic: Topic) -> Topic:
        """Create a topic in a draft; its id and time are assigned here. See `create`."""
        if await draft.get(TOPIC, new_topic.name.key) is not None:
            raise AlreadyExists(new_topic.name.key)
        topic = replace(new_topic, id=await self._store.new_id(), created_at=self._clock.now())
        draft.put(TOPIC, topic.name.key, topic)
        if topic.ordered:
            draft.put(OF_ARCHIVE, number_key(topic.id), topic.name.key)
        return topic

    def require_none_in(self, draft: Draft, beginning: ResourceName) -> None:
        """Write the draft only if no topic's name begins so afterwards."""
        draft.require_none(TOPIC, beginning.key)

    async def update(self, name: ResourceName, change: Callable[[Topic], Topic]) -> Topic:
        """Change a topic; raises NotFound if there is none of that name."""
        return await self._directory.transact(lambda draft: self.update_in(draft, name, change))

    async def update_in(self, draft: Draft, name: ResourceName, change: Callable[[Topic], Topic]) -> Topic:
        """See `update`."""
        current = await draft.get(TOPIC, name.key)
        if current is None:
            raise NotFound(f"{TOPIC.name} {name.key}")
        return draft.change(TOPIC, name.key, current, change)

    async def delete(self, topic: Topic) -> None:
        """Delete a topic with its subscriptions; deliveries that are still to be made to them are dropped.

        Of more subscriptions than `REMOVED_AT_ONCE` some go before, so many in a transaction. The topic goes with the
        last of them: a deletion that was cut short can be repeated, and no subscription ever stands without its topic.
        """
        while not await self._directory.transact(lambda draft: self.delete_in(draft, topic)):
            pass

    async def delete_in(self, draft: Draft, topic: Topic) -> bool:
        """Delete a topic and its subscriptions in a draft; False: there are more, so another draft has to go on."""
        current = await draft.get(TOPIC, topic.name.key)
        if current is None or current.id != topic.id:
            return True
        prefix = f"{topic.name.key}/"
        subscriptions = await draft.find(SUBSCRIPTION, prefix, REMOVED_AT_ONCE)
        served_keys = {key for key, _ in await draft.find(SERVING, prefix)}
        for key, subscription in subscriptions:
            if key in served_keys:
                await self.subscriptions.delete_in(draft, subscription)
            else:
                await self.subscriptions.remove_in(draft, subscription)
        if len(subscriptions) == REMOVED_AT_ONCE:
            return False
        draft.require_none(SUBSCRIPTION, prefix)
        draft.remove(TOPIC, topic.name.key)
        if topic.ordered:
            draft.remove(OF_ARCHIVE, number_key(topic.id))
            self._queues.mark_deleted(draft, topic.id, topic.name._replace(name=f"archive:{topic.id}"))
        return True

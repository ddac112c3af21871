"""The access keys of a store."""

from collections.abc import Sequence
from dataclasses import replace

from redrive.access.keys import AccessKey
from redrive.engine.ports import Clock, Put, Remove, Store

KIND = "access_key"
#: Keys of users: the account's own are kept apart, since a reset leaves them.
USER_KIND = "iam_access_key"

# A key is accepted for so long without asking the store again: one look-up in five seconds costs a busy caller
# nothing, and a key that was taken away (by another process, which nobody is told of) is refused soon enough.
REMEMBERED_MS = 5_000


class Keyring:
    """Finds, adds and removes access keys."""

    def __init__(self, store: Store, clock: Clock, unkept: Sequence[AccessKey] = ()) -> None:
        """Keep keys in this store.

        Args:
            store: Where keys are kept.
            clock: Says how long ago the store was asked.
            unkept: Keys that are accepted besides, for as long as this process runs.
        """
        self._unkept = {key.access_key_id: key for key in unkept}
        self._store = store
        self._clock = clock
        self._known: dict[str, tuple[int, AccessKey]] = {}

    async def get(self, access_key_id: str) -> AccessKey | None:
        """The key of that id if it is an account's own, and not a user's; see `find`."""
        key = await self.find(access_key_id)
        return None if key is None or key.user else key

    async def find(self, access_key_id: str) -> AccessKey | None:
        """The key of that id, as it was at most `REMEMBERED_MS` ago; None where there is none or it is inactive."""
        if access_key_id in self._unkept:
            return self._unkept[access_key_id]
        now = self._clock.now()
        known = self._known.get(access_key_id)
        if known is None or now - known[0] >= REMEMBERED_MS:
            resource = await self._store.get(KIND, access_key_id)
            if resource is None:
                resource = await self._store.get(USER_KIND, access_key_id)
            if resource is None:
                self._known.pop(access_key_id, None)
                return None
            known = self._known[access_key_id] = (now, AccessKey.from_document(resource.document))
        return known[1] if known[1].active else None

    async def add(self, key: AccessKey) -> None:
        """Keep a new key."""
        await self._store.write([Put(USER_KIND if key.user else KIND, key.access_key_id, key.to_document())])

    async def put(self, key: AccessKey) -> None:
        """Keep a key whether there is one of that id or not; one that is the same stays as it is."""
        kind = USER_KIND if key.user else KIND
        stored = await self._store.get(kind, key.access_key_id)
        if stored is not None:
            stored_key = AccessKey.from_document(stored.document)
            if stored_key == replace(key, created_at=stored_key.created_at):
                return
        version = 0 if stored is None else stored.version
        await self._store.write([Put(kind, key.access_key_id, key.to_document(), version)])
        self._known.pop(key.access_key_id, None)

    async def remove(self, access_key_id: str) -> bool:
        """Forget a key; whether it was there."""
        self.forget(access_key_id)
        removed = await self._store.write([Remove(kind, access_key_id) for kind in (KIND, USER_KIND)])
        return any(removed)

    def forget(self, access_key_id: str) -> None:
        """Ask the store when the key is used next."""
        self._known.pop(access_key_id, None)

    async def all(self) -> list[AccessKey]:
        """Every key, by its id: the accounts' own, and then those of users."""
        resources = [*await self._store.find(KIND, ""), *await self._store.find(USER_KIND, "")]
        return [AccessKey.from_document(each.document) for each in resources]

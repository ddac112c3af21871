"""Access keys: the id a caller shows, the secret it signs with, and the account both belong to."""

import contextlib
import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.engine.ports import Clock, DocumentKind, Put, Remove, Require, Resource, Store
from redrive.model.document import Document
from redrive.model.errors import Conflict

ACCOUNT_DIGITS: Final = 12
# The account of a key id that names none, where nothing is verified.
ANY_ACCOUNT: Final = "0" * ACCOUNT_DIGITS

_ID_PREFIX: Final = "AKIA"  # what AWS gives a key that does not expire
_ID_ALPHABET: Final = string.ascii_uppercase + "234567"  # base 32
_ID_RANDOM_CHARS: Final = 16
_SECRET_ALPHABET: Final = string.ascii_letters + string.digits + "+/"  # base 64
_SECRET_CHARS: Final = 40
_CHOSEN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_CHOSEN_SECRET: Final = re.compile(r"[!-~]{1,128}")
#: A secret that is shorter can be guessed.
SECRET_CHARS_MIN: Final = 16


@dataclass(frozen=True, slots=True)
class AccessKey(Document):
    """One key of one account."""

    access_key_id: str  # `AKIA` and sixteen base-32 characters; public
    # Forty base-64 characters; signatures are checked with it, so it is kept whole, and never shown.
    secret: str = field(repr=False)
    account: str  # Twelve digits
    created_at: int  # ms
    active: bool = True  # Whether requests signed with it are accepted
    # The name of the user whose it is; empty: the account's own, which may do all that the account may.
    user: str = ""


def is_account(text: str) -> bool:
    """True if a text is an account id: twelve digits."""
    return len(text) == ACCOUNT_DIGITS and text.isascii() and text.isdigit()


def new_access_key(account: str, now: int, rng: random.Random) -> AccessKey:
    """Make a random key. `rng` must be unpredictable: production passes a `SystemRandom`.

    Raises:
        ValueError: The account is not twelve digits.
    """
    if not is_account(account):
        raise ValueError(f"An account is {ACCOUNT_DIGITS} digits, not {account!r}")
    return AccessKey(
        access_key_id=_ID_PREFIX + "".join(rng.choices(_ID_ALPHABET, k=_ID_RANDOM_CHARS)),
        secret="".join(rng.choices(_SECRET_ALPHABET, k=_SECRET_CHARS)),
        account=account,
        created_at=now,
    )


def chosen_access_key(account: str, access_key_id: str, secret: str, now: int) -> AccessKey:
    """Make a key with a chosen id and secret.

    Raises:
        ValueError: The account is not twelve digits, or the id or the secret cannot be signed with.
    """
    if not is_account(account):
        raise ValueError(f"An account is {ACCOUNT_DIGITS} digits, not {account!r}")
    if not _CHOSEN_ID.fullmatch(access_key_id):
        raise ValueError("An access key id has 1 to 128 letters, digits, hyphens and underscores")
    if not _CHOSEN_SECRET.fullmatch(secret):
        raise ValueError("A secret has 1 to 128 characters of ASCII, and no spaces")
    return AccessKey(access_key_id, secret, account, now)


def account_of_key_id(access_key_id: str) -> str:
    """The account of a request where nothing is verified: the key id itself if it is an account, or ANY_ACCOUNT."""
    return access_key_id if is_account(access_key_id) else ANY_ACCOUNT


# The access keys of a store.

KIND = "access_key"
#: Keys of users: the account's own are kept apart, since a reset leaves them.
USER_KIND = "iam_access_key"

# A key is accepted for so long without asking the store again: one look-up in five seconds costs a busy caller
# nothing, and a key that was taken away (by another process, which nobody is told of) is refused soon enough.
REMEMBERED_MS = 5_000


@dataclass(frozen=True, slots=True)
class KeyUse(Document):
    """The last use of a key."""

    at: int  # ms
    service: str  # Signing name (`sqs`); `redrive`: its own routes; `azure` and `console` as they are called
    region: str  # That the call was signed for; empty: none


KEY_USE: Final = DocumentKind.of("access_key_use", KeyUse)
# A stored use is at most so much older than the real one; a crash forgets no more.
USE_WRITTEN_MS: Final = 10 * 60_000
_WRITTEN_AT_ONCE: Final = 100


class KeyUses:
    """Last uses of keys: noted in memory by each call, and written to the store seldom."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Know nothing yet; uses are written to `store`, beside the keys."""
        self._store = store
        self._clock = clock
        self._latest: dict[str, tuple[int, str, str]] = {}  # the fields of a KeyUse
        self._written: dict[str, int] = {}  # Times of the uses that are in the store

    def note(self, access_key_id: str, service: str, region: str = "") -> None:
        """A call that was signed with this key was accepted: on the path of every call, so it is no more than this."""
        self._latest[access_key_id] = self._clock.now(), service, region

    async def of(self, key_ids: Sequence[str]) -> dict[str, KeyUse]:
        """The last use of each of these keys that was ever used: here, or as far as nodes have written it."""
        resources = await self._store.get_each([(KEY_USE.name, key_id) for key_id in key_ids])
        uses = {each.key: KeyUse.from_document(each.document) for each in resources}
        for key_id in key_ids:
            latest = self._latest.get(key_id)
            if latest is not None and (key_id not in uses or latest[0] > uses[key_id].at):
                uses[key_id] = KeyUse(*latest)
        return uses

    async def write(self, behind_ms: int = USE_WRITTEN_MS) -> None:
        """Write the uses that the store is behind by so much, or has none of."""
        latest = [(key_id, KeyUse(*fields)) for key_id, fields in self._latest.items()]
        due = [(key_id, use) for key_id, use in latest if self._is_due(key_id, use.at, behind_ms)]
        for start in range(0, len(due), _WRITTEN_AT_ONCE):
            await self._write_each(dict(due[start : start + _WRITTEN_AT_ONCE]), behind_ms)

    def _is_due(self, key_id: str, at: int, behind_ms: int) -> bool:
        written = self._written.get(key_id)
        return written is None or at - written >= max(1, behind_ms)

    async def _write_each(self, uses: Mapping[str, KeyUse], behind_ms: int) -> None:
        """Write the uses of keys that still exist, unless another node has written a later one."""
        kinds = KIND, USER_KIND, KEY_USE.name
        resources = await self._store.get_each([(kind, key_id) for key_id in uses for kind in kinds])
        stored = {(each.kind, each.key): each for each in resources}
        for key_id, use in uses.items():
            key = stored.get((KIND, key_id)) or stored.get((USER_KIND, key_id))
            stored_use = stored.get((KEY_USE.name, key_id))
            self._written[key_id] = 0 if stored_use is None else stored_use.document["at"]
            if key is None:
                self.forget(key_id)
            elif self._is_due(key_id, use.at, behind_ms):  # no other node was quicker
                await self._put(key, use, 0 if stored_use is None else stored_use.version)

    async def _put(self, key: Resource, use: KeyUse, version: int) -> None:
        """Write a use, unless its key is changed at this moment: then it is written the next time."""
        put = Put(KEY_USE.name, key.key, use.to_document(), version)
        with contextlib.suppress(Conflict):
            await self._store.write([put, Require(key.kind, key.key, key.version)])
            self._written[key.key] = use.at

    def forget(self, access_key_id: str) -> None:
        """Drop what is known of a key that was removed."""
        self._latest.pop(access_key_id, None)
        self._written.pop(access_key_id, None)


class Keyring:
    """Finds, adds and removes access keys.

    Attributes:
        uses: When each was used last.
    """

    def __init__(
        self, store: Store, clock: Clock, process_keys: Sequence[AccessKey] = (), time: Clock | None = None
    ) -> None:
        """Keep keys in this store, which is asked again by `clock`.

        `process_keys` are accepted too, as long as this process runs. Uses are dated by `time`, the engine's.
        """
        self.uses = KeyUses(store, clock if time is None else time)
        self._process_keys = {key.access_key_id: key for key in process_keys}
        self._store = store
        self._clock = clock
        self._cache: dict[str, tuple[int, AccessKey]] = {}  # with the time that each was read at

    async def get(self, access_key_id: str) -> AccessKey | None:
        """The key of that id if it is an account's own, and not a user's; see `find`."""
        key = await self.find(access_key_id)
        return None if key is None or key.user else key

    async def find(self, access_key_id: str) -> AccessKey | None:
        """The key of that id, as it was at most `REMEMBERED_MS` ago; None if there is none or it is inactive."""
        if access_key_id in self._process_keys:
            return self._process_keys[access_key_id]
        now = self._clock.now()
        read_at, key = self._cache.get(access_key_id, (0, None))
        if key is None or now - read_at >= REMEMBERED_MS:
            resource = await self._store.get(KIND, access_key_id)
            if resource is None:
                resource = await self._store.get(USER_KIND, access_key_id)
            if resource is None:
                self._cache.pop(access_key_id, None)
                return None
            key = AccessKey.from_document(resource.document)
            self._cache[access_key_id] = now, key
        return key if key.active else None

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
        self._cache.pop(key.access_key_id, None)

    async def remove(self, access_key_id: str) -> bool:
        """Remove a key; True if it was there."""
        self.forget(access_key_id)
        self.uses.forget(access_key_id)
        kinds = KIND, USER_KIND, KEY_USE.name
        *removed, _ = await self._store.write([Remove(kind, access_key_id) for kind in kinds])
        return any(removed)

    def forget(self, access_key_id: str) -> None:
        """Drop a key from memory: the store is asked when it is used next."""
        self._cache.pop(access_key_id, None)

    async def all(self) -> list[AccessKey]:
        """Every key, by its id: the accounts' own, and then those of users."""
        resources = [*await self._store.find(KIND, ""), *await self._store.find(USER_KIND, "")]
        return [AccessKey.from_document(each.document) for each in resources]

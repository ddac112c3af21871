"""Access keys: the id a caller shows, the secret it signs with, and the account both belong to."""

import random
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.engine.ports import Clock, Put, Remove, Store
from redrive.model.document import Document

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
        """The key of that id, as it was at most `REMEMBERED_MS` ago; None if there is none or it is inactive."""
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

"""Access keys: the id a caller shows, the secret it signs with, and the account both belong to."""

import random
import re
import string
from dataclasses import dataclass, field
from typing import Final

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
    """One key of one account.

    Attributes:
        access_key_id: `AKIA` and sixteen base-32 characters; public.
        secret: Forty base-64 characters; signatures are checked with it, so it is kept whole, and never shown.
        account: Twelve digits.
        created_at: ms.
        active: Whether requests signed with it are accepted.
        user: The name of the user whose it is; empty: the account's own, which may do all that the account may.
    """

    access_key_id: str
    secret: str = field(repr=False)
    account: str
    created_at: int
    active: bool = True
    user: str = ""


def is_account(text: str) -> bool:
    """True if a text is an account id: twelve digits."""
    return len(text) == ACCOUNT_DIGITS and text.isascii() and text.isdigit()


def new_access_key(account: str, now: int, chance: random.Random) -> AccessKey:
    """Make a key nobody can guess, provided nobody can guess `chance`: production gives a `SystemRandom`.

    Raises:
        ValueError: The account is not twelve digits.
    """
    if not is_account(account):
        raise ValueError(f"An account is {ACCOUNT_DIGITS} digits, not {account!r}")
    return AccessKey(
        access_key_id=_ID_PREFIX + "".join(chance.choices(_ID_ALPHABET, k=_ID_RANDOM_CHARS)),
        secret="".join(chance.choices(_SECRET_ALPHABET, k=_SECRET_CHARS)),
        account=account,
        created_at=now,
    )


def chosen_access_key(account: str, access_key_id: str, secret: str, now: int) -> AccessKey:
    """Make a key with an id and a secret that somebody chose, who knows how well they can be guessed.

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

"""The installation's secret: what callers are handed and hand back is sealed with it, or carries a tag made with it.

32 bytes for all nodes, made by the first that needs them and kept as a document in the store. For each purpose a key of
its own is derived, so that what is sealed for one is nothing to another.

Temporary credentials are made with it: a token says all that there is to know of a session, and is sealed, so that
nothing is kept. The secret of a session follows from the key's id and the installation's secret, so every node knows it,
and the token does not have it. A token is good with the key that it was made with, and with no other.
"""

import hmac
import json
import random
import string
import zlib
from base64 import b32decode, b32encode, b64encode
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from redrive.access.keys import is_account
from redrive.engine.ports import Put, Store
from redrive.model.errors import Conflict

_KIND: Final = "installation_secret"
_KEY: Final = "secret"
_BYTES: Final = 32
_TAG_CHARS: Final = 32  # of hexadecimal: 128 bits

_HYPHEN: Final = "."  # in the place of a hyphen that would come first
_IN_URLS: Final = bytes.maketrans(b"+/", b"-_")
# A star is not a letter of base64, so that no other spelling is read.
_FROM_URLS: Final = bytes.maketrans(b"-_+/", b"+/**")


class InstallationSecret:
    """The secret, and what is made with it."""

    def __init__(self, root: bytes) -> None:
        self._root = root

    def key(self, purpose: str, length: int = _BYTES) -> bytes:
        """The key for a purpose, of 32 bytes or 64."""
        digest = "sha256" if length == _BYTES else "sha512"
        return hmac.digest(self._root, purpose.encode(), digest)

    def tag(self, purpose: str, text: str) -> str:
        """A proof that this installation gave out a text for a purpose."""
        return hmac.digest(self.key(purpose), text.encode(), "sha256").hex()[:_TAG_CHARS]

    def is_tag(self, purpose: str, text: str, tag: str) -> bool:
        """True if it is the text's tag; a wrong one takes as long to compare as the right one."""
        return hmac.compare_digest(self.tag(purpose, text).encode(), tag.encode())


class PurposeSealer:
    """Seals bytes for one purpose: nobody else can read them, and nobody can make or change them.

    AES-256 in SIV mode, which needs no nonce: equal bytes are sealed alike, and what is sealed here always differs by a
    claim's token. It takes 1 µs, and the functions of `base64` would take another for their own checks.
    """

    def __init__(self, secret: InstallationSecret, purpose: str) -> None:
        self._cipher = AESSIV(secret.key(purpose, 64))

    def seal(self, content: bytes) -> str:
        """The content sealed, in the letters of URLs: sixteen bytes longer, then a third.

        It never begins with a hyphen, which command lines would take for an option's (`--receipt-handle -1_5…`).
        """
        sealed = self._cipher.encrypt(content, None)
        text = b2a_base64(sealed, newline=False).translate(_IN_URLS).decode()
        return _HYPHEN + text[1:] if text[0] == "-" else text

    def unseal(self, text: str) -> bytes | None:
        """The content; None for a text that was not sealed here for this purpose."""
        if text[:1] == _HYPHEN:  # nodes of an older version write the hyphen itself
            text = "-" + text[1:]
        try:
            plain = text.encode("ascii").translate(_FROM_URLS)
            sealed = a2b_base64(plain, strict_mode=True)
            if plain[-1:] == b"=" and b2a_base64(sealed, newline=False) != plain:
                return None  # the last letter has bits that mean nothing, and are zero in one spelling alone
            return self._cipher.decrypt(sealed, None)
        except (ValueError, InvalidTag):
            return None


async def installation_secret(store: Store, rng: random.Random) -> InstallationSecret:
    """The installation's secret; made where there is none yet, by an unpredictable `rng` (a `SystemRandom`)."""
    while (resource := await store.get(_KIND, _KEY)) is None:
        document = {"secret": rng.randbytes(_BYTES).hex()}
        try:
            await store.write([Put(_KIND, _KEY, document)])
        except Conflict:
            continue  # another node was faster: its secret counts
    return InstallationSecret(bytes.fromhex(resource.document["secret"]))


_TOKENS: Final = "tokens of sessions"
_SECRETS: Final = "secrets of sessions"
_SECRET_CHARS: Final = 40
_ID_CHARS: Final = 16
_TEMPORARY: Final = "ASIA"
_LASTING: Final = "AKIA"
_ALPHABET: Final = string.ascii_uppercase + "234567"  # base 32
#: Ours are shorter; what is longer is not opened.
TOKEN_CHARS_MAX: Final = 8192
_CLAIMS_BYTES_MAX: Final = 64 * 1024
# An id's first ten characters are fifty bits: one that is set, forty for the account, and the rest are random.
_ACCOUNT_SHIFT: Final = 7
_ACCOUNT_BITS: Final = 0x7FFFFFFFFF80


@dataclass(frozen=True, slots=True)
class Session:
    """A session: whose, and what bounds it."""

    account: str  # Account of the user or the role
    access_key_id: str = ""  # The key that it is used with
    issued_at: int = 0  # ms
    expires_at: int = 0  # ms
    user: str = ""  # The user's name; empty: it is a role's, or the account's own
    role: str = ""  # The role's ARN; empty: it is a user's, or the account's own
    unique_id: str = ""  # Unique id of the user or the role: it changes when one is created anew
    name: str = ""  # The session's, of a role's
    source_identity: str = ""  # Source identity; empty: none was set
    tags: Mapping[str, str] = field(default_factory=dict)  # Session tags
    transitive: tuple[str, ...] = ()  # The names of the tags that sessions begun from this one have as well
    policies: tuple[str, ...] = ()  # The texts of session policies
    policy_arns: tuple[str, ...] = ()  # The managed policies that are session policies besides
    # The name of the federated user that a user, or the account, lets in; empty: the session is no federated user's.
    federated: str = ""

    @classmethod
    def from_claims(cls, claims: Mapping[str, Any]) -> Self:
        """The session of what a token says."""
        lists = {name: tuple(claims[name]) for name in ("transitive", "policies", "policy_arns")}
        return cls(**{**claims, **lists})


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key, its secret, and the token that goes along with them."""

    access_key_id: str  # `ASIA` and sixteen characters
    secret: str = field(repr=False)  # Forty characters
    token: str = field(repr=False)  # Goes along with each request
    expires_at: int  # ms


class SessionTokens:
    """Makes tokens and reads them."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._secret = secret
        self._sealer = PurposeSealer(secret, _TOKENS)

    def issue(self, session: Session) -> Credentials:
        """The credentials of a session."""
        claims = zlib.compress(json.dumps(asdict(session), separators=(",", ":")).encode(), 9)
        key_id = session.access_key_id
        return Credentials(key_id, self.secret(key_id), self._sealer.seal(claims), session.expires_at)

    def read(self, access_key_id: str, token: str) -> Session | None:
        """The session of a token that was made for this key; None for any other text."""
        if len(token) > TOKEN_CHARS_MAX or not is_temporary(access_key_id):
            return None
        sealed = self._sealer.unseal(token)
        if sealed is None:
            return None
        session = Session.from_claims(json.loads(zlib.decompress(sealed, bufsize=_CLAIMS_BYTES_MAX)))
        return session if session.access_key_id == access_key_id else None

    def secret(self, access_key_id: str) -> str:
        """The secret of a temporary key."""
        digest = self._secret.key(f"{_SECRETS}: {access_key_id}")
        return b64encode(digest).decode()[:_SECRET_CHARS]


def is_temporary(access_key_id: str) -> bool:
    """True if a key is one of a session."""
    return access_key_id.startswith(_TEMPORARY)


def temporary_key_id(account: str, rng: random.Random) -> str:
    """A key id for a session, which holds the account as Amazon's do."""
    return _TEMPORARY + _with_account(account, rng)


def lasting_key_id(account: str, rng: random.Random) -> str:
    """A key id for a user's access key, which holds the account as Amazon's do."""
    return _LASTING + _with_account(account, rng)


def account_in(access_key_id: str) -> str | None:
    """The account that a key id holds; None of a text that is no such id."""
    coded = access_key_id[len(_TEMPORARY) :]
    if len(coded) != _ID_CHARS or set(coded) - set(_ALPHABET):
        return None
    number = int.from_bytes(b32decode(coded)[:6], "big")  # the others are random
    account = str((number & _ACCOUNT_BITS) >> _ACCOUNT_SHIFT).zfill(12)
    return account if is_account(account) else None


def _with_account(account: str, rng: random.Random) -> str:
    head = (1 << 47) | (int(account) << _ACCOUNT_SHIFT) | rng.getrandbits(_ACCOUNT_SHIFT)
    return b32encode(head.to_bytes(6, "big") + rng.randbytes(4)).decode()

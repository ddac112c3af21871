"""The installation's secret: what callers are handed and hand back is sealed with it, or carries a tag made with it.

32 bytes for all nodes, made by the first that needs them and kept as a document in the store. For each purpose a key of
its own is derived, so that what is sealed for one is nothing to another.
"""

import hmac
import random
from binascii import a2b_base64, b2a_base64
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

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
        """True if it is the text's tag, told in the same time for any."""
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
    """The installation's secret; made where there is none yet.

    Args:
        store: Where it is kept.
        rng: Must be unpredictable: production passes a `SystemRandom`.
    """
    while (resource := await store.get(_KIND, _KEY)) is None:
        document = {"secret": rng.randbytes(_BYTES).hex()}
        try:
            await store.write([Put(_KIND, _KEY, document)])
        except Conflict:
            continue  # another node was faster: its secret counts
    return InstallationSecret(bytes.fromhex(resource.document["secret"]))

"""Signatures of notifications, made once for all subscribers, and tokens of links to unsubscribe.

A subscription's ARN proves nothing: it stands in lists, in logs and in every message. A link's token proves that this
server sent it.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from redrive.access.secret import InstallationSecret
from redrive.access.signing_pair import SigningPair

_PURPOSE: Final = "unsubscribe links"


class UnsubscribeTokens:
    """The tokens of links; nothing of them is kept."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._secret = secret

    def token(self, subscription: str) -> str:
        """The token for a subscription's ARN."""
        return self._secret.tag(_PURPOSE, subscription)

    def proves(self, subscription: str, token: str) -> bool:
        """True if a token is that ARN's."""
        return self._secret.is_tag(_PURPOSE, subscription, token)


_DIGESTS: Final = {"1": "sha1", "2": "sha256"}
_THREADS: Final = 2
# 344 characters each, 2 MiB with their keys; a fan-out takes a moment, not an hour.
_REMEMBERED_MAX: Final = 4096


class Signer:
    """Signs by PKCS #1 1.5, as SNS does.

    A signature is a matter of the text alone, so its digest is what it is remembered by: subscribers of one message
    share it, and one that gets another text (`MessageStructure=json`) gets its own.
    """

    def __init__(self, pair: SigningPair) -> None:
        self._pair = pair
        self._made: OrderedDict[bytes, str] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Future[str]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="redrive-sign")

    def sign_now(self, text: str, version: str) -> str:
        """The signature in base 64; keeps its caller for about 0.2 ms when it has to be made.

        Args:
            text: What is signed.
            version: `1` for SHA-1, `2` for SHA-256.
        """
        digest = _digest(text, version)
        return self._remembered(digest) or self._remember(digest, self._sign(digest, version))

    def signature(self, text: str, version: str) -> str | None:
        """The signature, if it is remembered."""
        return self._remembered(_digest(text, version))

    async def sign(self, text: str, version: str) -> str:
        """The same in a thread, where OpenSSL works without holding up the interpreter."""
        digest = _digest(text, version)
        known = self._remembered(digest)
        if known is not None:
            return known
        making = self._under_way.get(digest)
        if making is None:
            loop = asyncio.get_running_loop()
            making = loop.run_in_executor(self._threads, self._sign, digest, version)
            self._under_way[digest] = making
            making.add_done_callback(lambda _: self._under_way.pop(digest))
        return self._remember(digest, await asyncio.shield(making))  # one who leaves takes it from nobody

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _sign(self, digest: bytes, version: str) -> str:
        return b64encode(self._pair.sign(digest, _DIGESTS[version])).decode()

    def _remembered(self, digest: bytes) -> str | None:
        signature = self._made.get(digest)
        if signature is not None:
            self._made.move_to_end(digest)
        return signature

    def _remember(self, digest: bytes, signature: str) -> str:
        self._made[digest] = signature
        if len(self._made) > _REMEMBERED_MAX:
            self._made.popitem(last=False)
        return signature


def _digest(text: str, version: str) -> bytes:
    """The digest that is signed; the two versions' differ in length, so it tells them apart as well."""
    return hashlib.new(_DIGESTS[version], text.encode(), usedforsecurity=False).digest()


# ---- the certificate that subscribers check notifications by ---------------------------------------------------------

_NAME_HEX: Final = 32
PATH_BEGINNING: Final = "/SimpleNotificationService-"


def certificate_path(pair: SigningPair) -> str:
    """The path: `/SimpleNotificationService-<32 hex digits of the certificate's own digest>.pem`."""
    return f"{PATH_BEGINNING}{hashlib.sha256(pair.pem).hexdigest()[:_NAME_HEX]}.pem"

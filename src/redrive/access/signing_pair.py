"""The installation's key pair: notifications and webhooks' tokens are signed with it, and others check them.

One pair for all nodes, made by the first that needs it and kept as a document in the store, the key in PEM and
readable: who can read the store can sign in this server's name. The certificate signs itself; who checks by it trusts
it because of where it was fetched from.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from redrive.engine.ports import Put, Store
from redrive.model.errors import Conflict

if TYPE_CHECKING:  # see `SigningPair.key`
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_KIND: Final = "sns_signing_pair"  # stores have it under this name from when notifications alone were signed
_KEY: Final = "signer"


@dataclass(frozen=True)
class SigningPair:
    """A key and its certificate."""

    key_pem: bytes  # The key: 2,048 bits of RSA
    pem: bytes  # The certificate

    @cached_property
    def key(self) -> "RSAPrivateKey":
        """The key, read when something is first signed: OpenSSL checks it for 20 ms of a processor.

        Raises:
            TypeError: It is another kind of key.
        """
        from redrive.access.key_pairs import read_key  # noqa: PLC0415 - X.509: 20 ms, for servers that sign alone

        return read_key(self.key_pem)

    @cached_property
    def made_at(self) -> int:
        """The moment it was made (ms, to the second), when the installation's store was first opened."""
        from redrive.access.key_pairs import made_at  # noqa: PLC0415 - as above

        return made_at(self.pem)

    def sign(self, digest: bytes, algorithm: str) -> bytes:
        """The signature of a digest, by PKCS #1 1.5; `algorithm` is what hashlib calls that which made the digest."""
        from redrive.access.key_pairs import sign  # noqa: PLC0415 - as above

        return sign(self.key, digest, algorithm)

    def to_document(self) -> dict[str, str]:
        """The pair as a JSON-ready document."""
        return {"key": self.key_pem.decode(), "certificate": self.pem.decode()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        return cls(document["key"].encode(), document["certificate"].encode())


def make_pair(now: int) -> SigningPair:
    """A fresh pair, valid from now on (ms); takes 30 to 300 ms.

    The key comes from the system's own source of randomness, in simulations too: a key that can be repeated is none.
    """
    from redrive.access.key_pairs import make_key_and_certificate  # noqa: PLC0415 - as above

    return SigningPair(*make_key_and_certificate(now))


async def signing_pair(store: Store, now: int) -> SigningPair:
    """The installation's pair; made where there is none yet, valid from `now` (ms)."""
    while (resource := await store.get(_KIND, _KEY)) is None:
        pair = await asyncio.to_thread(make_pair, now)
        try:
            await store.write([Put(_KIND, _KEY, pair.to_document())])
        except Conflict:
            continue  # another node was faster: its pair counts
    return SigningPair.from_document(resource.document)

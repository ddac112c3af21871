"""The installation's key pair: notifications and webhooks' tokens are signed with it, and others check them.

One pair for all nodes, made by the first that needs it and kept as a document in the store, the key in PEM and
readable: who can read the store can sign in this server's name. The certificate signs itself; who checks by it trusts
it because of where it was fetched from.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from redrive.engine.ports import Put, Store
from redrive.model.errors import Conflict

_KIND: Final = "sns_signing_pair"  # stores have it under this name from when notifications alone were signed
_KEY: Final = "signer"
_KEY_BITS: Final = 2048
# Nothing renews it, and subscribers that look at it look at the key alone.
_VALID: Final = timedelta(days=3650)
_BACKDATED: Final = timedelta(days=1)  # the clocks of a team's machines differ


@dataclass(frozen=True, slots=True)
class SigningPair:
    """A key and its certificate.

    Attributes:
        key: 2,048 bits of RSA.
        pem: The certificate.
    """

    key: rsa.RSAPrivateKey
    pem: bytes

    def to_document(self) -> dict[str, str]:
        """The pair as a JSON-ready document."""
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        key = self.key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
        return {"key": key.decode(), "certificate": self.pem.decode()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back.

        Raises:
            TypeError: The document holds another kind of key.
        """
        key = serialization.load_pem_private_key(document["key"].encode(), password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError("The installation's key has to be an RSA key")
        return cls(key, document["certificate"].encode())


def make_pair(now: int) -> SigningPair:
    """A fresh pair, valid from now on (ms); takes 30 to 300 ms.

    The key comes from the system's own source of randomness, in simulations too: a key that can be repeated is none.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Redrive notifications")])
    instant = datetime.fromtimestamp(now // 1000, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(instant - _BACKDATED)
        .not_valid_after(instant + _VALID)
        .sign(key, hashes.SHA256())
    )
    return SigningPair(key, certificate.public_bytes(serialization.Encoding.PEM))


async def signing_pair(store: Store, now: int) -> SigningPair:
    """The installation's pair; made where there is none yet.

    Args:
        store: Where it is kept.
        now: ms, for a pair that has to be made.
    """
    while (resource := await store.get(_KIND, _KEY)) is None:
        pair = await asyncio.to_thread(make_pair, now)
        try:
            await store.write([Put(_KIND, _KEY, pair.to_document())])
        except Conflict:
            continue  # another node was faster: its pair counts
    return SigningPair.from_document(resource.document)

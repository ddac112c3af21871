"""Keys of RSA, the certificates that they sign themselves, and what else they sign."""

from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.x509.oid import NameOID

_KEY_BITS: Final = 2048
_ALGORITHMS: Final = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256()}  # noqa: S303 - what SNS's version 1 is
# Nothing renews it, and subscribers that look at it look at the key alone.
_VALID: Final = timedelta(days=3650)
_BACKDATED: Final = timedelta(days=1)  # the clocks of a team's machines differ


def make_key_and_certificate(now: int) -> tuple[bytes, bytes]:
    """A fresh key and its certificate, valid from now on (ms)."""
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
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    text = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return text, certificate.public_bytes(encoding)


def made_at(certificate: bytes) -> int:
    """The moment (ms, to the second) at which `make_key_and_certificate` made a certificate."""
    began = x509.load_pem_x509_certificate(certificate).not_valid_before_utc
    return round((began + _BACKDATED).timestamp()) * 1000


def read_key(text: bytes) -> rsa.RSAPrivateKey:
    """The key in a PEM; raises TypeError if it is another kind of key."""
    key = serialization.load_pem_private_key(text, password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("The installation's key has to be an RSA key")
    return key


def sign(key: rsa.RSAPrivateKey, digest: bytes, algorithm: str) -> bytes:
    """See `SigningPair.sign`."""
    return key.sign(digest, PKCS1v15(), Prehashed(_ALGORITHMS[algorithm]))

"""RSA and elliptic curves: new private keys, encryption, signatures, public keys."""

from collections.abc import Callable, Mapping
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)

from redrive.aws.kit.offloading import offload
from redrive.aws.kms.errors import bad_ciphertext, not_valid
from redrive.aws.kms.material import SYMMETRIC_BYTES, Materials

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

CURVES: Final[Mapping[str, Callable[[], ec.EllipticCurve]]] = {
    "ECC_NIST_P256": ec.SECP256R1,
    "ECC_NIST_P384": ec.SECP384R1,
    "ECC_NIST_P521": ec.SECP521R1,
    "ECC_SECG_P256K1": ec.SECP256K1,
}
#: As long as the digest, which is what RFC 2104 recommends.
MAC_BYTES: Final = {"HMAC_224": 28, "HMAC_256": 32, "HMAC_384": 48, "HMAC_512": 64}
_PUBLIC_EXPONENT: Final = 65_537
_EXPONENT_END: Final = 1 << 64
_Digest = Callable[[], hashes.HashAlgorithm]
_OAEP: Final[Mapping[str, _Digest]] = {"RSAES_OAEP_SHA_1": hashes.SHA1, "RSAES_OAEP_SHA_256": hashes.SHA256}
_DIGESTS: Final[Mapping[str, _Digest]] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
#: The size of their digests; the padding takes twice as much, and two bytes (RFC 8017, 7.1.1).
_OAEP_DIGEST_BYTES: Final = {"RSAES_OAEP_SHA_1": 20, "RSAES_OAEP_SHA_256": 32}


async def new_material(spec: str, materials: Materials, account: str) -> bytes:
    """The content of a new key: its bytes, or a private key in PKCS #8."""
    if spec in MAC_BYTES:
        return materials.random_bytes(MAC_BYTES[spec])
    if spec == "SYMMETRIC_DEFAULT":
        return materials.random_bytes(SYMMETRIC_BYTES)
    return to_der(await new_private_key(spec, account))


async def new_private_key(spec: str, account: str) -> PrivateKey:
    """A new private key. One of RSA takes up to a second, beside the event loop, one at a time per account.

    Raises:
        AwsError: Too much work of the account is waiting.
    """
    if spec in CURVES:
        return ec.generate_private_key(CURVES[spec]())
    bits = int(spec.removeprefix("RSA_"))
    return await offload(account, lambda: rsa.generate_private_key(_PUBLIC_EXPONENT, bits))


def to_der(private_key: PrivateKey) -> bytes:
    """A private key in PKCS #8, DER."""
    return private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def load(content: bytes) -> PrivateKeyTypes:
    """A private key of its bytes (PKCS #8), which were created here, or checked at their import.

    The check of an RSA key of 4,096 bits would block the server for 250 ms; loading takes 0.01 ms.

    Raises:
        ValueError: The bytes are no private key.
    """
    return load_der_private_key(content, None, unsafe_skip_rsa_key_validation=True)


def is_consistent(private: rsa.RSAPrivateKey, bits: int) -> bool:
    """True if the numbers of an imported key are consistent; each prime has one Fermat test (20 ms)."""
    numbers = private.private_numbers()  # n, e, p, q and d are named as in RFC 8017
    n, e = numbers.public_numbers.n, numbers.public_numbers.e
    p, q, d = numbers.p, numbers.q, numbers.d
    if n.bit_length() != bits or p * q != n or not all(each > 1 and each % 2 for each in (p, q, d, e)):
        return False
    return (
        e < _EXPONENT_END
        and d < n
        and all(d * e % (prime - 1) == 1 and pow(2, prime - 1, prime) == 1 for prime in (p, q))
        # The exponents and the coefficient by which two primes are computed with one by one.
        and (numbers.dmp1, numbers.dmq1, numbers.iqmp * q % p) == (d % (p - 1), d % (q - 1), 1)
    )


def encrypt(content: bytes, algorithm: str, plaintext: bytes) -> bytes:
    """Encrypt with the public half of a private RSA key.

    Raises:
        AwsError: `ValidationException`: the plaintext is longer than the key allows.
    """
    try:
        return _rsa(content).public_key().encrypt(plaintext, _oaep(algorithm))
    except ValueError:
        size = _rsa(content).key_size // 8
        bytes_max = size - 2 * _OAEP_DIGEST_BYTES[algorithm] - 2
        raise not_valid(
            f"Algorithm {algorithm} and key spec RSA_{size * 8} cannot encrypt data larger than {bytes_max} bytes."
        ) from None


def decrypt(content: bytes, algorithm: str, blob: bytes) -> bytes:
    """The plaintext; raises AwsError (`InvalidCiphertextException`)."""
    try:
        return _rsa(content).decrypt(blob, _oaep(algorithm))
    except ValueError:
        raise bad_ciphertext() from None


def sign(content: bytes, algorithm: str, message: bytes, *, is_digest: bool) -> bytes:
    """A signature by a private key (PKCS #8), of a message or of its digest.

    Raises:
        AwsError: `ValidationException`: the digest does not have the length of the algorithm.
    """
    private = load(content)
    digest = _digest(algorithm, message, is_digest=is_digest)
    if isinstance(private, ec.EllipticCurvePrivateKey):
        return private.sign(message, ec.ECDSA(digest))
    if isinstance(private, rsa.RSAPrivateKey):
        return private.sign(message, _signature_padding(algorithm), digest)
    raise TypeError(f"no key that signs: {type(private)}")


def is_signature(
    content: bytes, algorithm: str, message: bytes, signature: bytes, *, is_digest: bool
) -> bool:
    """True if a signature is that of a message; see `sign`."""
    private = load(content)
    digest = _digest(algorithm, message, is_digest=is_digest)
    try:
        if isinstance(private, ec.EllipticCurvePrivateKey):
            private.public_key().verify(signature, message, ec.ECDSA(digest))
        elif isinstance(private, rsa.RSAPrivateKey):
            private.public_key().verify(signature, message, _signature_padding(algorithm), digest)
        else:
            raise TypeError(f"no key that signs: {type(private)}")
    except InvalidSignature:
        return False
    return True


def shared_secret(content: bytes, other: bytes) -> bytes:
    """The shared secret of a private key and another public key (SubjectPublicKeyInfo, DER): the x coordinate.

    Raises:
        AwsError: `ValidationException` without a text (recorded): the other is no public key of the same curve.
    """
    private_key = load(content)
    if not isinstance(private_key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"no key that agrees: {type(private_key)}")
    try:
        public_key = load_der_public_key(other)
        if not isinstance(public_key, ec.EllipticCurvePublicKey):
            raise not_valid("")
        return private_key.exchange(ec.ECDH(), public_key)
    except (ValueError, UnsupportedAlgorithm):
        raise not_valid("") from None


def public_key(content: bytes) -> bytes:
    """The public half: SubjectPublicKeyInfo, DER."""
    private = load(content)
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise TypeError(f"no key that has a public half: {type(private)}")
    return private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _rsa(content: bytes) -> rsa.RSAPrivateKey:
    private = load(content)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise TypeError(f"no key that encrypts: {type(private)}")
    return private


def _oaep(algorithm: str) -> padding.OAEP:
    digest = _OAEP[algorithm]
    return padding.OAEP(padding.MGF1(digest()), digest(), None)


def _digest(algorithm: str, message: bytes, *, is_digest: bool) -> hashes.HashAlgorithm | Prehashed:
    """The hash that a signature is made of; `is_digest`: the message is hashed already. Raises AwsError."""
    digest: hashes.HashAlgorithm = _DIGESTS[algorithm[-3:]]()
    if not is_digest:
        return digest
    if len(message) != digest.digest_size:
        raise not_valid("Digest is invalid length for algorithm " + algorithm + ".")
    return Prehashed(digest)


def _signature_padding(algorithm: str) -> padding.AsymmetricPadding:
    if "PKCS1" in algorithm:
        return padding.PKCS1v15()
    digest = _DIGESTS[algorithm[-3:]]()
    return padding.PSS(padding.MGF1(digest), digest.digest_size)

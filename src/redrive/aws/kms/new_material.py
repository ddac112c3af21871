"""Making material: random bytes for symmetric and HMAC keys, a private key for RSA and elliptic curves."""

from collections.abc import Callable, Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from redrive.aws.kit.offloading import offload
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


async def new_material(spec: str, materials: Materials, account: str) -> bytes:
    """The bytes of a new key: of symmetric ones themselves, of private ones in PKCS #8."""
    if spec in MAC_BYTES:
        return materials.random_bytes(MAC_BYTES[spec])
    if spec == "SYMMETRIC_DEFAULT":
        return materials.random_bytes(SYMMETRIC_BYTES)
    return written(await new_private_key(spec, account))


async def new_private_key(spec: str, account: str) -> PrivateKey:
    """A private key. One of RSA takes up to a second of a processor, beside the event loop, one at a time for an account.

    Raises:
        AwsError: Too much of the account's work waits already.
    """
    if spec in CURVES:
        return ec.generate_private_key(CURVES[spec]())
    bits = int(spec.removeprefix("RSA_"))
    return await offload(account, lambda: rsa.generate_private_key(_PUBLIC_EXPONENT, bits))


def written(private_key: PrivateKey) -> bytes:
    """A private key in PKCS #8, DER."""
    return private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

"""Key specs: the kinds of keys there are, their purposes, and the algorithms of each.

"Key spec reference", KMS developer guide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ENCRYPTS: Final = "ENCRYPT_DECRYPT"
SIGNS: Final = "SIGN_VERIFY"
MACS: Final = "GENERATE_VERIFY_MAC"
AGREES: Final = "KEY_AGREEMENT"

ECDH: Final = "ECDH"
SYMMETRIC: Final = "SYMMETRIC_DEFAULT"
_RSA_ENCRYPTION: Final = ("RSAES_OAEP_SHA_1", "RSAES_OAEP_SHA_256")
_RSA_SIGNING: Final = (
    *("RSASSA_PKCS1_V1_5_SHA_256", "RSASSA_PKCS1_V1_5_SHA_384", "RSASSA_PKCS1_V1_5_SHA_512"),
    *("RSASSA_PSS_SHA_256", "RSASSA_PSS_SHA_384", "RSASSA_PSS_SHA_512"),
)


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A kind of key."""

    algorithms: Mapping[str, tuple[str, ...]]  # By the purpose that a key of the kind may have
    usage: str = ""  # The purpose of a key whose maker names none; empty if one must be named


_RSA: Final = KeySpec({ENCRYPTS: _RSA_ENCRYPTION, SIGNS: _RSA_SIGNING})

SPECS: Final[Mapping[str, KeySpec]] = {
    SYMMETRIC: KeySpec({ENCRYPTS: (SYMMETRIC,)}, ENCRYPTS),
    **dict.fromkeys(("RSA_2048", "RSA_3072", "RSA_4096"), _RSA),
    "ECC_NIST_P256": KeySpec({SIGNS: ("ECDSA_SHA_256",), AGREES: (ECDH,)}),
    "ECC_NIST_P384": KeySpec({SIGNS: ("ECDSA_SHA_384",), AGREES: (ECDH,)}),
    "ECC_NIST_P521": KeySpec({SIGNS: ("ECDSA_SHA_512",), AGREES: (ECDH,)}),
    "ECC_SECG_P256K1": KeySpec({SIGNS: ("ECDSA_SHA_256",)}),
    **{f"HMAC_{bits}": KeySpec({MACS: (f"HMAC_SHA_{bits}",)}) for bits in (224, 256, 384, 512)},
}

#: The member of KeyMetadata that lists the algorithms of a key, by its purpose.
ALGORITHM_MEMBERS: Final = {
    ENCRYPTS: "EncryptionAlgorithms",
    SIGNS: "SigningAlgorithms",
    MACS: "MacAlgorithms",
    AGREES: "KeyAgreementAlgorithms",
}


def algorithms_of(spec: str, usage: str) -> tuple[str, ...]:
    """The algorithms of a key."""
    return SPECS[spec].algorithms[usage]

"""Documents of KMS: keys with their wrapped material, aliases and grants; and the kinds of keys there are.

"Key spec reference", KMS developer guide.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

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
#: The member of KeyMetadata that lists the algorithms of a key, by its purpose.
ALGORITHM_MEMBERS: Final = {
    ENCRYPTS: "EncryptionAlgorithms",
    SIGNS: "SigningAlgorithms",
    MACS: "MacAlgorithms",
    AGREES: "KeyAgreementAlgorithms",
}
ENABLED: Final = "Enabled"
DISABLED: Final = "Disabled"
PENDING_DELETION: Final = "PendingDeletion"
PENDING_IMPORT: Final = "PendingImport"
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A kind of key."""

    algorithms: Mapping[str, tuple[str, ...]]  # By the possible purposes of a key
    usage: str = ""  # The default purpose; empty: a request has to name one


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


def algorithms_of(spec: str, usage: str) -> tuple[str, ...]:
    """The algorithms of a key."""
    return SPECS[spec].algorithms[usage]


@dataclass(frozen=True, slots=True)
class Material:
    """One generation of a key's material."""

    id: str  # 64 hexadecimal digits
    sealed: Mapping[str, str]  # The bytes, sealed by the root key; see `material.Materials`
    created_at: int  # When the key began to use it (ms)
    rotation: str = ""  # The rotation that brought it: `AUTOMATIC`, `ON_DEMAND`; empty for a key's first
    expires_at: int | None = None  # For imported material: when it is deleted (ms); None: never
    description: str = ""  # Its owner's description of imported material


def _materials(rows: list[dict[str, Any]]) -> tuple[Material, ...]:
    return tuple(Material(**row) for row in rows)


@dataclass(frozen=True, slots=True)
class KmsKey(Document):
    """A key."""

    restored: ClassVar = {
        "name": ResourceName._make,
        "materials": _materials,
        "replica_regions": tuple,
        "pending": lambda row: Material(**row),
    }

    name: ResourceName  # Account, region and key id
    created_at: int  # ms
    spec: str  # `SYMMETRIC_DEFAULT`, `RSA_2048` …
    usage: str  # `ENCRYPT_DECRYPT`, `SIGN_VERIFY` or `GENERATE_VERIFY_MAC`
    policy: str  # The text of the key policy
    # All generations, the newest last; empty while it waits for an import.
    materials: tuple[Material, ...] = ()
    manager: str = "CUSTOMER"  # `CUSTOMER`, or `AWS` for those behind `alias/aws/…`
    origin: str = "AWS_KMS"  # `AWS_KMS`, or `EXTERNAL` for imported material
    description: str = ""  # Free text
    enabled: bool = True  # False while it is disabled
    deletion_at: int | None = None  # When it is deleted (ms), if that is scheduled
    deletion_days: int = 0  # The requested waiting period
    rotation_days: int | None = None  # The period of automatic rotation; None: there is none
    rotates_at: int | None = None  # When it is rotated next (ms)
    primary_region: str = ""  # Region of the primary of a multi-Region key; empty for other keys
    replica_regions: tuple[str, ...] = ()  # Regions of the replicas of a multi-Region primary
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels
    # The id of imported material, which may be imported again after its deletion.
    imported_id: str = ""
    pending: Material | None = None  # Imported material that the next rotation on demand makes current

    @property
    def id(self) -> str:
        """The key id: a UUID, or `mrk-` and 32 hexadecimal digits."""
        return self.name.name

    @property
    def arn(self) -> str:
        """The ARN."""
        return key_arn(self.name)

    @property
    def symmetric(self) -> bool:
        """True if it encrypts by AES-256-GCM, as rotation and data keys require."""
        return self.spec == "SYMMETRIC_DEFAULT"

    @property
    def current(self) -> Material:
        """The material that encrypts now."""
        return self.materials[-1]

    def state(self, now: int) -> str:
        """The key's state at a moment (ms), in KMS's words."""
        if self.deletion_at is not None:
            return PENDING_DELETION
        if not self.materials or self.has_expired(now):
            return PENDING_IMPORT
        return ENABLED if self.enabled else DISABLED

    def has_expired(self, now: int) -> bool:
        """True if imported material has expired."""
        return any(
            material.expires_at is not None and material.expires_at <= now for material in self.materials
        )


def key_arn(name: ResourceName) -> str:
    """The ARN of the key of a name."""
    return f"arn:aws:kms:{name.region}:{name.account}:key/{name.name}"


@dataclass(frozen=True, slots=True)
class KeyAlias(Document):
    """Another name for a key, which may later be that of another key."""

    restored: ClassVar = {"name": ResourceName._make}

    name: ResourceName  # Account, region, and the alias: `alias/…`
    key_id: str  # The id of its key, of the same account and region
    created_at: int  # ms
    updated_at: int  # When it was given to another key last (ms)

    @property
    def arn(self) -> str:
        """The ARN."""
        return alias_arn(self.name)


def alias_arn(name: ResourceName) -> str:
    """The ARN of the alias of a name."""
    return f"arn:aws:kms:{name.region}:{name.account}:{name.name}"


@dataclass(frozen=True, slots=True)
class Grant(Document):
    """A permission to use a key, besides its policy."""

    restored: ClassVar = {"key": ResourceName._make, "operations": tuple}

    id: str  # 64 hexadecimal digits
    key: ResourceName  # Account, region and id of the key
    grantee: str  # The ARN of the principal that has the permission
    operations: tuple[str, ...]  # Allowed operations: `Decrypt`, `GenerateDataKey` …
    issuer: str  # The ARN of the account that granted it
    created_at: int  # ms
    token: str  # Proves the grant
    # The ARN of the principal that may retire it; empty: only a grantee with that operation may.
    retirer: str = ""
    name: str = ""  # Free; a repeated creation with the same name and parameters is the same grant
    context_equals: Mapping[str, str] | None = None  # The encryption context must be this
    context_subset: Mapping[str, str] | None = None  # The encryption context must have these pairs


KEY: Final = DocumentKind.of("kms_key", KmsKey)
ALIAS: Final = DocumentKind.of("kms_alias", KeyAlias)
GRANT: Final = DocumentKind.of("kms_grant", Grant)

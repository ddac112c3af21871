"""Documents of S3: buckets, objects, and uploads in parts. The contents of objects are blobs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Self

from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document

DIALECT: Final = "s3"  # of deliveries that are notifications
TO_DESTINATION: Final = "s3.notification"  # their endpoint


class Segment(NamedTuple):
    """A blob that holds a part of an object's content, and its size."""

    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: its name is unique on a server."""

    name: str  # As it was given
    account: str  # Its owner
    region: str  # Region of the bucket
    created_at: int  # ms
    policy: str = ""  # Its text; empty: it has none
    tags: Mapping[str, str] = field(default_factory=dict)  # By their keys
    # Its four settings by their names; empty: it has none.
    public_access_block: Mapping[str, bool] = field(default_factory=dict)
    # Rules for its events: see `redrive.aws.s3.notifications.rules`.
    notifications: Mapping[str, Any] = field(default_factory=dict)

    def blocks(self, setting: str) -> bool:
        """True if its block of public access has a setting (`BlockPublicPolicy`) on."""
        return bool(self.public_access_block.get(setting))

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:s3:::{self.name}"


@dataclass(frozen=True, slots=True)
class WithHeaders(Unremembered):
    """The headers of an object, or of an upload, which the object then has."""

    # Those that the API has members for, by the members' names: `ContentType`, `CacheControl` …
    headers: Mapping[str, str]
    metadata: Mapping[str, str]  # The caller's own headers, by name


@dataclass(frozen=True, slots=True)
class ObjectRecord(WithHeaders):
    """An object, without its content."""

    key: str  # Key within its bucket
    etag: str  # Without quotes: the MD5 of the content, or of its parts' MD5s and their number
    modified_at: int  # ms
    segments: tuple[Segment, ...]  # Segments of its content, in order
    parts: int = 0  # The number of parts of its upload; 0: it was not uploaded in parts
    # In base64, by the names of the API: `ChecksumCRC32` …
    checksums: Mapping[str, str] = field(default_factory=dict)
    checksum_type: str = "FULL_OBJECT"  # `FULL_OBJECT` or `COMPOSITE`
    tags: Mapping[str, str] = field(default_factory=dict)  # By their keys

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return sum(segment.size for segment in self.segments)

    @property
    def blobs(self) -> list[str]:
        """The blobs of its content."""
        return [segment.blob for segment in self.segments]

    def to_document(self) -> dict[str, Any]:
        """The object as a JSON-ready document."""
        return asdict(self) | {"segments": [list(segment) for segment in self.segments]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        segments = tuple(Segment(*each) for each in document["segments"])
        return cls(**{**document, "segments": segments})


@dataclass(frozen=True, slots=True)
class Upload(WithHeaders):
    """An unfinished upload in parts."""

    bucket: str  # Bucket of the future object
    key: str  # Key of the future object
    id: str  # Upload id
    begun_at: int  # ms
    algorithm: str = ""  # Checksum algorithm of its parts: `CRC32` …; empty: none
    checksum_type: str = "COMPOSITE"  # Checksum type of the object
    replaced: int = 0  # The number of times that a part replaced another


@dataclass(frozen=True, slots=True)
class UploadPart(Document, Unremembered):
    """A part of an upload."""

    restored: ClassVar = {"segment": Segment._make}

    number: int
    etag: str
    modified_at: int
    segment: Segment
    checksums: Mapping[str, str] = field(default_factory=dict)


BUCKET: Final[DocumentKind[Bucket]] = DocumentKind("s3_bucket", asdict, lambda document: Bucket(**document))
OBJECT: Final = DocumentKind.of("s3_object", ObjectRecord)
UPLOAD: Final[DocumentKind[Upload]] = DocumentKind("s3_upload", asdict, lambda document: Upload(**document))
PART: Final = DocumentKind.of("s3_part", UploadPart)


def object_key(bucket: str, key: str) -> str:
    """The key of an object's document; no bucket's name has a slash."""
    return f"{bucket}/{key}"


def upload_key(bucket: str, upload: str) -> str:
    """The key of an upload's document."""
    return f"{bucket}/{upload}"


def part_key(upload: str, number: int) -> str:
    """The key of a part's document: parts are in the order of their numbers."""
    return f"{upload}/{number:05d}"

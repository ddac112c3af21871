"""Checksums of contents: those of requests are verified, stored, and part of answers.

Source: "Checking object integrity in Amazon S3", user guide.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from redrive.aws.s3.documents.errors import error, invalid, not_offered
from redrive.aws.wire.shapes import Structure

FULL_OBJECT: Final = "FULL_OBJECT"
COMPOSITE: Final = "COMPOSITE"
_MEMBER: Final = "Checksum"
_TYPES: Final = {
    "CRC32": (COMPOSITE, FULL_OBJECT),
    "CRC32C": (COMPOSITE, FULL_OBJECT),
    "CRC64NVME": (FULL_OBJECT,),
}
_NOT_CHECKSUMS: Final = frozenset({"ChecksumAlgorithm", "ChecksumMode", "ChecksumType"})


class Checksum(Protocol):
    """A checksum in the making, to which content is added."""

    def update(self, content: bytes, /) -> object:
        """Add some content."""
        ...

    def digest(self) -> bytes:
        """The checksum of all added content."""
        ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, content: bytes) -> None:
        self._value = zlib.crc32(content, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


class _Crc:
    def __init__(self, model: str, size: int) -> None:
        # Loaded on demand: it is compiled code for checksums that few clients send.
        import anycrc  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

        self._crc: Any = anycrc.Model(model)
        self._size = size
        self._value: int | None = None

    def update(self, content: bytes) -> None:
        state = () if self._value is None else (self._value,)
        self._value = self._crc.calc(content, *state)

    def digest(self) -> bytes:
        return (self._value or 0).to_bytes(self._size, "big")  # without content it is 0


_ALGORITHMS: Final[Mapping[str, Callable[[], Checksum]]] = {
    "CRC32": _Crc32,
    "CRC32C": lambda: _Crc("CRC32-ISCSI", 4),
    "CRC64NVME": lambda: _Crc("CRC64-NVME", 8),
    "MD5": lambda: hashlib.md5(usedforsecurity=False),
    "SHA1": lambda: hashlib.sha1(usedforsecurity=False),
    "SHA256": hashlib.sha256,
    "SHA512": hashlib.sha512,
}


def check_algorithm(name: str) -> None:
    """Refuse an unsupported algorithm; raises AwsError (`NotImplemented`)."""
    if name and name not in _ALGORITHMS:
        raise not_offered(f"ChecksumAlgorithm {name}")


def verified_checksums(params: Structure, content: bytes) -> dict[str, str]:
    """The checksums that a request has for its content, after they are verified.

    Raises:
        AwsError: `BadDigest`, `InvalidDigest`, `InvalidRequest` or `NotImplemented`.
    """
    if params.get("ContentMD5") is not None:
        _check_md5(params["ContentMD5"], content)
    checksums = checksums_in(params)
    if len(checksums) > 1:
        raise error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    for member, value in checksums.items():
        algorithm = member.removeprefix(_MEMBER)
        if value != checksum_of(algorithm, [content]):
            text = f"The {algorithm} you specified did not match the calculated checksum."
            raise error("BadDigest", text)
    return checksums


def checksums_in(params: Structure) -> dict[str, str]:
    """The checksums in a request, or in a part that it lists, by their members' names."""
    return {
        name: value
        for name, value in params.items()
        if name.startswith(_MEMBER) and name not in _NOT_CHECKSUMS and value
    }


def checksum_of(algorithm: str, contents: Iterable[bytes]) -> str:
    """The checksum of a content, in base64; raises AwsError (`NotImplemented`)."""
    checksum = new_checksum(algorithm)
    for content in contents:
        checksum.update(content)
    return as_base64(checksum)


def as_base64(checksum: Checksum) -> str:
    """A checksum in base64."""
    return base64.b64encode(checksum.digest()).decode()


def new_checksum(algorithm: str) -> Checksum:
    """A checksum to add content to; raises AwsError (`NotImplemented`)."""
    check_algorithm(algorithm)
    return _ALGORITHMS[algorithm]()


def composite(algorithm: str, checksums: Iterable[str]) -> str:
    """The checksum of the checksums of parts, and their number."""
    digests = [base64.b64decode(checksum) for checksum in checksums]
    return f"{checksum_of(algorithm, digests)}-{len(digests)}"


def etag_of_parts(etags: Iterable[str]) -> str:
    """The entity tag of an object in parts: the MD5 of their MD5s, and their number."""
    digests = [bytes.fromhex(etag) for etag in etags]
    return f"{hashlib.md5(b''.join(digests), usedforsecurity=False).hexdigest()}-{len(digests)}"


def _check_md5(header: str, content: bytes) -> None:
    try:
        digest = base64.b64decode(header, validate=True)
    except ValueError:  # binascii.Error, or text that is not ASCII
        digest = b""
    if len(digest) != hashlib.md5(usedforsecurity=False).digest_size:
        raise error("InvalidDigest", "The Content-MD5 you specified was invalid.", Content_MD5=header)
    if digest != hashlib.md5(content, usedforsecurity=False).digest():
        raise error("BadDigest", "The Content-MD5 you specified did not match what we received.")


def default_type(algorithm: str) -> str:
    """The default type of an algorithm's checksums."""
    return _TYPES.get(algorithm, (COMPOSITE,))[0]


def check_type(algorithm: str, kind: str) -> None:
    """Refuse a type of checksum that an algorithm does not have: only sums of parts can be combined.

    Raises:
        AwsError: `InvalidRequest`.
    """
    if kind not in (FULL_OBJECT, COMPOSITE):
        raise invalid("Value for x-amz-checksum-type header is invalid.")
    if kind not in _TYPES.get(algorithm, (COMPOSITE,)):
        text = f"The {kind} checksum type cannot be used with the {algorithm} checksum algorithm."
        raise error("InvalidRequest", text)

"""Names of buckets and keys of objects, as S3 takes them.

No name of a caller's is a path: the contents of objects lie under names that this server makes up.
"""

import re
from typing import Final

from redrive.aws.s3.documents.errors import error
from redrive.aws.s3.documents.quotas import KEY_BYTES_MAX

_BUCKET: Final = re.compile(
    r"(?=.{3,63}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
)
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_RESERVED: Final = ("xn--", "sthree-"), ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


def check_bucket(name: str) -> None:
    """Refuse a name that no new bucket can have ("Bucket naming rules", user guide).

    Raises:
        AwsError: `InvalidBucketName`.
    """
    beginnings, ends = _RESERVED
    is_reserved = name.startswith(beginnings) or name.endswith(ends)
    if not _BUCKET.fullmatch(name) or _ADDRESS.fullmatch(name) or is_reserved:
        raise error("InvalidBucketName", "The specified bucket is not valid.", BucketName=name)


def check_key(key: str) -> None:
    """Refuse a key that no object can have.

    Raises:
        AwsError: `KeyTooLongError`; `InvalidArgument` for NUL, which no store and no XML can hold.
    """
    size = len(key.encode())
    if size > KEY_BYTES_MAX:
        text = "Your key is too long"
        raise error("KeyTooLongError", text, Size=str(size), MaxSizeAllowed=str(KEY_BYTES_MAX))
    if "\0" in key:
        raise error("InvalidArgument", "A key of Redrive's S3 has no NUL.")


def unquoted(etag: str) -> str:
    """An entity tag without its quotes."""
    return etag.strip().removeprefix("W/").strip('"')

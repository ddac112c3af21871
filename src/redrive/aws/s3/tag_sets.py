"""Tags of buckets and of objects: how requests give them, and which are refused."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from redrive.aws.s3.errors import error
from redrive.aws.wire.shapes import Structure

BUCKET_TAGS_MAX: Final = 50
OBJECT_TAGS_MAX: Final = 10
_KEY_MAX: Final = 128
_VALUE_MAX: Final = 256


def bucket_tags(params: Structure) -> dict[str, str]:
    """The tags that a document gives a bucket.

    Raises:
        AwsError: `InvalidTag`, `BadRequest`.
    """
    return _checked(
        _listed(params), BUCKET_TAGS_MAX, f"Bucket tag count cannot be greater than {BUCKET_TAGS_MAX}"
    )


def object_tags(params: Structure) -> dict[str, str]:
    """The tags that a document, or a header with a query in it, gives an object; see `bucket_tags`."""
    header = params.get("Tagging")
    pairs = parse_qsl(header, keep_blank_values=True) if isinstance(header, str) else _listed(params)
    return _checked(pairs, OBJECT_TAGS_MAX, f"Object tags cannot be greater than {OBJECT_TAGS_MAX}")


def _listed(params: Structure) -> list[tuple[str, str]]:
    tag_set: Sequence[Any] = (params.get("Tagging") or {}).get("TagSet") or ()
    return [(each.get("Key") or "", each.get("Value") or "") for each in tag_set]


def _checked(pairs: Sequence[tuple[str, str]], most: int, too_many: str) -> dict[str, str]:
    tags = dict(pairs)
    if len(tags) < len(pairs):
        raise error("InvalidTag", "Cannot provide multiple Tags with the same key")
    if len(tags) > most:
        raise error("BadRequest", too_many)
    for key, value in tags.items():
        if not 0 < len(key) <= _KEY_MAX or key.lower().startswith("aws:"):
            raise error("InvalidTag", "The TagKey you have provided is invalid", TagKey=key)
        if len(value) > _VALUE_MAX:
            raise error("InvalidTag", "The TagValue you have provided is invalid", TagKey=key)
    return tags

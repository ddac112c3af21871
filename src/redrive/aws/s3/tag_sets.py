"""Tags of buckets and of objects: their form in requests, and which are refused."""

from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl

from redrive.aws.kit.tagging import Tagging
from redrive.aws.s3.documents.errors import error
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

_KEY_MAX: Final = 128
_VALUE_MAX: Final = 256


def _fault(key: str, value: str) -> AwsError | None:
    if not 0 < len(key) <= _KEY_MAX:
        return _reserved(key)
    if len(value) > _VALUE_MAX:
        return error("InvalidTag", "The TagValue you have provided is invalid", TagKey=key)
    return None


def _reserved(key: str) -> AwsError:
    return error("InvalidTag", "The TagKey you have provided is invalid", TagKey=key)


BUCKET_TAGS: Final = Tagging(
    too_many=lambda: error("BadRequest", "Bucket tag count cannot be greater than 50"),
    duplicate=lambda: error("InvalidTag", "Cannot provide multiple Tags with the same key"),
    reserved=_reserved,
    fault=_fault,
)
_OBJECT_TAGS: Final = replace(
    BUCKET_TAGS, too_many=lambda: error("BadRequest", "Object tags cannot be greater than 10"), most=10
)


def bucket_tags(params: Structure) -> dict[str, str]:
    """The tags of a bucket in a request; raises AwsError (`InvalidTag`, `BadRequest`)."""
    return BUCKET_TAGS.read((params.get("Tagging") or {}).get("TagSet"))


def object_tags(params: Structure) -> dict[str, str]:
    """The tags of an object in a request: in a document, or in a header as a query; see `bucket_tags`."""
    tagging = params.get("Tagging") or {}
    if isinstance(tagging, str):
        return _OBJECT_TAGS.checked(parse_qsl(tagging, keep_blank_values=True))
    return _OBJECT_TAGS.read(tagging.get("TagSet"))

"""S3's quotas, and its errors: their codes, texts and statuses, and the translation of the engine's refusals.

Source: "Error responses" of the API reference, and answers recorded of S3.
"""

import logging
from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import translator
from redrive.aws.s3.documents.contents import ContentLost
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import Conflict, StoreUnavailable

_MIB: Final = 1024 * 1024

KEY_BYTES_MAX: Final = 1024
METADATA_BYTES_MAX: Final = 2048
#: Of one request: the bodies that the HTTP front takes.
CONTENT_BYTES_MAX: Final = 16 * _MIB
#: Of one answer, which is held in memory; Amazon has no such bound. Clients read larger objects in ranges.
ANSWER_BYTES_MAX: Final = 64 * _MIB
PART_BYTES_MIN: Final = 5 * _MIB
PARTS_MAX: Final = 10_000
OBJECT_BYTES_MAX: Final = 5 * 1024**4
COPY_BYTES_MAX: Final = 5 * 1024**3
LISTED_MAX: Final = 1000
DELETED_AT_ONCE_MAX: Final = 1000
BUCKETS_MAX: Final = 10_000


logger = logging.getLogger(__name__)


def error(code: str, message: str, status: int = 400, **details: str) -> AwsError:
    """One of S3's errors."""
    return AwsError(code, message, status=status, details=details)


def invalid(message: str, **details: str) -> AwsError:
    """The error for an invalid value."""
    return error("InvalidArgument", message, 400, **details)


def no_bucket(name: str) -> AwsError:
    """The error for a bucket that does not exist."""
    return error("NoSuchBucket", "The specified bucket does not exist", 404, BucketName=name)


def no_key(key: str) -> AwsError:
    """The error for an object that does not exist."""
    return error("NoSuchKey", "The specified key does not exist.", 404, Key=key)


def no_upload(upload: str) -> AwsError:
    """The error for an upload that does not exist (any more)."""
    text = (
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or"
        " completed."
    )
    return error("NoSuchUpload", text, 404, UploadId=upload)


def denied() -> AwsError:
    """The error for an action that the caller has no permission for."""
    return error("AccessDenied", "Access Denied", 403)


def unmet(condition: str) -> AwsError:
    """The error for a condition of the request that does not hold."""
    text = "At least one of the pre-conditions you specified did not hold"
    return error("PreconditionFailed", text, 412, Condition=condition)


def too_large(size: int, bytes_max: int) -> AwsError:
    """The error for more bytes than one request or answer may have."""
    text = "Your proposed upload exceeds the maximum allowed size"
    return error("EntityTooLarge", text, ProposedSize=str(size), MaxSizeAllowed=str(bytes_max))


def not_offered(parameter: str) -> AwsError:
    """The error for a parameter that this server would have to ignore."""
    return error("NotImplemented", f"Redrive does not offer the parameter {parameter} of S3.", 501)


def aborted() -> AwsError:
    """The error for a change that conflicts with a concurrent one."""
    text = "A conflicting conditional operation is currently in progress against this resource. Please try again."
    return error("OperationAborted", text, 409)


def _content_lost(lost: ContentLost) -> AwsError:
    logger.error("s3.content_lost file=%s: an object refers to it, but it is not in the blob store", lost)
    text = "The operation is not valid for the object's state: its content is not in the blob store any more."
    return error("InvalidObjectState", text, 403)


translated: Final = translator(
    (Conflict, lambda _: aborted()),
    (ContentLost, _content_lost),
    (StoreUnavailable, lambda _: error("ServiceUnavailable", "Service is unable to handle request.", 503)),
)


PAGES: Final = Pages(
    "s3",
    lambda _: invalid("The continuation token provided is incorrect", ArgumentName="continuation-token"),
    size=BUCKETS_MAX,
    size_max=BUCKETS_MAX,
    size_refusal=lambda _: invalid(
        f"Argument max-buckets must be an integer between 1 and {BUCKETS_MAX}", ArgumentName="max-buckets"
    ),
)

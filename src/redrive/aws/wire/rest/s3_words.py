"""The words of S3 on the wire that its model lacks: the roots of its documents, and the errors of what stands before it.

Sources: the API reference of S3 ("Error responses", and the response syntax of each operation), and Smithy's model.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from redrive.aws.wire.errors import AwsError

ROOTS: Final[Mapping[str, str]] = {
    "CompleteMultipartUpload": "CompleteMultipartUploadResult",
    "CreateMultipartUpload": "InitiateMultipartUploadResult",
    "DeleteObjects": "DeleteResult",
    "GetBucketAccelerateConfiguration": "AccelerateConfiguration",
    "GetBucketAcl": "AccessControlPolicy",
    "GetBucketLogging": "BucketLoggingStatus",
    "GetBucketRequestPayment": "RequestPaymentConfiguration",
    "GetBucketTagging": "Tagging",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetObjectTagging": "Tagging",
    "ListBuckets": "ListAllMyBucketsResult",
    "ListMultipartUploads": "ListMultipartUploadsResult",
    "ListObjects": "ListBucketResult",
    "ListObjectsV2": "ListBucketResult",
    "ListParts": "ListPartsResult",
}
"""The root of a document, where it is not called as its shape is."""

UNWRAPPED: Final = frozenset({"GetBucketLocation"})
"""The operations whose document is their one member."""


class _Error(NamedTuple):
    code: str
    status: int
    message: str = ""


#: Errors of the front that all services share, by their codes, in the words of S3.
_OF_FRONT: Final[Mapping[str, _Error]] = {
    "AccessDeniedException": _Error("AccessDenied", 403),
    "IncompleteSignatureException": _Error("AuthorizationHeaderMalformed", 400),
    "InternalFailure": _Error("InternalError", 500, "We encountered an internal error. Please try again."),
    "InvalidSignatureException": _Error("SignatureDoesNotMatch", 403),
    "MissingAuthenticationTokenException": _Error("AccessDenied", 403, "Access Denied"),
    "SerializationException": _Error("InvalidArgument", 400),
    "UnknownOperationException": _Error("NotImplemented", 501),
    "UnrecognizedClientException": _Error(
        "InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records."
    ),
}


def in_words_of_s3(error: AwsError) -> AwsError:
    """An error as S3 says it."""
    s3_form = _OF_FRONT.get(error.code)
    if s3_form is None:
        return error
    text = s3_form.message or error.message or "Invalid Argument"
    return AwsError(s3_form.code, text, status=s3_form.status, sender=error.sender, details=error.details)

"""Reasons of failures, as CloudFormation words those of its handlers."""

from typing import Final

from redrive.aws.kit.service import service_of
from redrive.aws.wire.errors import AwsError

_CODES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("AlreadyExists", ("AlreadyExists", "ConflictException", "QueueNameExists", "BucketAlreadyExists")),
    ("NotFound", ("NotFound", "NoSuch", "NonExistent", "DoesNotExist")),
    ("AccessDenied", ("AccessDenied", "AuthorizationError", "NotAuthorized")),
    ("ServiceLimitExceeded", ("LimitExceeded",)),
    ("Throttling", ("Throttl", "TooManyRequests")),
)
_SERVER_FAULT: Final = 500


def reason_of(service: str, error: AwsError, request_id: str, token: str) -> str:
    """The reason of a resource's failure.

    Args:
        service: Botocore's name; empty where no service was asked.
        error: As it refused.
        request_id: Of the call.
        token: Of the attempt.
    """
    if not service:
        return error.message
    text = error.message or error.code
    sentence = f"{text} (Service: {service_of(service).title}, Status Code: {error.status}, Request ID: {request_id})"
    return f'Resource handler returned message: "{sentence}" (RequestToken: {token}, HandlerErrorCode: {_code(error)})'


def _code(error: AwsError) -> str:
    for code, parts in _CODES:
        if any(part in error.code for part in parts):
            return code
    return "GeneralServiceException" if error.status >= _SERVER_FAULT else "InvalidRequest"

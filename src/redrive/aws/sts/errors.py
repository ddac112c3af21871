"""STS's errors, in the words that were recorded."""

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service


def error(code: str, message: str) -> AwsError:
    """One of STS's errors; see `Service.error`."""
    return Service.load("sts").error(code, message)


def invalid(message: str) -> AwsError:
    """A parameter's value is not acceptable."""
    return common("ValidationException", message)


def denied(principal: str, action: str, arn: str) -> AwsError:
    """The error for an action that the caller has no permission for; also for a role that does not exist."""
    return common(
        "AccessDeniedException",
        f"User: {principal} is not authorized to perform: {action} on resource: {arn}",
    )

"""The errors of STS, with the texts that were recorded."""

from typing import Final

from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.wire.errors import AwsError, common

error: Final = errors_of("sts")


def invalid(message: str) -> AwsError:
    """The error for an invalid value of a parameter."""
    return common("ValidationException", message)


def denied(principal: str, action: str, arn: str) -> AwsError:
    """The error for an action that the caller has no permission for; also for a role that does not exist."""
    return common("AccessDeniedException", not_authorized(principal, action, arn))


translated: Final = translator()

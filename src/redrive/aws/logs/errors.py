"""CloudWatch Logs' errors: the recorded texts, and what the engine's refusals are called here."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError, StoreUnavailable


def error(code: str, message: str) -> AwsError:
    """One of Logs' errors; see `Service.error`."""
    return Service.load("logs").error(code, message)


def invalid(message: str) -> AwsError:
    """A parameter is not acceptable."""
    return error("InvalidParameterException", message)


def no_such_group() -> AwsError:
    """The group is not there."""
    return error("ResourceNotFoundException", "The specified log group does not exist.")


def no_such_stream() -> AwsError:
    """The stream is not there."""
    return error("ResourceNotFoundException", "The specified log stream does not exist.")


def invalid_token() -> AwsError:
    """The token is none that was given out here."""
    return invalid("The specified nextToken is invalid.")


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that Logs has for it."""
    if isinstance(refusal, StoreUnavailable):
        return common("ServiceUnavailableException", "The service cannot complete the request.")
    raise refusal


PAGES: Final = Pages("logs", lambda _: invalid_token(), size=50)

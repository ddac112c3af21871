"""CloudWatch Logs' errors: the recorded texts, and what the engine's refusals are called here."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.wire.errors import AwsError, common
from redrive.model.errors import StoreUnavailable

error: Final = errors_of("logs")


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
    """This server did not issue the token."""
    return invalid("The specified nextToken is invalid.")


translated: Final = translator(
    (
        StoreUnavailable,
        lambda _: common("ServiceUnavailableException", "The service cannot complete the request."),
    )
)


PAGES: Final = Pages("logs", lambda _: invalid_token(), size=50)

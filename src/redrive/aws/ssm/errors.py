"""The errors of Systems Manager."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.wire.errors import AwsError, common

error: Final = errors_of("ssm")


def invalid(text: str) -> AwsError:
    """The error for an invalid parameter of a request."""
    return common("ValidationException", text)


def not_found() -> AwsError:
    """The error for a parameter that does not exist; it has no text."""
    return error("ParameterNotFound", "")


translated: Final = translator()


PAGES: Final = Pages(
    "ssm", lambda _: error("InvalidNextToken", "The specified token isn't valid."), size=10, size_max=50
)

"""The errors of Systems Manager, in its own words."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError


def error(code: str, text: str) -> AwsError:
    """One of the service's own errors."""
    return Service.load("ssm").error(code, text)


def invalid(text: str) -> AwsError:
    """The refusal of what a caller gave."""
    return common("ValidationException", text)


def not_found() -> AwsError:
    """The refusal for a parameter that is not there, which has no text."""
    return error("ParameterNotFound", "")


def translated(refusal: RedriveError) -> AwsError:
    """Of the engine nothing is asked that it refuses."""
    raise refusal


PAGES: Final = Pages(
    "ssm", lambda _: error("InvalidNextToken", "The specified token isn't valid."), size=10, size_max=50
)

"""CloudWatch's errors: the texts it answers with, and what the engine's refusals are called here."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError, StoreUnavailable


def error(code: str, message: str = "") -> AwsError:
    """One of CloudWatch's errors; see `Service.error`."""
    return Service.load("cloudwatch").error(code, message)


def invalid(message: str) -> AwsError:
    """A value is not acceptable."""
    return error("InvalidParameterValueException", message)


def invalid_value(parameter: str, value: object) -> AwsError:
    """A value is not acceptable, in the form used where nothing more is to be said."""
    return invalid(f"The value {value} for parameter {parameter} is invalid.")


def combination(message: str) -> AwsError:
    """Parameters do not go together."""
    return error("InvalidParameterCombinationException", message)


def exclusive(one: str, other: str) -> AwsError:
    """Only one of two parameters may be given."""
    return combination(
        f"The parameters {one} and {other} are mutually exclusive and you have specified both."
    )


def missing(message: str) -> AwsError:
    """A parameter must be given."""
    return error("MissingRequiredParameterException", message)


def unreadable(message: str) -> AwsError:
    """GetMetricData's and PutMetricAlarm's answer to most of what is wrong."""
    return common("ValidationException", message)


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that CloudWatch has for it."""
    if isinstance(refusal, StoreUnavailable):
        return common("ServiceUnavailableException", "Service is unavailable. Please try again.")
    raise refusal


PAGES: Final = Pages("cloudwatch", lambda _: error("InvalidNextToken", "The nextToken is invalid."))

"""CloudWatch's errors: the texts it answers with, and what the engine's refusals are called here."""

from functools import partial
from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.wire.errors import AwsError, common

error: Final = errors_of("cloudwatch")


#: A value is not acceptable.
invalid: Final = partial(error, "InvalidParameterValueException")
#: Parameters do not go together.
combination: Final = partial(error, "InvalidParameterCombinationException")
#: A parameter must be given.
missing: Final = partial(error, "MissingRequiredParameterException")
#: GetMetricData's and PutMetricAlarm's answer to most of what is wrong.
unreadable: Final = partial(common, "ValidationException")
translated: Final = translator()
PAGES: Final = Pages("cloudwatch", lambda _: error("InvalidNextToken", "The nextToken is invalid."))


def invalid_value(parameter: str, value: object) -> AwsError:
    """A value is not acceptable, in the form used where nothing more is to be said."""
    return invalid(f"The value {value} for parameter {parameter} is invalid.")


def exclusive(one: str, other: str) -> AwsError:
    """Only one of two parameters may be given."""
    return combination(
        f"The parameters {one} and {other} are mutually exclusive and you have specified both."
    )

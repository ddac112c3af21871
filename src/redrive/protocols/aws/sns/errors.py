"""SNS's errors: the texts it answers with, and what the engine's refusals are called here.

A text marked "chosen" was never seen on the wire; the others were.
"""

from redrive.model.errors import NotFound, RedriveError, StoreUnavailable
from redrive.protocols.aws.wire.errors import AwsError, common
from redrive.protocols.aws.wire.service import Service


class AttributeRefused(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """An attribute's value is not acceptable, as `InvalidParameter` says it after its opening."""


def error(code: str, message: str) -> AwsError:
    """One of SNS's errors, by the code that clients see; see `Service.error`."""
    return Service.load("sns").error(code, message)


def invalid(message: str) -> AwsError:
    """A parameter is not acceptable: `InvalidParameter`, with its usual opening."""
    return error("InvalidParameter", f"Invalid parameter: {message}")


def missing(parameter: str) -> AwsError:
    """A parameter must be given."""
    return invalid(f"{parameter} Reason: no value for required parameter")


def no_such(what: str) -> AwsError:
    """A topic, subscription, endpoint … is not there."""
    return error("NotFound", f"{what} does not exist")


def denied(principal: str, action: str, resource: str) -> AwsError:
    """The caller may not."""
    return error(
        "AuthorizationError",
        f"User: {principal} is not authorized to perform: SNS:{action} on resource: {resource}"
        f" because no resource-based policy allows the SNS:{action} action",
    )


def refused_at_creation(refusal: AttributeRefused) -> AwsError:
    """How an operation that takes all attributes at once says that one of them is not acceptable."""
    return invalid(f"Attributes Reason: {refusal}")


def refused_alone(refusal: AttributeRefused) -> AwsError:
    """How an operation that takes one attribute says that it is not acceptable."""
    return invalid(str(refusal))


def translated(refusal: RedriveError) -> AwsError:
    """What a refusal of the engine is called here."""
    if isinstance(refusal, NotFound):
        return no_such("Topic")
    if isinstance(refusal, StoreUnavailable):
        return common("ServiceUnavailableException", "Service is unavailable. Please try again.")
    raise refusal

"""SNS's errors: their texts, and the translation of the engine's refusals.

A text marked "chosen" was never seen on the wire; the others were.
"""

from typing import Final

from redrive.access.policy import NOT_ALLOWED, Decision
from redrive.aws.encryption import refusals
from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import KeyUnusable, NotFound, RedriveError, StoreUnavailable


class AttributeRefused(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """An attribute's value is not acceptable, as `InvalidParameter` says it after its opening."""


def error(code: str, message: str) -> AwsError:
    """One of SNS's errors, by the code that clients see; see `Service.error`."""
    return Service.load("sns").error(code, message)


def invalid(message: str) -> AwsError:
    """`InvalidParameter` with its usual opening."""
    return error("InvalidParameter", f"Invalid parameter: {message}")


def missing(parameter: str) -> AwsError:
    """The error for a parameter that is missing."""
    return invalid(f"{parameter} Reason: no value for required parameter")


def no_such(what: str) -> AwsError:
    """The error for a topic, subscription, endpoint … that does not exist."""
    return error("NotFound", f"{what} does not exist")


def denied(principal: str, action: str, resource: str, decision: Decision = NOT_ALLOWED) -> AwsError:
    """The error for an action that the caller has no permission for."""
    return error(
        "AuthorizationError",
        f"User: {principal} is not authorized to perform: SNS:{action} on resource: {resource}"
        f" {decision.reason(f'SNS:{action}')}",
    )


def refused_at_creation(refusal: AttributeRefused) -> AwsError:
    """The error of an operation that takes all attributes at once, for one that is not acceptable."""
    return invalid(f"Attributes Reason: {refusal}")


def refused_alone(refusal: AttributeRefused) -> AwsError:
    """The error of an operation that takes one attribute, where that is not acceptable."""
    return invalid(str(refusal))


def key_refused(refused: KeyUnusable, request_id: str = "") -> AwsError:
    """The error for a message whose topic's key cannot be used, or not by the caller."""
    return error(refusals.words(refused).sns, refusals.text(refused, request_id))


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that SNS has for it."""
    if isinstance(refusal, NotFound):
        return no_such("Topic")
    if isinstance(refusal, KeyUnusable):
        return key_refused(refusal)
    if isinstance(refusal, StoreUnavailable):
        return common("ServiceUnavailableException", "Service is unavailable. Please try again.")
    raise refusal


PAGES: Final = Pages(
    "sns",
    lambda token: invalid(f"NextToken Reason: {token} is not a token of this list"),  # chosen
)

"""SNS's errors: their texts, and the translation of the engine's refusals.

A text marked "chosen" was never seen on the wire; the others were.
"""

from typing import Final

from redrive.access.policy import NOT_ALLOWED, Decision
from redrive.aws.encryption import refusals
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import KeyUnusable, NotFound, RedriveError


class AttributeRefused(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """An attribute's value is not acceptable, as `InvalidParameter` says it after its opening."""


error: Final = errors_of("sns")


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
    action = f"SNS:{action}"
    text = not_authorized(principal, action, resource, decision.reason(action))
    return error("AuthorizationError", text)


def attributes_error(refusal: AttributeRefused) -> AwsError:
    """The error of an operation that takes all attributes at once, for one that is not acceptable."""
    return invalid(f"Attributes Reason: {refusal}")


def attribute_error(refusal: AttributeRefused) -> AwsError:
    """The error of an operation that takes one attribute, where that is not acceptable."""
    return invalid(str(refusal))


def key_error(refused: KeyUnusable, request_id: str = "") -> AwsError:
    """The error for a message whose topic's key cannot be used, or not by the caller."""
    return error(refusals.words(refused).sns, refusals.text(refused, request_id))


translated: Final = translator(
    (NotFound, lambda _: no_such("Topic")),
    (KeyUnusable, key_error),
)


PAGES: Final = Pages(
    "sns",
    lambda token: invalid(f"NextToken Reason: {token} is not a token of this list"),  # chosen
)

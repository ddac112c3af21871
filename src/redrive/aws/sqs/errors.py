"""SQS's errors: their texts, and the translation of the engine's refusals."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from redrive.access.policy import Decision
from redrive.aws.encryption import refusals
from redrive.aws.kit.call import Call
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import (
    InFlightLimit,
    KeyUnusable,
    NotFound,
    StoreUnavailable,
    TaskActive,
)

error: Final = errors_of("sqs")


def no_such_queue() -> AwsError:
    """The error for a queue that does not exist."""
    return error(
        "QueueDoesNotExist",
        "The specified queue does not exist.",
        "The specified queue does not exist for this wsdl version.",
    )


def invalid(parameter: str, value: object, reason: str) -> AwsError:
    """The error for an invalid value of a parameter, in the form that SQS uses for nearly all of them."""
    return error(
        "InvalidParameterValueException",
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}",
    )


def missing(parameter: str) -> AwsError:
    """The error for a parameter that is missing."""
    return error("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")


def denied(principal: str, action: str, arn: str, decision: Decision) -> AwsError:
    """The error for an action that the caller has no permission for."""
    action = action.lower()
    text = not_authorized(principal, action, arn, decision.reason(action))
    return error("AccessDeniedException", text)


def key_error(refused: KeyUnusable, request_id: str = "") -> AwsError:
    """The error for a message whose key cannot be used, or not by the caller."""
    return error(refusals.words(refused).sqs, refusals.text(refused, request_id))


@contextmanager
def key_refusals(call: Call) -> Iterator[None]:
    """A context in which refusals of KMS are raised as the errors of SQS.

    Raises:
        AwsError: One of `Kms…`.
    """
    try:
        yield
    except KeyUnusable as refused:
        raise key_error(refused, call.id) from refused


translated: Final = translator(
    (NotFound, lambda _: no_such_queue()),
    (InFlightLimit, lambda _: error("OverLimit", "Too many messages in flight.")),
    (
        TaskActive,
        lambda _: error(
            "InvalidParameterValueException",
            "There is already a task running. Only one active task is allowed for a source queue arn at a given"
            " time.",
        ),
    ),
    (KeyUnusable, key_error),
    (
        StoreUnavailable,
        lambda _: error("ServiceUnavailableException", "Service is unavailable. Please try again."),
    ),
)


PAGES: Final = Pages(
    "sqs",
    lambda token: invalid("NextToken", token, "The token is not one of ListQueues."),
    size=1000,
    size_max=1000,
    size_refusal=lambda size: invalid(
        "MaxResults", size, "MaxResults must be an integer between 1 and 1000."
    ),
)

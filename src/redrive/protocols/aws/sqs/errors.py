"""SQS's errors: their texts, and the translation of the engine's refusals."""

from redrive.model.errors import (
    InFlightLimit,
    NotFound,
    RedriveError,
    StoreUnavailable,
    TaskActive,
)
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.service import Service


def error(code: str, message: str, query_message: str | None = None) -> AwsError:
    """One of SQS's errors; see `Service.error`."""
    return Service.load("sqs").error(code, message, query_message)


def no_such_queue() -> AwsError:
    """The error for a queue that does not exist."""
    return error(
        "QueueDoesNotExist",
        "The specified queue does not exist.",
        "The specified queue does not exist for this wsdl version.",
    )


def invalid(parameter: str, value: object, reason: str) -> AwsError:
    """A parameter's value is not acceptable, in the form SQS uses for nearly all of them."""
    return error(
        "InvalidParameterValueException",
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}",
    )


def missing(parameter: str) -> AwsError:
    """The error for a parameter that is missing."""
    return error("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")


def denied(principal: str, action: str, arn: str) -> AwsError:
    """The error for an action that the caller has no permission for."""
    return error(
        "AccessDeniedException",
        f"User: {principal} is not authorized to perform: {action.lower()} on resource: {arn} because no"
        f" resource-based policy allows the {action.lower()} action",
    )


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that SQS has for it."""
    if isinstance(refusal, NotFound):
        return no_such_queue()
    if isinstance(refusal, InFlightLimit):
        return error("OverLimit", "Too many messages in flight.")
    if isinstance(refusal, TaskActive):
        return error(
            "InvalidParameterValueException",
            "There is already a task running. Only one active task is allowed for a source queue arn at a given"
            " time.",
        )
    if isinstance(refusal, StoreUnavailable):
        return error("ServiceUnavailableException", "Service is unavailable. Please try again.")
    raise refusal

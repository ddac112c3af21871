"""Lambda's errors: their texts, and the translation of the engine's refusals."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from redrive.access.policy import NOT_ALLOWED, Decision
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.wire.errors import AwsError, common
from redrive.model.errors import Conflict, StoreUnavailable

error: Final = errors_of("lambda")
ABSENT: Final = "ResourceNotFoundException"


def invalid(message: str) -> AwsError:
    """A parameter that is not acceptable, in the form that Lambda uses for most of them."""
    return error("InvalidParameterValueException", message)


def no_function(arn: str) -> AwsError:
    """The error for a function, a version or an alias that does not exist."""
    return error(ABSENT, f"Function not found: {arn}")


def no_such(message: str = "The resource you requested does not exist.") -> AwsError:
    """The error for anything else that does not exist."""
    return error(ABSENT, message)


@contextmanager
def absent_as(error: AwsError) -> Iterator[None]:
    """Raise `error` in place of the refusal for a function, a version or an alias that is absent."""
    try:
        yield
    except AwsError as refusal:
        if refusal.code == ABSENT:
            raise error from None
        raise


def typeless(message: str) -> AwsError:
    """`InvalidParameterValueException` as some checks tell it: its body has no `Type` (recorded)."""
    refusal = invalid(message)
    refusal.details = {"Type": ""}
    return refusal


def conflict(message: str) -> AwsError:
    """The error for a change that something standing is in the way of."""
    return error("ResourceConflictException", message)


def outdated_revision(reader: str = "GetFunction/GetAlias") -> AwsError:
    """The error for a change that was decided by a revision that is no longer the latest."""
    return error(
        "PreconditionFailedException",
        "The Revision Id provided does not match the latest Revision Id. Call the"
        f" {reader} API to retrieve the latest Revision Id",
    )


def unoffered(parameter: str) -> AwsError:
    """The error for a parameter that this server would have to ignore."""
    return invalid(f"Redrive does not offer the parameter {parameter}.")


def denied(principal: str, action: str, arn: str, decision: Decision = NOT_ALLOWED) -> AwsError:
    """The error for an action that the caller has no permission for."""
    action = f"lambda:{action}"
    text = not_authorized(principal, action, arn, decision.reason(action))
    return common("AccessDeniedException", text)


def throttled(*, by_function: bool) -> AwsError:
    """The error for an invocation that no environment may be used for now."""
    whose = "ReservedFunctionConcurrent" if by_function else "Concurrent"
    refusal = error("TooManyRequestsException", "Rate Exceeded.")
    refusal.details = {"Reason": f"{whose}InvocationLimitExceeded"}
    return refusal


translated: Final = translator(
    (
        Conflict,
        lambda _: conflict("The operation cannot be performed at this time. An update is in progress."),
    ),
    (StoreUnavailable, lambda _: error("ServiceException", "Service is unavailable. Please try again.")),
)


PAGES: Final = Pages(
    "lambda",
    lambda token: invalid(f"Invalid marker: {token}"),  # chosen
    size=50,
    size_max=50,
)

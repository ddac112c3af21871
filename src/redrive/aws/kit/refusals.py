"""Refusals, said once: the engine's as a service's errors, and the sentence about missing rights."""

from collections.abc import Callable
from typing import Any, Protocol

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError, StoreUnavailable

Translation = tuple[type[RedriveError], Callable[[Any], AwsError]]


def translator(*table: Translation) -> Callable[[RedriveError], AwsError]:
    """The function by which a service translates refusals of the engine: by the first row that fits; it raises others.

    Where no row says otherwise, an unavailable store is `ServiceUnavailableException`, which all services have.
    """

    def translated(refusal: RedriveError) -> AwsError:
        for kind, error in table:
            if isinstance(refusal, kind):
                return error(refusal)
        if isinstance(refusal, StoreUnavailable):
            return common("ServiceUnavailableException", "Service is unavailable. Please try again.")
        raise refusal

    return translated


def not_authorized(principal: str, action: str, arn: str, reason: str = "") -> str:
    """The text for an action that a caller has no permission for, as all services word it."""
    return f"User: {principal} is not authorized to perform: {action} on resource: {arn} {reason}".rstrip()


class ErrorMaker(Protocol):
    """Makes errors of one service."""

    def __call__(self, code: str, message: str = "", query_message: str | None = None) -> AwsError:
        """Make an error; `query_message`: its text in the Query protocol, if that differs."""
        ...


def errors_of(service: str) -> ErrorMaker:
    """The maker of a service's errors, by code and message."""

    def error(code: str, message: str = "", query_message: str | None = None) -> AwsError:
        return Service.load(service).error(code, message, query_message)

    return error

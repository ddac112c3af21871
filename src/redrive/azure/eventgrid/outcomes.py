"""Event Grid's reading of an endpoint's answers: retried or not, after which wait, and the endpoint's rest.

    answer                       tried again       floor     rest             lastDeliveryOutcome
    200 to 204                   delivered
    400                          no                                           BadRequest
    401    webhook               no                          5 min            Unauthorized
           Azure resource        yes               5 min     5 min            Unauthorized
    403                          no                          5 min            Forbidden
    404    webhook               yes                         5 min            NotFound
           Azure resource        yes               5 min     5 min            NotFound
    405    Azure function        yes                         10 min           InvalidAzureFunctionDestination
    408                          yes               2 min     10 s             TimedOut
    413                          no                                           PayloadTooLarge
    429                          yes                         10 s             Busy
    503                          yes               30 s      10 s             Busy
    any other                    yes                                          Aborted
    no answer                    yes                         10 s             TimedOut
    no connection                yes                         30 s             SocketError
    no such name                 yes                         5 min            ResolutionError
    switched off, full           yes                         5 min            Disabled, Full
    Service Bus, no session id   no                                           SessionQueueNotSupported

The general floor of 10 s is the schedule's own first wait. Sources: "Event Grid message delivery and retry", with 403
among what is not retried as its pages since 2024 have it. 405 is what a function without the right trigger answers.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from redrive.model.attempt import AnswerProfile, Reason, statuses
from redrive.model.circuit import USUAL, CircuitPolicy
from redrive.model.durations import MINUTE_MS, SECOND_MS

AZURE_FUNCTION: Final = "AzureFunction"
WEB_HOOK: Final = "WebHook"

ABORTED: Final = "Aborted"
PROBATION: Final = "Probation"
_INVALID_FUNCTION: Final = "InvalidAzureFunctionDestination"
_NO_SESSION: Final = "SessionQueueNotSupported"
_SERVICE_BUS: Final = frozenset({"ServiceBusQueue", "ServiceBusTopic"})
_SESSION: Final = "session"  # its own condition is not what it has for a message without one, but words

_DELIVERED: Final = statuses(range(200, 205))
_NEVER_AGAIN: Final = statuses(400, 403, 413)
_FLOORS_MS: Final = {408: 2 * MINUTE_MS, 503: 30 * SECOND_MS}
_RESOURCE_FLOORS_MS: Final = {401: 5 * MINUTE_MS, 404: 5 * MINUTE_MS}


def _profile(refused: frozenset[int], floors_ms: Mapping[int, int]) -> AnswerProfile:
    failed = statuses(range(100, 600), besides=_DELIVERED | refused)
    return AnswerProfile(_DELIVERED, refused, failed, floors_ms)


_WEB_HOOK_ANSWERS: Final = _profile(_NEVER_AGAIN | {401}, _FLOORS_MS)
_RESOURCE_ANSWERS: Final = _profile(_NEVER_AGAIN, _FLOORS_MS | _RESOURCE_FLOORS_MS)

_RESTS: Final = USUAL.with_times(
    by_status={401: 5 * MINUTE_MS, 403: 5 * MINUTE_MS, 408: 10 * SECOND_MS},
    by_reason={
        Reason.THROTTLED: 10 * SECOND_MS,
        Reason.MISSING: 5 * MINUTE_MS,
        Reason.DISABLED: 5 * MINUTE_MS,
        Reason.FULL: 5 * MINUTE_MS,
        Reason.DENIED: 5 * MINUTE_MS,
    },
)
_FUNCTION_RESTS: Final = _RESTS.with_times(by_status={405: 10 * MINUTE_MS})

_BY_STATUS: Final[Mapping[int, str]] = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.REQUEST_TIMEOUT: "TimedOut",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "PayloadTooLarge",
    HTTPStatus.TOO_MANY_REQUESTS: "Busy",
    HTTPStatus.SERVICE_UNAVAILABLE: "Busy",
    HTTPStatus.GATEWAY_TIMEOUT: "TimedOut",
}
_BY_REASON: Final[Mapping[Reason, str]] = {
    Reason.CLIENT_ERROR: "BadRequest",
    Reason.THROTTLED: "Busy",
    Reason.TIMED_OUT: "TimedOut",
    Reason.CONNECTION: "SocketError",
    Reason.TLS: "SocketError",
    Reason.NAME_NOT_RESOLVED: "ResolutionError",
    Reason.MISSING: "NotFound",
    Reason.DENIED: "Unauthorized",
    Reason.FORBIDDEN_ADDRESS: "Forbidden",
    Reason.TOO_LARGE: "PayloadTooLarge",
    Reason.DISABLED: "Disabled",
    Reason.FULL: "Full",
}
#: What a destination says of itself in so many words goes before its status: Service Bus's "full" has one of its own.
_SPOKEN: Final = frozenset({Reason.DISABLED, Reason.FULL, Reason.TOO_LARGE})


def answers_of(destination_type: str) -> AnswerProfile:
    """The meanings of status codes."""
    return _WEB_HOOK_ANSWERS if destination_type == WEB_HOOK else _RESOURCE_ANSWERS


def probation_of(destination_type: str) -> CircuitPolicy:
    """The circuit-breaker policy of an endpoint."""
    return _FUNCTION_RESTS if destination_type == AZURE_FUNCTION else _RESTS


def outcome_of(reason: Reason, status: int, response: str, destination_type: str) -> str:
    """A failed attempt's outcome, as dead letters and delivery logs call it."""
    if reason is Reason.CLIENT_ERROR and destination_type in _SERVICE_BUS and _SESSION in response.lower():
        return _NO_SESSION
    if destination_type == AZURE_FUNCTION and status == HTTPStatus.METHOD_NOT_ALLOWED:
        return _INVALID_FUNCTION
    if reason in _SPOKEN:
        return _BY_REASON[reason]
    outcome = _BY_STATUS.get(status) if status else _BY_REASON.get(reason)
    return outcome or ABORTED

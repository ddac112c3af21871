"""Verdicts on a broker's conditions: AMQP 1.0's own, and those that Azure adds (`com.microsoft:…`).

Each has the HTTP status nearest to it, so that schedules and probation which go by statuses hold for brokers too.
"""

from typing import Final

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import (
    DISABLED,
    FULL,
    IN_TROUBLE,
    MISSING,
    NOT_AUTHENTICATED,
    THROTTLED,
    Verdict,
)
from redrive.model.attempt import Reason

ACCEPTED: Final = verdicts.ACCEPTED.verdict(200)

_UNKNOWN: Final = (IN_TROUBLE, 500)
_INVALID: Final = (verdicts.INVALID, 400)
_DENIED: Final = (NOT_AUTHENTICATED, 401)
_TOO_LARGE: Final = (verdicts.TOO_LARGE, 413)
_BUSY: Final = (THROTTLED, 503)
_BY_CONDITION: Final = {
    "amqp:not-found": (MISSING, 404),
    "amqp:unauthorized-access": _DENIED,
    "amqp:resource-limit-exceeded": (FULL, 507),
    "amqp:link:message-size-exceeded": _TOO_LARGE,
    "amqp:decode-error": _INVALID,
    "amqp:invalid-field": _INVALID,
    "amqp:not-allowed": _INVALID,
    "amqp:not-implemented": _INVALID,
    "amqp:precondition-failed": _INVALID,
    "com.microsoft:argument-error": _INVALID,
    "com.microsoft:argument-out-of-range": _INVALID,
    "com.microsoft:auth-failed": _DENIED,
    "com.microsoft:entity-disabled": (DISABLED, 423),
    "com.microsoft:server-busy": _BUSY,
    "com.microsoft:timeout": (IN_TROUBLE, 504),
}


def of_condition(condition: str, said: str) -> Verdict:
    """The verdict on a message, or the entity it is for, that was refused with a condition."""
    meaning, status = _BY_CONDITION.get(condition, _UNKNOWN)
    return meaning.verdict(status, f"{condition}: {said}" if said else condition)


def of_end(condition: str, said: str, messages: int) -> Verdict:
    """The verdict on messages under way whose link was ended.

    A condition that is about one message says which by its outcome; here it can only be told where there was one.
    """
    verdict = of_condition(condition, said)
    if verdict.reason not in (Reason.CLIENT_ERROR, Reason.TOO_LARGE) or messages == 1:
        return verdict
    meaning, status = _UNKNOWN
    return meaning.verdict(status, verdict.response)


def too_large(message_bytes: int, message_bytes_max: int) -> Verdict:
    """The entity said how large a message may be, so that it need not be sent to be refused."""
    meaning, status = _TOO_LARGE
    return meaning.verdict(status, f"{message_bytes} bytes; the entity takes {message_bytes_max}")

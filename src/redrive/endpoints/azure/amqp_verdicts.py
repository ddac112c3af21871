"""What a broker's conditions mean: AMQP 1.0's own, and those that Azure's add (`com.microsoft:…`).

Each has the HTTP status nearest to it, so that schedules and probation which go by statuses hold for brokers too.
"""

from typing import Final

from redrive.endpoints.verdicts import Verdict
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome

ACCEPTED: Final = Verdict(Outcome.DELIVERED, Reason.ACCEPTED, 200)

_UNKNOWN: Final = (Outcome.FAILED, Reason.SERVER_ERROR, 500)
_INVALID: Final = (Outcome.REFUSED, Reason.CLIENT_ERROR, 400)
_DENIED: Final = (Outcome.FAILED, Reason.DENIED, 401)
_TOO_LARGE: Final = (Outcome.REFUSED, Reason.TOO_LARGE, 413)
_BUSY: Final = (Outcome.FAILED, Reason.THROTTLED, 503)
_BY_CONDITION: Final = {
    "amqp:not-found": (Outcome.REFUSED, Reason.MISSING, 404),
    "amqp:unauthorized-access": _DENIED,
    "amqp:resource-limit-exceeded": (Outcome.FAILED, Reason.FULL, 507),
    "amqp:link:message-size-exceeded": _TOO_LARGE,
    "amqp:decode-error": _INVALID,
    "amqp:invalid-field": _INVALID,
    "amqp:not-allowed": _INVALID,
    "amqp:not-implemented": _INVALID,
    "amqp:precondition-failed": _INVALID,
    "com.microsoft:argument-error": _INVALID,
    "com.microsoft:argument-out-of-range": _INVALID,
    "com.microsoft:auth-failed": _DENIED,
    "com.microsoft:entity-disabled": (Outcome.FAILED, Reason.DISABLED, 423),
    "com.microsoft:server-busy": _BUSY,
    "com.microsoft:timeout": (Outcome.FAILED, Reason.SERVER_ERROR, 504),
}


def of_condition(condition: str, said: str) -> Verdict:
    """What it means that a message, or the entity it is for, was turned down so."""
    outcome, reason, status = _BY_CONDITION.get(condition, _UNKNOWN)
    return Verdict(outcome, reason, status, f"{condition}: {said}" if said else condition)


def of_end(condition: str, said: str, messages: int) -> Verdict:
    """What it means that the link for so many messages under way was ended so.

    A condition that is about one message says which by its outcome; here it can only be told where there was one.
    """
    verdict = of_condition(condition, said)
    if verdict.reason not in (Reason.CLIENT_ERROR, Reason.TOO_LARGE) or messages == 1:
        return verdict
    outcome, reason, status = _UNKNOWN
    return Verdict(outcome, reason, status, verdict.response)


def too_large(message_bytes: int, message_bytes_max: int) -> Verdict:
    """The entity said how large a message may be, so that it need not be sent to be refused."""
    outcome, reason, status = _TOO_LARGE
    return Verdict(outcome, reason, status, f"{message_bytes} bytes; the entity takes {message_bytes_max}")

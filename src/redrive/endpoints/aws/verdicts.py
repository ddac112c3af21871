"""What the answers of Amazon's services mean for a delivery.

A service says what is wrong by the name of an error; the status is its class. Who we are may be mended by whoever runs
this server, so that is tried again; what we may not do, and what is not there, is the subscriber's and is not.
"""

from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import Verdict
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome

REQUEST_ID: Final = "request_id"  # the identifier of an attempt that a service's id of the request is
# In JSON each may take two characters, and both go with their names into the 1,024 of an attempt.
_CODE_CHARS_MAX: Final = 60
_MESSAGE_CHARS_MAX: Final = 400

_UNKNOWN_TO_IT: Final = (Outcome.FAILED, Reason.DENIED)
_NOT_ALLOWED: Final = (Outcome.REFUSED, Reason.DENIED)
_NOT_THERE: Final = (Outcome.REFUSED, Reason.MISSING)
_TOO_LARGE: Final = (Outcome.REFUSED, Reason.TOO_LARGE)
_SWITCHED_OFF: Final = (Outcome.REFUSED, Reason.DISABLED)
_NOT_READY: Final = (Outcome.FAILED, Reason.DISABLED)
_THROTTLED: Final = (Outcome.FAILED, Reason.THROTTLED)
_BY_CODE: Final = {
    "ExpiredToken": _UNKNOWN_TO_IT,
    "ExpiredTokenException": _UNKNOWN_TO_IT,
    "IncompleteSignature": _UNKNOWN_TO_IT,
    "IncompleteSignatureException": _UNKNOWN_TO_IT,
    "InvalidClientTokenId": _UNKNOWN_TO_IT,
    "InvalidSignatureException": _UNKNOWN_TO_IT,
    "MissingAuthenticationToken": _UNKNOWN_TO_IT,
    "MissingAuthenticationTokenException": _UNKNOWN_TO_IT,
    "RequestExpired": _UNKNOWN_TO_IT,
    "SignatureDoesNotMatch": _UNKNOWN_TO_IT,
    "UnrecognizedClientException": _UNKNOWN_TO_IT,
    "AccessDenied": _NOT_ALLOWED,
    "AccessDeniedException": _NOT_ALLOWED,
    "InvalidKMSResourceException": _NOT_ALLOWED,
    "KMSAccessDeniedException": _NOT_ALLOWED,
    "KMSDisabledException": _SWITCHED_OFF,
    "KMSInvalidStateException": _SWITCHED_OFF,
    "KMSNotFoundException": _NOT_THERE,
    "ResourceNotFoundException": _NOT_THERE,
    "RequestTooLargeException": _TOO_LARGE,
    "ResourceConflictException": _NOT_READY,  # the function is being made or changed
    "SnapStartNotReadyException": _NOT_READY,
    "EC2ThrottledException": _THROTTLED,
    "LimitExceededException": _THROTTLED,
    "RequestLimitExceeded": _THROTTLED,
    "SlowDown": _THROTTLED,
    "Throttling": _THROTTLED,
    "ThrottlingException": _THROTTLED,
    "TooManyRequestsException": _THROTTLED,
}
_BY_STATUS: Final = {
    HTTPStatus.UNAUTHORIZED: _UNKNOWN_TO_IT,
    HTTPStatus.FORBIDDEN: _NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: _NOT_THERE,
    HTTPStatus.REQUEST_TIMEOUT: (Outcome.FAILED, Reason.SERVER_ERROR),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _TOO_LARGE,
}


class AwsAnswer(NamedTuple):
    """A service's answer.

    Attributes:
        status: Its status.
        text: Its body.
        code: The name of its error; empty where it has none.
        message: What it says of it.
        request_id: Its name for the request; empty where it has none.
        function_error: That the function it waited for has failed, in a word; empty else.
    """

    status: int
    text: str
    code: str = ""
    message: str = ""
    request_id: str = ""
    function_error: str = ""


def of_answer(answer: AwsAnswer) -> Verdict:
    """What an answer means; of an error, its name and text are what the service said."""
    identifiers = ((REQUEST_ID, answer.request_id),) if answer.request_id else ()
    if answer.status // 100 == HTTPStatus.OK // 100:
        return Verdict(Outcome.DELIVERED, Reason.ACCEPTED, answer.status, identifiers=identifiers)
    return of_error(answer.status, answer.code, answer.message)


def of_error(status: int, code: str, message: str) -> Verdict:
    """What an error means, by its name or else by its status."""
    said = error_text(code, message) if code else message
    named = _BY_CODE.get(code)
    if named is None and status // 100 == 4:  # noqa: PLR2004 - of the 5xx, only names tell more
        named = _BY_STATUS.get(HTTPStatus(status)) if status in _BY_STATUS else None
    if named is None:
        return verdicts.of_status(status, said)
    outcome, reason = named
    return Verdict(outcome, reason, status, said)


def error_text(code: str, message: str) -> str:
    """An error in the form that delivery logs have it in: JSON, whole whatever it says."""
    shown = "".join(one if one.isprintable() else " " for one in message[:_MESSAGE_CHARS_MAX])
    return orjson.dumps({"ErrorCode": code[:_CODE_CHARS_MAX], "ErrorMessage": shown}).decode()


def denied(message: str) -> Verdict:
    """We cannot say who we are."""
    outcome, reason = _UNKNOWN_TO_IT
    return Verdict(outcome, reason, response=message)


def unplaced(arn: str) -> Verdict:
    """The settings do not say which server has it."""
    outcome, reason = _NOT_THERE
    return Verdict(outcome, reason, response=f"The settings name no server that has {arn}")

"""Verdicts on the answers of Amazon's services.

A service says what is wrong by the name of an error; the status is its class. Who we are may be mended by whoever runs
this server, so that is tried again; what we may not do, and what is not there, is the subscriber's and is not.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import (
    ACCEPTED,
    DISABLED,
    IN_TROUBLE,
    MISSING,
    NOT_ALLOWED,
    NOT_AUTHENTICATED,
    THROTTLED,
    TOO_LARGE,
    Meaning,
    Verdict,
)
from redrive.model.attempt import AttemptResult, Reason

REQUEST_ID: Final = "request_id"  # the identifier of an attempt that a service's id of the request is
# In JSON each may take two characters, and both go with their names into the 1,024 of an attempt.
_CODE_CHARS_MAX: Final = 60
_MESSAGE_CHARS_MAX: Final = 400

_SWITCHED_OFF: Final = Meaning(AttemptResult.REFUSED, Reason.DISABLED)  # by the owner of the key

_BY_CODE: Final = {
    "ExpiredToken": NOT_AUTHENTICATED,
    "ExpiredTokenException": NOT_AUTHENTICATED,
    "IncompleteSignature": NOT_AUTHENTICATED,
    "IncompleteSignatureException": NOT_AUTHENTICATED,
    "InvalidClientTokenId": NOT_AUTHENTICATED,
    "InvalidSignatureException": NOT_AUTHENTICATED,
    "MissingAuthenticationToken": NOT_AUTHENTICATED,
    "MissingAuthenticationTokenException": NOT_AUTHENTICATED,
    "RequestExpired": NOT_AUTHENTICATED,
    "SignatureDoesNotMatch": NOT_AUTHENTICATED,
    "UnrecognizedClientException": NOT_AUTHENTICATED,
    "AccessDenied": NOT_ALLOWED,
    "AccessDeniedException": NOT_ALLOWED,
    "InvalidKMSResourceException": NOT_ALLOWED,
    "KMSAccessDeniedException": NOT_ALLOWED,
    "KMSDisabledException": _SWITCHED_OFF,
    "KMSInvalidStateException": _SWITCHED_OFF,
    "KMSNotFoundException": MISSING,
    "ResourceNotFoundException": MISSING,
    "RequestTooLargeException": TOO_LARGE,
    "ResourceConflictException": DISABLED,  # the function is being made or changed
    "SnapStartNotReadyException": DISABLED,
    "EC2ThrottledException": THROTTLED,
    "LimitExceededException": THROTTLED,
    "RequestLimitExceeded": THROTTLED,
    "SlowDown": THROTTLED,
    "Throttling": THROTTLED,
    "ThrottlingException": THROTTLED,
    "TooManyRequestsException": THROTTLED,
}
_BY_STATUS: Final[Mapping[int, Meaning]] = {
    HTTPStatus.UNAUTHORIZED: NOT_AUTHENTICATED,
    HTTPStatus.FORBIDDEN: NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: MISSING,
    HTTPStatus.REQUEST_TIMEOUT: IN_TROUBLE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
}


class AwsAnswer(NamedTuple):
    """A service's answer."""

    status: int
    text: str  # Its body
    code: str = ""  # The name of its error; empty if it has none
    message: str = ""  # Error message
    request_id: str = ""  # Its name for the request; empty if it has none
    function_error: str = ""  # Error kind of a function that failed; empty otherwise


def of_answer(answer: AwsAnswer) -> Verdict:
    """The verdict on an answer; an error's name and text are the service's."""
    identifiers = ((REQUEST_ID, answer.request_id),) if answer.request_id else ()
    if answer.status // 100 == HTTPStatus.OK // 100:
        return ACCEPTED.verdict(answer.status, identifiers=identifiers)
    return of_error(answer.status, answer.code, answer.message)


def of_error(status: int, code: str, message: str) -> Verdict:
    """The verdict on an error, by its name or else by its status."""
    text = error_text(code, message) if code else message
    meaning = _BY_CODE.get(code)
    return verdicts.of_status(status, text, _BY_STATUS) if meaning is None else meaning.verdict(status, text)


def error_text(code: str, message: str) -> str:
    """An error in the form that delivery logs have it in: JSON, whole whatever it says."""
    text = "".join(each if each.isprintable() else " " for each in message[:_MESSAGE_CHARS_MAX])
    return orjson.dumps({"ErrorCode": code[:_CODE_CHARS_MAX], "ErrorMessage": text}).decode()


def denied(message: str) -> Verdict:
    """We cannot say who we are."""
    return NOT_AUTHENTICATED.verdict(response=message)


def unplaced(arn: str) -> Verdict:
    """The settings do not say which server has it."""
    return MISSING.verdict(response=f"The settings name no server that has {arn}")

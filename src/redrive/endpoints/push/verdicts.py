"""Verdicts on the answers of push services.

`Reason.MISSING` says that the device is gone, or that its token was never one; `Reason.DENIED` that the service does not
know the application by its credentials. Those may be mended, so what they hold up is tried again.

Sources: "Handling notification responses from APNs" (Apple), "ErrorCode" of FCM's REST reference with the table of
failure types in "Using Google Firebase Cloud Messaging v1 payloads in Amazon SNS", "Send a Message via Amazon Device
Messaging".
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import (
    FORBIDDEN,
    IN_TROUBLE,
    MISSING,
    NOT_AUTHENTICATED,
    TOO_LARGE,
    Meaning,
    Verdict,
)

_APNS_DEAD: Final = frozenset({"BadDeviceToken", "DeviceTokenNotForTopic", "ExpiredToken", "Unregistered"})
_FCM_DEAD: Final = frozenset({"SENDER_ID_MISMATCH", "UNREGISTERED"})
_ADM_DEAD: Final = frozenset({"InvalidRegistrationId", "Unregistered"})
_DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_BY_STATUS: Final[Mapping[int, Meaning]] = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE}


class CredentialsUnusable(ValueError):  # noqa: N818 - an answer, named as a caller says it
    """The credentials of an application cannot be read; the message says what was expected."""


def of_apns(status: int, text: str) -> Verdict:
    """The verdict on an answer of Apple's push service, JSON with a `reason`."""
    if word_in(text, "reason") in _APNS_DEAD or status == HTTPStatus.GONE:
        return MISSING.verdict(status, text)
    if status in _DENIED:
        return denied(text, status)
    return verdicts.of_status(status, text, _BY_STATUS)


def of_fcm(status: int, text: str) -> Verdict:
    """The verdict on an answer of Firebase Cloud Messaging; a missing permission is a client error, as in SNS."""
    if _fcm_code(text) in _FCM_DEAD:
        return MISSING.verdict(status, text)
    if status == HTTPStatus.UNAUTHORIZED:
        return denied(text, status)
    return verdicts.of_status(status, text, _BY_STATUS)


def of_adm(status: int, text: str) -> Verdict:
    """The verdict on an answer of Amazon Device Messaging, JSON with a `reason`."""
    if word_in(text, "reason") in _ADM_DEAD:
        return MISSING.verdict(status, text)
    if status in _DENIED:
        return denied(text, status)
    return verdicts.of_status(status, text, _BY_STATUS)


def of_login(status: int, text: str) -> Verdict:
    """The verdict on an authority that gave no access token."""
    if status in (HTTPStatus.BAD_REQUEST, *_DENIED):
        return denied(text, status)
    if status < HTTPStatus.BAD_REQUEST:
        return IN_TROUBLE.verdict(status, "The authority's answer has no access token")
    return verdicts.of_status(status, text, _BY_STATUS)


def of_failure(error: Exception) -> Verdict:
    """The verdict on a missing answer, from the error that the event loop raised."""
    if isinstance(error, CredentialsUnusable):
        return denied(str(error))
    return verdicts.of_failure(error, unusable=FORBIDDEN)


def denied(text: str, status: int = 0) -> Verdict:
    """The service does not know the application by its credentials."""
    return NOT_AUTHENTICATED.verdict(status, text)


def word_in(text: str, member: str) -> str:
    """A text within an answer's object; empty if there is none."""
    word = _object(text).get(member)
    return word if isinstance(word, str) else ""


def _fcm_code(text: str) -> str:
    """FCM's own code, which stands among the details of Google's usual errors."""
    error = _object(text).get("error")
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("errorCode"), str):
            return str(detail["errorCode"])
    return ""


def _object(text: str) -> dict[str, Any]:
    """The members of a JSON object; of anything else none."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}

"""Answers and errors of Azure's services; the resource manager and publishers get errors in the same body.

    {"error": {"code": "…", "message": "…", "details": [{"code": "…", "message": "…"}]}}

Codes are names. `MissingSubscriptionRegistration` is never among them: clients would go and register the provider, and
ask again every ten seconds whether that is done. Nor does a permanent 4xx carry Retry-After: clients repeat those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson

from redrive.model.errors import AlreadyExists, Conflict, NotFound, RedriveError, Refused, StoreUnavailable
from redrive.model.http import Response

_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Detail:
    """One of several things that are wrong."""

    code: str
    message: str


class AzureError(Exception):
    """A refusal.

    Attributes:
        status: The HTTP status.
        code: `BadRequest`, `ResourceNotFound` …
        message: The text, for people.
        details: What is wrong one by one; empty for none.
        headers: That go with the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.headers = headers


def invalid(message: str, code: str = "InvalidRequest") -> AzureError:
    """A request that cannot succeed as it stands: 400."""
    return AzureError(HTTPStatus.BAD_REQUEST, code, message)


def unauthorized(message: str) -> AzureError:
    """The request has no credentials that are trusted: 401."""
    challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
    return AzureError(HTTPStatus.UNAUTHORIZED, "AuthenticationFailed", message, headers=challenge)


def forbidden(message: str) -> AzureError:
    """The caller lacks permission: 403."""
    return AzureError(HTTPStatus.FORBIDDEN, "AuthorizationFailed", message)


def not_found(message: str, code: str = "ResourceNotFound") -> AzureError:
    """Refuse with 404: the resource is not there."""
    return AzureError(HTTPStatus.NOT_FOUND, code, message)


def conflict(message: str, code: str = "Conflict") -> AzureError:
    """The present state does not allow it: 409."""
    return AzureError(HTTPStatus.CONFLICT, code, message)


def translate(refusal: RedriveError) -> AzureError:
    """An engine's refusal that no facade has put into better words."""
    if isinstance(refusal, StoreUnavailable):
        later = {"Retry-After": "1"}
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return AzureError(status, "ServiceUnavailable", "The store did not answer.", headers=later)
    if isinstance(refusal, NotFound):
        return not_found(str(refusal))
    if isinstance(refusal, AlreadyExists | Conflict | Refused):
        return conflict(str(refusal))
    return AzureError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", str(refusal))


CONTENT_TYPE: Final = "application/json; charset=utf-8"


def json_answer(
    value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] = _NO_HEADERS
) -> Response:
    """An answer with a body."""
    return Response(status, orjson.dumps(value), CONTENT_TYPE, headers)


def empty_answer(status: int = HTTPStatus.OK, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """An answer without one."""
    return Response(status, b"", CONTENT_TYPE, headers)


def refusal(error: AzureError) -> Response:
    """An error as an answer."""
    error_members: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        error_members["details"] = [
            {"code": detail.code, "message": detail.message} for detail in error.details
        ]
    return json_answer({"error": error_members}, error.status, error.headers)

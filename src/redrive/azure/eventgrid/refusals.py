"""Refusals of events, as publishers see them.

    {"error": {"code": "BadRequest", "message": "… Report 'GUID:1:1/2/2026 3:04:05 AM (UTC)' to our forums …",
               "details": [{"code": "InputJsonInvalid", "message": "…"}]}}

The code is the status by its name; the detail says which rule. Refusals for size have no report to make.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from redrive.azure.eventgrid.credentials import CredentialFault, NotAdmitted
from redrive.azure.wire.answers import AzureError, Detail

#: What input schemas are called in messages.
SCHEMA_NAMES: Final[Mapping[str, str]] = {
    "EventGridSchema": "EventGridEvent",
    "CloudEventSchemaV1_0": "CloudEventV10",
    "CustomEventSchema": "CustomEvent",
}

INPUT_JSON_INVALID: Final = "InputJsonInvalid"
INVALID_CONTENT_TYPE: Final = "InvalidContentType"
INVALID_CLOUD_EVENT_HEADER: Final = "InvalidCloudEventHeader"
INVALID_SAS: Final = "InvalidSas"
UNAUTHORIZED: Final = "Unauthorized"
FORBIDDEN: Final = "Forbidden"


_REASONS: Final = {
    CredentialFault.KEYS_OFF: "Local authentication is disabled for this resource",
    CredentialFault.KEY: "The key is not one of this resource's",
    CredentialFault.ACCOUNT: "The bearer does not manage the Azure subscription",
}


class Unacceptable(Exception):  # noqa: N818 - an answer, named as a caller says it
    """Events, or a request, that are not taken.

    Attributes:
        status: 400, 401, 403, 405, 413 or 415.
        rule: Which rule they break.
        message: The text, for people.
    """

    def __init__(
        self, message: str, rule: str = INPUT_JSON_INVALID, status: HTTPStatus = HTTPStatus.BAD_REQUEST
    ) -> None:
        super().__init__(message)
        self.status = status
        self.rule = rule
        self.message = message

    def to_error(self, request_id: str, now: int) -> AzureError:
        """The refusal as an answer; the id is a GUID."""
        too_large = self.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        message = self.message if too_large else f"{self.message} {_report(request_id, now)}"
        return AzureError(
            self.status,
            _code(self.status),
            message,
            [Detail(self.rule, message)],
            {"x-ms-request-id": request_id},
        )


def too_large(bytes_max: int) -> Unacceptable:
    """A request, or an event, of too many bytes."""
    message = f"The maximum size ({bytes_max}) has been exceeded."
    return Unacceptable(message, "RequestEntityTooLarge", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def unauthorized(message: str) -> Unacceptable:
    """Credentials that open nothing here, or none."""
    return Unacceptable(message, UNAUTHORIZED, HTTPStatus.UNAUTHORIZED)


def not_admitted(refusal: NotAdmitted, host: str) -> Unacceptable:
    """Credentials that do not open a topic, at the host of the request."""
    if refusal.cause is CredentialFault.EMPTY_KEY:
        return Unacceptable("The request's authorization key is empty.", INVALID_SAS)
    if refusal.cause is CredentialFault.ABSENT:
        return unauthorized(
            "Request must contain one of the following authorization signature: aeg-sas-token, aeg-sas-key."
        )
    if refusal.cause is CredentialFault.BEARER:
        return unauthorized(refusal.detail)
    reason = refusal.detail or _REASONS[refusal.cause]
    return unauthorized(
        f"The request authorization key is not authorized for {host.upper()}. This is due to the reason: {reason}."
    )


def out_of_network(host: str, client_host: str) -> Unacceptable:
    """A publisher's address that the topic, as the client called it, does not accept."""
    message = (
        f"Publishing to {host.upper()} by client {client_host} is rejected due to IpAddress filtering rules."
    )
    return Unacceptable(message, FORBIDDEN, HTTPStatus.FORBIDDEN)


def unsupported(message: str) -> Unacceptable:
    """A content type that the topic does not take."""
    return Unacceptable(message, INVALID_CONTENT_TYPE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def unexpected_shape(schema: str, expected: str, received: object) -> Unacceptable:
    """JSON of another shape than the topic's schema has."""
    return Unacceptable(
        f"This resource is configured to receive event in '{SCHEMA_NAMES[schema]}' schema. The JSON received does not"
        f" conform to the expected schema. Token Expected: {expected}, Actual Token Received: {_token(received)}."
    )


def missing_property(schema: str, name: str) -> Unacceptable:
    """An event without something that the topic's schema wants."""
    return Unacceptable(
        f"This resource is configured for '{SCHEMA_NAMES[schema]}' schema and requires '{name}' property to be set."
    )


def malformed_time(schema: str, name: str) -> Unacceptable:
    """An event whose time is malformed.

    The wording is that of an emulator which compares itself with the service (AzureEventGridSimulator), for `eventTime`.
    """
    return Unacceptable(
        f"This resource is configured for '{SCHEMA_NAMES[schema]}' schema and requires '{name}' property to be a valid"
        " RFC 3339 timestamp."
    )


def _code(status: HTTPStatus) -> str:
    """A status by its name: `BadRequest`, `RequestEntityTooLarge`."""
    return "".join(word.capitalize() for word in status.name.split("_"))


def _report(request_id: str, now: int) -> str:
    at = datetime.fromtimestamp(now // 1000, UTC)
    hour, half = at.hour % 12 or 12, "AM" if at.hour < 12 else "PM"  # noqa: PLR2004 - noon
    moment = f"{at.month}/{at.day}/{at.year} {hour}:{at:%M:%S} {half} (UTC)"
    return f"Report '{request_id}:1:{moment}' to our forums for assistance or raise a support ticket."


def _token(value: object) -> str:
    """The kind of a JSON value, as Event Grid's messages call the token that it begins with."""
    match value:
        case dict():
            return "StartObject"
        case list():
            return "StartArray"
        case str():
            return "String"
        case bool():
            return "Boolean"
        case None:
            return "Null"
        case _:
            return "Number"

"""CloudEvents as they come in: one or several in JSON, or one whose attributes are headers.

    application/cloudevents-batch+json    an array of events
    application/cloudevents+json          one event
    anything else, with `ce-…` headers    binary mode: the body is the event's data

https://github.com/cloudevents/spec, version 1.0.2: the JSON format and the HTTP protocol binding.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from redrive.azure.eventgrid.notation import is_moment, read_text
from redrive.azure.wire.answers import AzureError, Detail, invalid
from redrive.model.http import Request

EVENTS_MAX: Final = 1000
BYTES_MAX: Final = 1024 * 1024  # for a request, and so for an event
_BATCH: Final = "application/cloudevents-batch+json"
_SINGLE: Final = "application/cloudevents+json"
_HEADER: Final = "ce-"
_REQUIRED: Final = ("id", "source", "specversion", "type")
_TEXTS: Final = ("subject", "dataschema", "datacontenttype")
_NAME: Final = re.compile(r"[a-z0-9]{1,128}")

Event = Mapping[str, Any]


def events_of(request: Request) -> list[Event]:
    """The events of a request; an empty batch has none.

    Raises:
        AzureError: The body has more events or bytes than allowed, or anything that is not an event of CloudEvents 1.0.
    """
    if len(request.body) > BYTES_MAX:
        raise _too_large(f"The request has {len(request.body)} bytes; {BYTES_MAX} are allowed.")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == _BATCH:
        return _batch(request.body)
    if media_type == _SINGLE:
        return [_valid_event(_json(request.body))]
    if not any(name.startswith(_HEADER) for name in request.headers):
        raise AzureError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            f"The content type '{media_type}' is not supported: send {_BATCH}, {_SINGLE}, or one event whose "
            "attributes are ce- headers.",
        )
    return [_valid_event(_binary(request, media_type))]


def _batch(body: bytes) -> list[Event]:
    """The events of a batch, each checked; raises AzureError."""
    document = _json(body)
    if not isinstance(document, list):
        raise _malformed("The body of a batch must be an array of events.")
    if len(document) > EVENTS_MAX:
        raise _too_large(f"The request has {len(document)} events; {EVENTS_MAX} are allowed.")
    return [_valid_event(each) for each in document]


def _binary(request: Request, media_type: str) -> dict[str, Any]:
    """The event whose attributes are headers, and whose data is the body."""
    event: dict[str, Any] = {
        name.removeprefix(_HEADER): unquote(value)
        for name, value in request.headers.items()
        if name.startswith(_HEADER)
    }
    if "datacontenttype" in event:
        raise _malformed("In binary mode the datacontenttype is the Content-Type, and no header of its own.")
    if media_type:
        event["datacontenttype"] = request.headers["content-type"]
    if not request.body:
        return event
    if not media_type or media_type == "application/json" or media_type.endswith("+json"):
        return {**event, "data": _json(request.body)}
    return {**event, "data_base64": b64encode(request.body).decode()}


def _json(body: bytes) -> Any:
    try:
        return read_text(body)
    except ValueError as reason:
        raise _malformed(f"The body is not JSON: {reason}.") from None


def _valid_event(event: Any) -> Event:
    """Return the event, if its attributes are as CloudEvents 1.0 requires them."""
    if isinstance(event, str):
        raise _malformed(
            "An event is a text, not an object: azure-eventgrid sends the repr of what it does not recognise, and "
            "it does not recognise the events of the package cloudevents from version 2 on."
        )
    if not isinstance(event, dict):
        raise _malformed("An event must be an object.")
    for name in _REQUIRED:
        if not isinstance(event.get(name), str) or not event[name]:
            raise _malformed(f"It requires the property '{name}' to be set to a text.")
    if event["specversion"] != "1.0":
        raise _malformed(f"The specversion is '{event['specversion']}'; 1.0 is supported.")
    _check_attributes(event)
    _check_content(event)
    return event


def _check_attributes(event: Event) -> None:
    """Check the names and types of an event's attributes; raises AzureError."""
    for name, value in event.items():
        if name in _TEXTS and value is not None and not isinstance(value, str):
            raise _malformed(f"The property '{name}' must be a text.")
        if name in ("data", "data_base64"):
            continue
        if not _NAME.fullmatch(name):
            raise _malformed(f"The attribute '{name}' must be called by lower-case letters and digits.")
        if isinstance(value, dict | list | float):
            raise _malformed(f"The attribute '{name}' must be a text, a whole number or a boolean.")
    if (time := event.get("time")) is not None and not is_moment(time):
        raise _malformed(f"The time '{time}' is not a time in RFC 3339.")


def _check_content(event: Event) -> None:
    """Check that an event has its data once, and base64 where it says so; raises AzureError."""
    if "data_base64" not in event:
        return
    if "data" in event:
        raise _malformed("An event has either data or data_base64.")
    try:
        b64decode(event["data_base64"], validate=True)
    except (ValueError, TypeError):
        raise _malformed("The property 'data_base64' is not base64.") from None


def _malformed(message: str) -> AzureError:
    """The refusal of events that are not CloudEvents, in Azure's words."""
    text = (
        "This resource is configured to receive event in 'CloudEventV10' schema. "
        f"The request received does not conform to the expected schema. {message}"
    )
    refusal = invalid(text, "BadRequest")
    refusal.details = (Detail("InputJsonInvalid", text),)
    return refusal


def _too_large(message: str) -> AzureError:
    return AzureError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)

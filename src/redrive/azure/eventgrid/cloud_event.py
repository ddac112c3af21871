"""CloudEvents 1.0 as publishers send them over HTTP: one as JSON, several as JSON, or one in headers.

    Content-Type                          the body is
    application/cloudevents+json          one event
    application/cloudevents-batch+json    an array of events
    any other, with ce-specversion        one event's data, its attributes in `ce-…` headers
    application/json                      one event

The data of the third kind has to be JSON here, as the service has it.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from redrive.azure.eventgrid.incoming import Event, Incoming, check_is_object, read_array, read_json
from redrive.azure.eventgrid.refusals import (
    INVALID_CLOUD_EVENT_HEADER,
    Unacceptable,
    lacking,
    misshapen,
    mistimed,
    unsupported,
)
from redrive.azure.eventgrid.rendering import SPEC_VERSION
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA
from redrive.azure.eventgrid.times import is_moment

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
_JSON: Final = "application/json"
_PREFIX: Final = "ce-"
_MARK: Final = "ce-specversion"
_REQUIRED: Final = ("id", "source", "type")


def read_cloud_events(content: bytes, headers: Mapping[str, str]) -> list[Incoming]:
    """The events of a request.

    Args:
        content: Its body.
        headers: Its headers, names in lower case.

    Raises:
        Unacceptable: One of them is not taken, and so none.
    """
    return [Incoming(_checked(event), place=event["source"]) for event in _read(content, headers)]


def _read(content: bytes, headers: Mapping[str, str]) -> list[Event]:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in (STRUCTURED, BATCH):
        if _MARK in headers:
            raise Unacceptable(
                "CloudEvents headers do not go with a CloudEvents content type.", INVALID_CLOUD_EVENT_HEADER
            )
        return read_array(content, CLOUD_EVENT_SCHEMA) if media_type == BATCH else [_one(content)]
    if _MARK in headers:
        return [_of_headers(content, headers, media_type)]
    if media_type != _JSON:
        raise unsupported(
            f"The content type '{media_type}' is not supported: send {STRUCTURED}, {BATCH} or {_JSON}."
        )
    return [_one(content)]


def _one(content: bytes) -> Event:
    event = read_json(content)
    if isinstance(event, list):
        for item in event:
            check_is_object(item, CLOUD_EVENT_SCHEMA)
        raise misshapen(CLOUD_EVENT_SCHEMA, "StartObject", event)
    check_is_object(event, CLOUD_EVENT_SCHEMA)
    event_object: Event = event
    return event_object


def _of_headers(content: bytes, headers: Mapping[str, str], media_type: str) -> Event:
    event: Event = {
        name.removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    if content:
        if media_type and media_type != _JSON and not media_type.endswith("+json"):
            raise unsupported(f"The content type '{media_type}' is not supported for the data of an event.")
        event["datacontenttype"] = headers.get("content-type", _JSON)
        event["data"] = read_json(content)
    return event


def _checked(event: Event) -> Event:
    if event.get("specversion") != SPEC_VERSION:
        raise lacking(CLOUD_EVENT_SCHEMA, "specversion")
    for name in _REQUIRED:
        value = event.get(name)
        if not value or not isinstance(value, str):
            raise lacking(CLOUD_EVENT_SCHEMA, name)
    if event.get("time") is not None and not is_moment(event["time"]):
        raise mistimed(CLOUD_EVENT_SCHEMA, "time")
    if event.get("data") is not None and event.get("data_base64") is not None:
        raise Unacceptable("An event has 'data' or 'data_base64', not both.")
    return event

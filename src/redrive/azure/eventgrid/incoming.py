"""Events as a publisher sends them: in Event Grid's schema, as CloudEvents 1.0, or in a schema of the publisher's.

Event Grid's schema requires `id`, `subject`, `eventType` and `eventTime`, which need not say its zone. The service sets
`topic` and `metadataVersion`, and an empty `dataVersion` where there is none. A publisher to a topic may leave `topic`
out or name that topic; one to a domain has to name the domain's topic that the event is for.

CloudEvents come over HTTP as JSON, several as JSON, or one in headers. The data of the third kind has to be JSON here, as
the service has it.

    Content-Type                          the body is
    application/cloudevents+json          one event
    application/cloudevents-batch+json    an array of events
    any other, with ce-specversion        one event's data, its attributes in `ce-…` headers
    application/json                      one event
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from redrive.azure.eventgrid.notation import is_moment, read_text, timestamp
from redrive.azure.eventgrid.published import METADATA_VERSION, SPEC_VERSION
from redrive.azure.eventgrid.refusals import (
    INVALID_CLOUD_EVENT_HEADER,
    Unacceptable,
    malformed_time,
    missing_property,
    unexpected_shape,
    unsupported,
)
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    EVENT_GRID_SCHEMA,
    TopicSettings,
)

EVENTS_MAX: Final = 5_000  # in one request

Event = dict[str, Any]


@dataclass(slots=True)
class Incoming:
    """One event, accepted."""

    body: Event  # The event as stored, in the schema of its topic
    text: str = ""  # The same as JSON
    # The short name of the domain topic that it is for; None outside domains, and where it has none.
    domain_topic: str | None = None
    # For a custom event: what the topic's mapping made of it.
    mapped: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Event:
        """The event as filters see it."""
        return {**self.body, **self.mapped} if self.mapped else self.body


def read_json(content: bytes) -> Any:
    """The value of a body in JSON; raises Unacceptable if it is not JSON."""
    try:
        return read_text(content)
    except ValueError as error:
        raise Unacceptable(f"The body is not valid JSON: {error}") from error


def read_array(content: bytes, schema: str) -> list[Event]:
    """The array of objects that a body is; raises Unacceptable if it is not acceptable, or too long."""
    value = read_json(content)
    if not isinstance(value, list):
        raise unexpected_shape(schema, "StartArray", value)
    if len(value) > EVENTS_MAX:
        raise Unacceptable(f"A request may have {EVENTS_MAX} events, not {len(value)}.")
    for each in value:
        check_is_object(each, schema)
    return value


def check_is_object(event: object, schema: str) -> None:
    """Refuse what is not an object.

    Raises:
        Unacceptable: And where it is a text, why that usually is.
    """
    if isinstance(event, str):
        raise Unacceptable(
            "An event is a JSON object, and this one is a text. azure-eventgrid sends the Python representation of a"
            " CloudEvent as a text when the package 'cloudevents' is installed in version 2, which it does not know:"
            " install 'cloudevents<2'."
        )
    if not isinstance(event, dict):
        raise unexpected_shape(schema, "StartObject", event)


_REQUIRED: Final = ("id", "eventType", "eventTime")


def read_events(content: bytes, resource_id: str, *, in_domain: bool) -> list[Incoming]:
    """The events of a request to a topic or a domain; raises Unacceptable if one of them is not taken, and so none."""
    return [
        _read_event(event, resource_id, in_domain=in_domain)
        for event in read_array(content, EVENT_GRID_SCHEMA)
    ]


def _read_event(event: Event, resource_id: str, *, in_domain: bool) -> Incoming:
    """An event of Event Grid's schema, checked, with the members set that the service sets; raises Unacceptable."""
    for name in _REQUIRED:
        value = event.get(name)
        if not value or not isinstance(value, str):
            raise missing_property(EVENT_GRID_SCHEMA, name)
    if not isinstance(event.get("subject"), str):
        raise missing_property(EVENT_GRID_SCHEMA, "subject")
    if not is_moment(event["eventTime"], needs_zone=False):
        raise malformed_time(EVENT_GRID_SCHEMA, "eventTime")
    version = event.get("metadataVersion")
    if version is not None and version != METADATA_VERSION:
        raise Unacceptable(f"The property 'metadataVersion' has to be '{METADATA_VERSION}' where it is set.")
    source = _domain_topic(event, resource_id, in_domain=in_domain)
    event["topic"] = resource_id if source is None else f"{resource_id}/topics/{source}"
    event["metadataVersion"] = METADATA_VERSION
    if event.get("dataVersion") is None:
        event["dataVersion"] = ""
    return Incoming(event, domain_topic=source)


def _domain_topic(event: Event, resource_id: str, *, in_domain: bool) -> str | None:
    """The domain topic that an event names; None outside domains."""
    topic = event.get("topic")
    if in_domain:
        if not topic or not isinstance(topic, str):
            raise missing_property(EVENT_GRID_SCHEMA, "topic")
        return short_name(topic, resource_id)
    if topic and (not isinstance(topic, str) or topic.lower() != resource_id.lower()):
        raise Unacceptable(f"The property 'topic' has to be '{resource_id}' where it is set.")
    return None


def short_name(topic: str, resource_id: str) -> str:
    """A domain topic's own name, from that or from its whole ARM id."""
    prefix = f"{resource_id}/topics/"
    return topic[len(prefix) :] if topic.lower().startswith(prefix.lower()) else topic


# Events in a publisher's own schema: any JSON objects, and what a topic's mapping makes of them.
#
#     {"id": {"sourceField": "number"}, "subject": {"sourceField": "about", "defaultValue": "orders"}, …}
#
# An id and a time that are not mapped are made here; a topic that is not mapped is the resource.

_REQUIRED_CUSTOM: Final = ("eventType", "subject")
_OPTIONAL: Final = ("dataVersion",)


def read_custom_events(
    content: bytes, settings: TopicSettings, now: int, new_id: Callable[[], str], *, in_domain: bool
) -> list[Incoming]:
    """The events of a request to a topic or a domain; raises Unacceptable if one of them is not taken, and so none."""
    events = read_array(content, CUSTOM_EVENT_SCHEMA)
    return [_read_custom_event(event, settings, now, new_id, in_domain=in_domain) for event in events]


def _read_custom_event(
    event: Event, settings: TopicSettings, now: int, new_id: Callable[[], str], *, in_domain: bool
) -> Incoming:
    """A custom event with the members that the topic's mapping finds in it; raises Unacceptable."""
    mapped = {
        "id": _mapped_text(event, settings.mapping, "id") or new_id(),
        "eventTime": _mapped_text(event, settings.mapping, "eventTime") or timestamp(now),
        "topic": settings.id,
    }
    if not is_moment(mapped["eventTime"], needs_zone=False):
        raise malformed_time(CUSTOM_EVENT_SCHEMA, "eventTime")
    for name in _REQUIRED_CUSTOM:
        value = _mapped_text(event, settings.mapping, name)
        if value is None:
            raise missing_property(CUSTOM_EVENT_SCHEMA, name)
        mapped[name] = value
    for name in _OPTIONAL:
        mapped[name] = _mapped_text(event, settings.mapping, name) or ""
    topic_name = None
    if in_domain:
        topic = _mapped_text(event, settings.mapping, "topic")
        if not topic:
            raise missing_property(CUSTOM_EVENT_SCHEMA, "topic")
        topic_name = short_name(topic, settings.id)
        mapped["topic"] = f"{settings.id}/topics/{topic_name}"
    return Incoming(event, domain_topic=topic_name, mapped=mapped)


def _mapped_text(event: Event, mapping: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    """The field of an event that a member is mapped to, or the mapping's default, as a text; None: neither."""
    rule = mapping.get(name) or {}
    value = event.get(rule.get("sourceField") or "")
    if isinstance(value, dict | list):
        value = None
    if value is None:
        value = rule.get("defaultValue")
    return None if value is None else str(value)


STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
_JSON: Final = "application/json"
_PREFIX: Final = "ce-"
_MARK: Final = "ce-specversion"
_CLOUD_EVENT_REQUIRED: Final = ("id", "source", "type")


def read_cloud_events(content: bytes, headers: Mapping[str, str]) -> list[Incoming]:
    """The events of a request; raises Unacceptable if one of them is not taken, and so none."""
    return [
        Incoming(_valid_cloud_event(event), domain_topic=event["source"]) for event in _read(content, headers)
    ]


def _read(content: bytes, headers: Mapping[str, str]) -> list[Event]:
    """The CloudEvents of a request, by its content type: structured, a batch, or one in headers."""
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
    """The one event that a body is; raises Unacceptable if it is a list or not an object."""
    event = read_json(content)
    if isinstance(event, list):
        for item in event:
            check_is_object(item, CLOUD_EVENT_SCHEMA)
        raise unexpected_shape(CLOUD_EVENT_SCHEMA, "StartObject", event)
    check_is_object(event, CLOUD_EVENT_SCHEMA)
    event_object: Event = event
    return event_object


def _of_headers(content: bytes, headers: Mapping[str, str], media_type: str) -> Event:
    """The event whose attributes are headers, and whose data is the body."""
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


def _valid_cloud_event(event: Event) -> Event:
    """The event, if it is one of CloudEvents 1.0; raises Unacceptable."""
    if event.get("specversion") != SPEC_VERSION:
        raise missing_property(CLOUD_EVENT_SCHEMA, "specversion")
    for name in _CLOUD_EVENT_REQUIRED:
        value = event.get(name)
        if not value or not isinstance(value, str):
            raise missing_property(CLOUD_EVENT_SCHEMA, name)
    if event.get("time") is not None and not is_moment(event["time"]):
        raise malformed_time(CLOUD_EVENT_SCHEMA, "time")
    if event.get("data") is not None and event.get("data_base64") is not None:
        raise Unacceptable("An event has 'data' or 'data_base64', not both.")
    return event

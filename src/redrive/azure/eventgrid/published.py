"""An event's headers, kept in JSON beside its text, and the event in the schema that a subscriber asked for.

    {"envelope":"eventgrid",
     "schema":"EventGridSchema",     what its publisher wrote; the body is the event in this schema
     "topic":"/subscriptions/…",     the resource it was published to
     "published_at":1767225600000,   ms
     "mapped":{"id":"…",…},          of a custom event: what the topic's mapping made of it
     "letter":{…}}                   of a dead letter on its way to its store, see Letter

is the envelope, the same for all subscribers. A delivery to a queue of this server has `"as": <schema>` before it where
that is another schema: who receives it sees it in that.

    published as     Event Grid       CloudEvent         the publisher's own
    Event Grid       as it is         id, topic → source, eventType → type, eventTime → time, subject, data
    CloudEvent                        as it is
    custom           what the topic's mapping made of it, with the whole of it as data; as it is

A pair that is not in the table cannot be subscribed to. `dataVersion` has no place in a CloudEvent: the documentation's
samples since 2022 leave it out.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

import orjson

from redrive.azure.eventgrid.names import ENVELOPE
from redrive.azure.eventgrid.notation import read_text, written_text
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    CUSTOM_INPUT_SCHEMA,
    EVENT_GRID_SCHEMA,
)


@dataclass(frozen=True, slots=True)
class Letter:
    """The reason that an event is a dead letter."""

    reason: str  # `MaxDeliveryAttemptsExceeded` …
    attempts: int  # Number of attempts
    schema: str  # Schema of its subscriber, in which it is stored
    destination_type: str  # Endpoint type of its subscriber: `WebHook` …
    result: str | None  # Outcome of the last attempt: `NotFound` …; None: see the notes of the attempts
    attempted_at: int | None  # When the last attempt ended (ms); None likewise
    backlog: int  # The number of the backlog that it stood in, under which its attempts are noted
    message_id: str  # Its original message id, in hexadecimal


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event without its text; see the module for its fields."""

    schema: str
    topic: str
    published_at: int
    mapped: Mapping[str, str] = field(default_factory=dict)
    letter: Letter | None = None
    delivered_as: str | None = None

    def envelope(self) -> bytes:
        """The headers that all subscribers share."""
        headers: dict[str, Any] = {
            "envelope": ENVELOPE,
            "schema": self.schema,
            "topic": self.topic,
            "published_at": self.published_at,
        }
        if self.mapped:
            headers["mapped"] = self.mapped
        if self.letter is not None:
            headers["letter"] = asdict(self.letter)
        return orjson.dumps(headers)

    @classmethod
    def unpack(cls, headers: bytes | None) -> Self:
        """Read the headers of a delivery, or an envelope, which is the same without `as`.

        Raises:
            KeyError: There are none.
        """
        header_document = orjson.loads(headers or b"{}")
        letter = header_document.get("letter")
        return cls(
            schema=header_document["schema"],
            topic=header_document["topic"],
            published_at=header_document["published_at"],
            mapped=header_document.get("mapped", {}),
            letter=None if letter is None else Letter(**letter),
            delivered_as=header_document.get("as"),
        )


def delivered_as(envelope: bytes, schema: str) -> bytes:
    """An envelope that says what its subscriber gets, without writing it again."""
    return b'{"as":%b,%b' % (orjson.dumps(schema), envelope[1:])


METADATA_VERSION: Final = "1"
SPEC_VERSION: Final = "1.0"

# The order in which the documentation prints an event's members.
ORDER: Final = ("id", "eventTime", "eventType", "dataVersion", "metadataVersion", "topic", "subject", "data")


def is_as_published(input_schema: str, schema: str) -> bool:
    """True if a subscriber to this schema gets events of that input schema word for word."""
    if input_schema == CUSTOM_EVENT_SCHEMA:
        return schema == CUSTOM_INPUT_SCHEMA
    return input_schema in (schema, CLOUD_EVENT_SCHEMA)


def render_event(body: str, published_event: PublishedEvent, schema: str) -> str:
    """An event's text in the schema that a subscriber asked for."""
    if is_as_published(published_event.schema, schema):
        return body
    event = read_text(body.encode())
    if schema == CLOUD_EVENT_SCHEMA:
        return written_text(as_cloud_event(event, published_event))
    return written_text(as_event_grid(event, published_event))


def as_event_grid(event: Mapping[str, Any], published_event: PublishedEvent) -> dict[str, Any]:
    """An event in Event Grid's schema, its members in the documented order; others come last."""
    if published_event.schema == EVENT_GRID_SCHEMA:
        members = {name: event[name] for name in ORDER if name in event}
        return members | {name: value for name, value in event.items() if name not in members}
    rendered_event = {**published_event.mapped, "metadataVersion": METADATA_VERSION, "data": event}
    return {name: rendered_event[name] for name in ORDER}


def as_cloud_event(event: Mapping[str, Any], published_event: PublishedEvent) -> dict[str, Any]:
    """An event as a CloudEvent."""
    if published_event.schema == CLOUD_EVENT_SCHEMA:
        return dict(event)
    event_grid_event = as_event_grid(event, published_event)
    cloud_event = {
        "id": event_grid_event["id"],
        "source": event_grid_event.get("topic", published_event.topic),
        "specversion": SPEC_VERSION,
        "type": event_grid_event["eventType"],
        "subject": event_grid_event.get("subject"),
        "time": event_grid_event.get("eventTime"),
    }
    cloud_event = {name: value for name, value in cloud_event.items() if value is not None}
    return cloud_event | ({"data": event_grid_event["data"]} if "data" in event_grid_event else {})

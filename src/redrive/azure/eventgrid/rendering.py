"""An event in the schema that a subscriber asked for.

    published as     Event Grid       CloudEvent         the publisher's own
    Event Grid       as it is         id, topic → source, eventType → type, eventTime → time, subject, data
    CloudEvent                        as it is
    custom           what the topic's mapping made of it, with the whole of it as data; as it is

A pair that is not in the table cannot be subscribed to. `dataVersion` has no place in a CloudEvent: the documentation's
samples since 2022 leave it out.
"""

from collections.abc import Mapping
from typing import Any, Final

from redrive.azure.eventgrid import json_text
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    CUSTOM_INPUT_SCHEMA,
    EVENT_GRID_SCHEMA,
)

METADATA_VERSION: Final = "1"
SPEC_VERSION: Final = "1.0"

# The order in which the documentation prints an event's members.
ORDER: Final = ("id", "eventTime", "eventType", "dataVersion", "metadataVersion", "topic", "subject", "data")


def is_as_published(input_schema: str, schema: str) -> bool:
    """True if a subscriber to this schema gets events of that input schema word for word."""
    if input_schema == CUSTOM_EVENT_SCHEMA:
        return schema == CUSTOM_INPUT_SCHEMA
    return input_schema in (schema, CLOUD_EVENT_SCHEMA)


def rendered(body: str, published: PublishedEvent, schema: str) -> str:
    """An event's text for a subscriber.

    Args:
        body: As it was published.
        published: What is kept beside it.
        schema: What the subscriber asked for.
    """
    if is_as_published(published.schema, schema):
        return body
    event = json_text.read(body.encode())
    if schema == CLOUD_EVENT_SCHEMA:
        return json_text.written(as_cloud_event(event, published))
    return json_text.written(as_event_grid(event, published))


def as_event_grid(event: Mapping[str, Any], published: PublishedEvent) -> dict[str, Any]:
    """An event in Event Grid's schema, its members in the documented order; those of nobody's come last."""
    if published.schema == EVENT_GRID_SCHEMA:
        known = {name: event[name] for name in ORDER if name in event}
        return known | {name: value for name, value in event.items() if name not in known}
    rendered_event = {**published.mapped, "metadataVersion": METADATA_VERSION, "data": event}
    return {name: rendered_event[name] for name in ORDER}


def as_cloud_event(event: Mapping[str, Any], published: PublishedEvent) -> dict[str, Any]:
    """An event as a CloudEvent."""
    if published.schema == CLOUD_EVENT_SCHEMA:
        return dict(event)
    event_grid_event = as_event_grid(event, published)
    cloud_event = {
        "id": event_grid_event["id"],
        "source": event_grid_event.get("topic", published.topic),
        "specversion": SPEC_VERSION,
        "type": event_grid_event["eventType"],
        "subject": event_grid_event.get("subject"),
        "time": event_grid_event.get("eventTime"),
    }
    cloud_event = {name: value for name, value in cloud_event.items() if value is not None}
    return cloud_event | ({"data": event_grid_event["data"]} if "data" in event_grid_event else {})

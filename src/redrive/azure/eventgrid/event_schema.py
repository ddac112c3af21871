"""Event Grid's own schema, as publishers write it.

Required are `id`, `subject`, `eventType` and `eventTime`, which need not say its zone. The service sets `topic` and
`metadataVersion`, and an empty `dataVersion` where there is none. A publisher to a topic may leave `topic` out or name
that topic; one to a domain has to name the domain's topic that the event is for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from redrive.azure.eventgrid.incoming import Event, Incoming, read_array
from redrive.azure.eventgrid.refusals import Unacceptable, lacking, mistimed
from redrive.azure.eventgrid.rendering import METADATA_VERSION
from redrive.azure.eventgrid.settings import CUSTOM_EVENT_SCHEMA, EVENT_GRID_SCHEMA, TopicSettings
from redrive.azure.eventgrid.times import is_moment, timestamp

_REQUIRED: Final = ("id", "eventType", "eventTime")


def read_events(content: bytes, resource_id: str, *, in_domain: bool) -> list[Incoming]:
    """The events of a request.

    Args:
        content: Its body.
        resource_id: The topic's or the domain's ARM id.
        in_domain: Whether it is a domain's.

    Raises:
        Unacceptable: One of them is not taken, and so none.
    """
    return [
        _accepted(event, resource_id, in_domain=in_domain) for event in read_array(content, EVENT_GRID_SCHEMA)
    ]


def _accepted(event: Event, resource_id: str, *, in_domain: bool) -> Incoming:
    for name in _REQUIRED:
        value = event.get(name)
        if not value or not isinstance(value, str):
            raise lacking(EVENT_GRID_SCHEMA, name)
    if not isinstance(event.get("subject"), str):
        raise lacking(EVENT_GRID_SCHEMA, "subject")
    if not is_moment(event["eventTime"], zoned=False):
        raise mistimed(EVENT_GRID_SCHEMA, "eventTime")
    version = event.get("metadataVersion")
    if version is not None and version != METADATA_VERSION:
        raise Unacceptable(f"The property 'metadataVersion' has to be '{METADATA_VERSION}' where it is set.")
    source = _domain_topic(event, resource_id, in_domain=in_domain)
    event["topic"] = resource_id if source is None else f"{resource_id}/topics/{source}"
    event["metadataVersion"] = METADATA_VERSION
    if event.get("dataVersion") is None:
        event["dataVersion"] = ""
    return Incoming(event, place=source)


def _domain_topic(event: Event, resource_id: str, *, in_domain: bool) -> str | None:
    """The domain topic that an event names; None outside domains."""
    topic = event.get("topic")
    if in_domain:
        if not topic or not isinstance(topic, str):
            raise lacking(EVENT_GRID_SCHEMA, "topic")
        return short_name(topic, resource_id)
    if topic and (not isinstance(topic, str) or topic.lower() != resource_id.lower()):
        raise Unacceptable(f"The property 'topic' has to be '{resource_id}' where it is set.")
    return None


def short_name(topic: str, resource_id: str) -> str:
    """A domain topic's own name, from that or from its whole ARM id."""
    within = f"{resource_id}/topics/"
    return topic[len(within) :] if topic.lower().startswith(within.lower()) else topic


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
    """The events of a request.

    Args:
        content: Its body.
        settings: The topic's or the domain's.
        now: ms.
        new_id: Makes ids.
        in_domain: Whether it is a domain's.

    Raises:
        Unacceptable: One of them is not taken, and so none.
    """
    events = read_array(content, CUSTOM_EVENT_SCHEMA)
    return [_accepted_custom(event, settings, now, new_id, in_domain=in_domain) for event in events]


def _accepted_custom(
    event: Event, settings: TopicSettings, now: int, new_id: Callable[[], str], *, in_domain: bool
) -> Incoming:
    mapped = {
        "id": _mapped(event, settings.mapping, "id") or new_id(),
        "eventTime": _mapped(event, settings.mapping, "eventTime") or timestamp(now),
        "topic": settings.id,
    }
    if not is_moment(mapped["eventTime"], zoned=False):
        raise mistimed(CUSTOM_EVENT_SCHEMA, "eventTime")
    for name in _REQUIRED_CUSTOM:
        value = _mapped(event, settings.mapping, name)
        if value is None:
            raise lacking(CUSTOM_EVENT_SCHEMA, name)
        mapped[name] = value
    for name in _OPTIONAL:
        mapped[name] = _mapped(event, settings.mapping, name) or ""
    topic_name = None
    if in_domain:
        topic = _mapped(event, settings.mapping, "topic")
        if not topic:
            raise lacking(CUSTOM_EVENT_SCHEMA, "topic")
        topic_name = short_name(topic, settings.id)
        mapped["topic"] = f"{settings.id}/topics/{topic_name}"
    return Incoming(event, place=topic_name, mapped=mapped)


def _mapped(event: Event, mapping: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    rule = mapping.get(name) or {}
    value = event.get(rule.get("sourceField") or "")
    if isinstance(value, dict | list):
        value = None
    if value is None:
        value = rule.get("defaultValue")
    return None if value is None else str(value)

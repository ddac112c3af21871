"""Events in a publisher's own schema: any JSON objects, and what a topic's mapping makes of them.

    {"id": {"sourceField": "number"}, "subject": {"sourceField": "about", "defaultValue": "orders"}, …}

An id and a time that are not mapped are made here; a topic that is not mapped is the resource.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from redrive.azure.eventgrid.event_schema import short_name
from redrive.azure.eventgrid.incoming import Event, Incoming, read_array
from redrive.azure.eventgrid.refusals import lacking, mistimed
from redrive.azure.eventgrid.settings import CUSTOM_EVENT_SCHEMA, TopicSettings
from redrive.azure.eventgrid.times import is_moment, timestamp

_REQUIRED: Final = ("eventType", "subject")
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
    return [_accepted(event, settings, now, new_id, in_domain=in_domain) for event in events]


def _accepted(
    event: Event, settings: TopicSettings, now: int, new_id: Callable[[], str], *, in_domain: bool
) -> Incoming:
    mapped = {
        "id": _mapped(event, settings.mapping, "id") or new_id(),
        "eventTime": _mapped(event, settings.mapping, "eventTime") or timestamp(now),
        "topic": settings.id,
    }
    if not is_moment(mapped["eventTime"], zoned=False):
        raise mistimed(CUSTOM_EVENT_SCHEMA, "eventTime")
    for name in _REQUIRED:
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

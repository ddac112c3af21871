"""Delivery attributes: headers that a subscription adds to each delivery, said outright or taken from the event."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.azure.eventgrid.settings import DeliveryAttribute

VALUE_BYTES_MAX: Final = 4096  # "each header value should not exceed 4,096 bytes"
_ROOT: Final = "$."


def headers(attributes: Iterable[DeliveryAttribute], *events: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one delivery; an attribute whose field the event does not have is left out.

    Args:
        attributes: The subscription's.
        events: The event in the forms in which a field may be looked for: the first that has it counts.
    """
    values = ((each.name, _value(each, events)) for each in attributes)
    return {name: value for name, value in values if value is not None and _may_be_sent(value)}


def needs_event(attributes: Iterable[DeliveryAttribute]) -> bool:
    """True if any of them is taken from the event."""
    return any(each.source_field is not None for each in attributes)


def _value(attribute: DeliveryAttribute, events: Iterable[Mapping[str, Any]]) -> str | None:
    if attribute.source_field is None:
        return attribute.value
    path = attribute.source_field.removeprefix(_ROOT).split(".")
    texts = (_text(_at(event, path)) for event in events)
    return next((text for text in texts if text is not None), None)


def _at(event: Mapping[str, Any], path: Iterable[str]) -> object:
    value: object = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: object) -> str | None:
    """Texts, numbers and booleans resolve; objects, arrays and null do not."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _may_be_sent(value: str) -> bool:
    """A line break would end the header and begin another."""
    return len(value.encode()) <= VALUE_BYTES_MAX and not set(value) & {"\r", "\n", "\0"}

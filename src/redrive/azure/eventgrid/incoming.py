"""Events as a publisher's request has them, whatever their schema: what each schema's reader makes of a body."""

from dataclasses import dataclass, field
from typing import Any, Final

from redrive.azure.eventgrid import json_text
from redrive.azure.eventgrid.refusals import Unacceptable, misshapen

EVENTS_MAX: Final = 5_000  # in one request

Event = dict[str, Any]


@dataclass(slots=True)
class Incoming:
    """One event, accepted."""

    body: Event  # The event as stored, in the schema of its topic
    text: str = ""  # The same as JSON
    # The short name of the domain topic that it is for; None outside domains, and where it has none.
    place: str | None = None
    # For a custom event: what the topic's mapping made of it.
    mapped: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Event:
        """The event as filters see it."""
        return {**self.body, **self.mapped} if self.mapped else self.body


def read_json(content: bytes) -> Any:
    """The JSON that a body is.

    Raises:
        Unacceptable: Not acceptable.
    """
    try:
        return json_text.read(content)
    except ValueError as error:
        raise Unacceptable(f"The body is not valid JSON: {error}") from error


def read_array(content: bytes, schema: str) -> list[Event]:
    """The array of objects that a body is.

    Raises:
        Unacceptable: Not acceptable, or too long.
    """
    value = read_json(content)
    if not isinstance(value, list):
        raise misshapen(schema, "StartArray", value)
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
        raise misshapen(schema, "StartObject", event)

"""A message: what was published, before it is owed to anyone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # an attempt is one of a delivery, and that of a message
    from redrive.model.attempt import Attempt
    from redrive.model.topic import Subscription


class Attribute(NamedTuple):
    """A message attribute: its declared type and its text.

    The type decides how the text is read: one that begins with `Number` is a number, `String.Array` is a JSON
    array of scalars, any other `String` is the text itself. An attribute of another type (`Binary`) is not
    there for a filter.
    """

    data_type: str
    text: str


@dataclass(slots=True)
class Message:
    """A message as its sender submits it."""

    id: bytes  # 16 bytes, made by the runtime's id maker
    body: str  # The text
    # What the accepting facade keeps beside the body, in its own encoding; opaque to the engine.
    headers: bytes | None = None
    group_id: str | None = None  # The message group, None for none
    deduplication_id: str | None = None  # As the sender gave it
    delay_ms: int | None = None  # How long it waits before it may be claimed; None for the queue's own delay


@dataclass(slots=True)
class Publication:
    """A publication as its publisher submits it to a topic."""

    id: bytes  # 16 bytes
    body: str  # The text
    bodies: Mapping[str, str]  # Other texts for endpoints of some protocols
    attributes: Mapping[str, Attribute]  # Attributes as filters see them: name, declared type and text
    envelope: bytes  # Data that the dialect stores beside the body for every subscriber, in its own encoding
    bytes_published: int  # Size for limits and billing, attributes included
    group_id: str | None = None  # The message group, None for none
    deduplication_id: str | None = None  # As the publisher gave it
    # The body as filters on events see it, where it was parsed already.
    document: Mapping[str, object] | None = None
    # Why a queue refuses it where a subscription wants the text alone; None: it does not.
    raw_refusal: "Attempt | None" = None
    # What of it a subscriber gets that wants it, or why none; None: all get this.
    screen: "Callable[[Subscription], Publication | Attempt] | None" = None

    def body_for(self, protocol: str) -> str:
        """The text that endpoints of a protocol get."""
        return self.bodies.get(protocol, self.body)

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
    """A message as its sender submits it.

    Attributes:
        id: 16 bytes, made by the runtime's id maker.
        body: The text.
        headers: What the accepting facade keeps beside the body, in its own encoding; opaque to the engine.
        group_id: The message group, None for none.
        deduplication_id: As the sender gave it.
        delay_ms: How long it waits before it may be claimed; None for the queue's own delay.
    """

    id: bytes
    body: str
    headers: bytes | None = None
    group_id: str | None = None
    deduplication_id: str | None = None
    delay_ms: int | None = None


@dataclass(slots=True)
class Publication:
    """A publication as its publisher submits it to a topic.

    Attributes:
        id: 16 bytes.
        body: The text.
        bodies: Other texts for endpoints of some protocols.
        attributes: What filters see of the attributes: name, declared type and text.
        envelope: What the dialect keeps beside the body for every subscriber, in its own encoding.
        bytes_published: What it weighs, attributes included.
        group_id: The message group, None for none.
        deduplication_id: As the publisher gave it.
        raw_refusal: Why a queue refuses it where a subscription wants the text alone; None: it does not.
        document: The body as filters on events see it, where it was parsed already.
        screen: What of it a subscriber gets that wants it, or why none; None: all get this.
    """

    id: bytes
    body: str
    bodies: Mapping[str, str]
    attributes: Mapping[str, Attribute]
    envelope: bytes
    bytes_published: int
    group_id: str | None = None
    deduplication_id: str | None = None
    document: Mapping[str, object] | None = None
    raw_refusal: "Attempt | None" = None
    screen: "Callable[[Subscription], Publication | Attempt] | None" = None

    def body_for(self, protocol: str) -> str:
        """The text that endpoints of a protocol get."""
        return self.bodies.get(protocol, self.body)

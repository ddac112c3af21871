"""Headers of an event's delivery, kept in JSON beside its text.

    {"envelope":"eventgrid",
     "schema":"EventGridSchema",     what its publisher wrote; the body is the event in this schema
     "topic":"/subscriptions/…",     the resource it was published to
     "published_at":1767225600000,   ms
     "mapped":{"id":"…",…},          of a custom event: what the topic's mapping made of it
     "letter":{…}}                   of a dead letter on its way to its store, see Letter

is the envelope, the same for all subscribers. A delivery to a queue of this server has `"as": <schema>` before it where
that is another schema: who receives it sees it in that.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

from redrive.azure.eventgrid.names import ENVELOPE


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
        """Read the headers of a delivery, or an envelope."""
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

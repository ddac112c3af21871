"""A topic: where messages are published to; a subscription: who wants them; a message, before it is owed to anyone."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from redrive.model.attempt import Attempt
from redrive.model.document import Document
from redrive.model.names import ResourceName, content_deduplication_id

POLICY: Final = "policy"
EVENTS: Final = "events"
_PASSWORD: Final = re.compile(r"^(\w+://[^/?#:]*:)[^/?#]*@")


def without_password(url: str) -> str:
    """A URL without secrets: `https://user:****@host/`."""
    return _PASSWORD.sub(r"\1****@", url)


def without_secrets(url: str) -> str:
    """A URL without its password and its query, each of which may open what it leads to."""
    return without_password(url.partition("?")[0])


@dataclass(frozen=True, slots=True)
class Topic(Document):
    """One topic as configured."""

    restored: ClassVar = {"name": ResourceName._make}

    # The store's number for it, never reused; what is published to an ordered topic is deduplicated under it.
    id: int
    name: ResourceName  # Account, region and name
    # Name of the facade it was created through (`sns`), which renders the messages of its subscribers
    dialect: str
    ordered: bool = False  # Messages of one group reach each subscriber in order
    # An ordered topic takes the body's SHA-256 where a publisher gives no deduplication id.
    deduplicates_content: bool = False
    deduplicates_per_group: bool = False  # Deduplication ids are told apart by message group
    archive_ms: int = 0  # How long published messages are kept for replay; 0 for not at all
    # What only the facade understands, in its own words (policies, feedback roles, display name).
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels
    created_at: int = 0  # ms


@dataclass(frozen=True, slots=True)
class Subscription(Document):
    """One subscriber of one topic."""

    restored: ClassVar = {
        "topic": ResourceName._make,
        "dead_letter": ResourceName._make,
        "carries_to": ResourceName._make,
    }

    id: str  # Unique within the topic
    topic: ResourceName  # Topic whose messages it receives
    queue_id: int  # The number of its backlog: the queue of deliveries that Redrive pushes to the endpoint
    owner: str  # The account it belongs to
    protocol: str  # The kind of endpoint: `http`, `https`, `queue`, `function`, `email` …
    endpoint: str  # Target address, in the form of the protocol
    # Whether it gets messages; an endpoint that has to agree first is not confirmed yet.
    confirmed: bool = True
    raw: bool = False  # The endpoint gets the message alone, without an envelope
    filter_text: str | None = None  # Its filter as given, or None
    filter_body: bool = False  # The filter looks at the body rather than at the attributes
    dead_letter: ResourceName | None = None  # Queue that its dead letters go to; None: there is none
    # What only the facade understands, in its own words (delivery policy, role, confirmation token).
    attributes: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0  # ms
    # What the filter is written in: POLICY (`redrive.model.filtering.read_policy`) or EVENTS
    # (`read_event_filter`, which always looks at the whole event).
    filter_language: str = POLICY
    expires_at: int | None = None  # Nothing is published to it from then on (ms); None: it does not expire
    # An endpoint's 4xx that is not retried counts as delivered, where it would be refused.
    client_errors_delivered: bool = False
    # Its endpoint has a circuit breaker, also where the dialect has none; named as stores have it.
    rests: bool = False
    # The number of the queue where what is published waits behind a replay; None: there was none yet.
    waiting_id: int | None = None
    # The replay that lets what is published wait there. Without one, it still goes behind what waits there.
    held_by: str | None = None
    # What tells its subscriber from the topic's others: of one there is one subscription. None: nothing.
    subscriber: str | None = None
    # The queue that it takes a service's dead letters to, as a client would (a function's, for instance).
    carries_to: ResourceName | None = None

    @property
    def is_held(self) -> bool:
        """True if what is published waits behind a replay."""
        return self.held_by is not None

    @property
    def key(self) -> str:
        """The topic's key and the id: what the directory keeps it under."""
        return f"{self.topic.key}/{self.id}"

    @property
    def backlogs(self) -> list[int]:
        """The numbers of the queues that are its own: of its backlog, and of what waits behind a replay."""
        return [self.queue_id] if self.waiting_id is None else [self.queue_id, self.waiting_id]

    @property
    def backlog_name(self) -> ResourceName:
        """The name of its backlogs when they are deleted."""
        return self.topic._replace(name=self.id)

    @property
    def endpoint_shown(self) -> str:
        """The endpoint with its password masked: `https://user:****@host/`."""
        return without_password(self.endpoint)

    @property
    def redacted_endpoint(self) -> str:
        """The endpoint as screens and logs may show it: `https://user:****@host/path?…`, whatever the query says."""
        location = without_secrets(self.endpoint)
        return f"{location}?…" if "?" in self.endpoint else location


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
    raw_refusal: Attempt | None = None
    # What of it a subscriber gets that wants it, or why none; None: all get this.
    screen: "Callable[[Subscription], Publication | Attempt] | None" = None

    def body_for(self, protocol: str) -> str:
        """The text that endpoints of a protocol get."""
        return self.bodies.get(protocol, self.body)


def deduplication_id(topic: Topic, publication: Publication) -> str:
    """The text by which a repetition on an ordered topic is recognised."""
    chosen_id = publication.deduplication_id
    if chosen_id is None and topic.deduplicates_content:
        return content_deduplication_id(publication.body)
    return chosen_id or ""

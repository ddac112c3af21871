"""A queue: a place that deliveries wait in, and the rules of that place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Self

from redrive.model.delivery import Limits
from redrive.model.names import ResourceName

DAY_MS = 24 * 60 * 60 * 1000
DEDUPLICATION_MS = 5 * 60 * 1000  # the five minutes of the SQS FIFO document


@dataclass(frozen=True, slots=True)
class DeadLetterTarget:
    """The dead-letter queue of a queue, and the claims after which it is used."""

    queue: ResourceName
    attempts_max: int


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The backlog that gets a copy of each dead letter, and how long a copy waits there before it is pushed."""

    queue_id: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue as configured; its deliveries are elsewhere."""

    id: int  # The store's number for it, never reused
    name: ResourceName  # Account, region and name
    # Deliveries of one message group are claimed in order of arrival, one claim at a time.
    ordered: bool = False
    delay_ms: int = 0  # How long a new message waits before it may be claimed
    lease_ms: int = 30_000  # How long a claim holds when the claimer does not say
    retention_ms: int = 4 * DAY_MS  # How long a message is kept
    wait_ms: int = 0  # How long an empty receive waits when the receiver does not say
    body_bytes_max: int = 1024 * 1024  # The largest message, attributes included
    dead_letter: DeadLetterTarget | None = None  # Where exhausted deliveries go, if anywhere
    # After so many claims a delivery is dropped where no dead-letter queue takes it; 0: it is offered for
    # ever.
    drops_after: int = 0
    # What was kept for `retention_ms` goes to the dead-letter queue, if that stands.
    buries_expired: bool = False
    # Where a copy of each dead letter is pushed from, besides; None: nowhere.
    copies: CopyTarget | None = None
    # The key of the subscription that callers receive from it for, and which it goes with; empty for none.
    serves: str = ""
    # An ordered queue takes the body's SHA-256 where a sender gives no deduplication id.
    deduplicates_content: bool = False
    deduplicates_per_group: bool = False  # Deduplication ids are told apart by message group
    # What only the facade understands, in its own words (policies, keys, quotas).
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels
    created_at: int = 0  # ms
    modified_at: int = 0  # ms
    purged_at: int = 0  # When it was emptied last (ms), 0 for never

    def limits(self, *, dead_letters: bool) -> Limits:
        """The limits of a delivery in this queue; `dead_letters`: the target stands ready."""
        attempts_max = self.dead_letter.attempts_max if self.dead_letter else self.drops_after
        return _limits(
            self.retention_ms, attempts_max, dead_letters, self.drops_after > 0, self.buries_expired
        )

    @property
    def ends_unasked(self) -> bool:
        """True if a delivery's end is looked for although no receiver asks for deliveries."""
        return self.drops_after > 0 or self.buries_expired

    def to_document(self) -> dict[str, Any]:
        """The queue as a JSON-ready document."""
        fields = asdict(self) | {"name": list(self.name)}
        if self.dead_letter is not None:
            fields["dead_letter"]["queue"] = list(self.dead_letter.queue)
        return fields

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        fields = dict(document)
        fields["name"] = ResourceName(*fields["name"])
        if target := fields.get("dead_letter"):
            fields["dead_letter"] = DeadLetterTarget(ResourceName(*target["queue"]), target["attempts_max"])
        if copies := fields.get("copies"):
            fields["copies"] = CopyTarget(**copies)
        return cls(**fields)


# Each claim asks for them: to find them takes a fifth of what it takes to make them.
_limits = lru_cache(maxsize=1024)(Limits)

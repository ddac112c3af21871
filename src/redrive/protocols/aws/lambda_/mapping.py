"""Event source mappings as they are kept: a queue, the function that its messages go to, and how."""

from collections.abc import Mapping as Document
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from redrive.engine.ports import DocumentKind
from redrive.model.names import ResourceName
from redrive.protocols.aws.lambda_.names import Named


@dataclass(frozen=True, slots=True)
class EventSourceMapping:
    """One queue that feeds one function.

    Attributes:
        id: A UUID.
        queue: Whose messages.
        function: Which function, or which of its versions or aliases.
        qualifier: As it was named; None: it was not.
        enabled: Whether messages are taken.
        batch_size: The largest number of messages of an invocation.
        window_seconds: How long messages are gathered for one.
        concurrency_max: How many invocations a node makes at once; None: as many as usual.
        partial: The function answers which messages of a batch failed.
        filters: Patterns in JSON, of which a message matches one or is deleted; empty: every message goes.
        modified_at: ms.
    """

    id: str
    queue: ResourceName
    function: ResourceName
    qualifier: str | None = None
    enabled: bool = True
    batch_size: int = 10
    window_seconds: int = 0
    concurrency_max: int | None = None
    partial: bool = False
    filters: tuple[str, ...] = ()
    modified_at: int = 0

    @property
    def key(self) -> str:
        """The key of its document: in its account and region."""
        return f"{self.function.account}/{self.function.region}/{self.id}"

    @property
    def named(self) -> Named:
        """The function as it was named."""
        return Named(self.function, self.qualifier)

    @property
    def queue_arn(self) -> str:
        """The ARN of the queue."""
        return f"arn:aws:sqs:{self.queue.region}:{self.queue.account}:{self.queue.name}"

    @property
    def ordered(self) -> bool:
        """True if the queue keeps the order of groups."""
        return self.queue.name.endswith(".fifo")

    def to_document(self) -> dict[str, Any]:
        """The mapping as a JSON-ready document."""
        return asdict(self) | {"queue": list(self.queue), "function": list(self.function)}

    @classmethod
    def from_document(cls, document: Document[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        places = {name: ResourceName(*document[name]) for name in ("queue", "function")}
        return cls(**{**document, **places, "filters": tuple(document["filters"])})


MAPPING: Final[DocumentKind[EventSourceMapping]] = DocumentKind(
    "event_source_mapping", EventSourceMapping.to_document, EventSourceMapping.from_document
)

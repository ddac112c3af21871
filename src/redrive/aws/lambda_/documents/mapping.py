"""Event source mappings as they are kept: a queue, the function that its messages go to, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from redrive.aws.lambda_.documents.names import FunctionReference
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName


@dataclass(frozen=True, slots=True)
class EventSourceMapping(Document):
    """One queue that feeds one function."""

    restored: ClassVar = {"queue": ResourceName._make, "function": ResourceName._make, "filters": tuple}

    id: str  # A UUID
    queue: ResourceName  # Source queue
    function: ResourceName  # Function, version or alias that it invokes
    qualifier: str | None = None  # As it was named; None: it was not
    enabled: bool = True  # Whether messages are taken
    batch_size: int = 10  # The largest number of messages of an invocation
    window_seconds: int = 0  # How long messages are gathered for one
    concurrency_max: int | None = None  # How many invocations a node makes at once; None: as many as usual
    partial: bool = False  # The function answers which messages of a batch failed
    # Patterns in JSON, of which a message matches one or is deleted; empty: every message goes.
    filters: tuple[str, ...] = ()
    modified_at: int = 0  # ms
    counted: bool = False  # Whether its messages are counted in its own metrics
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels

    @property
    def arn(self) -> str:
        """The ARN of the mapping."""
        location = f"{self.function.region}:{self.function.account}"
        return f"arn:aws:lambda:{location}:event-source-mapping:{self.id}"

    @property
    def key(self) -> str:
        """The key of its document: in its account and region."""
        return f"{self.function.account}/{self.function.region}/{self.id}"

    @property
    def named(self) -> FunctionReference:
        """The function as it was named."""
        return FunctionReference(self.function, self.qualifier)

    @property
    def queue_arn(self) -> str:
        """The ARN of the queue."""
        return f"arn:aws:sqs:{self.queue.region}:{self.queue.account}:{self.queue.name}"

    @property
    def ordered(self) -> bool:
        """True if the queue keeps the order of groups."""
        return self.queue.name.endswith(".fifo")


MAPPING: Final = DocumentKind.of("event_source_mapping", EventSourceMapping)

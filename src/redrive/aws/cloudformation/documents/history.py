"""Events of stacks, exports, and what waits for somebody's word."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from redrive.aws.cloudformation.documents.records import Stack, StackSettings
from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document
from redrive.model.names import ResourceName


@dataclass(frozen=True, slots=True)
class StackEvent(Document, Unremembered):
    """A moment in the life of a stack.

    Attributes:
        id: Unique.
        at: ms.
        logical_id: Of the resource, or the stack's name.
        physical_id: Of the resource, or the stack's ARN.
        type: Of the resource.
        status: The status it has from then on.
        reason: For it.
        properties: The resource's, as JSON.
        token: The caller's.
    """

    id: str
    at: int
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str = ""
    properties: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSet(Document):
    """A change that was looked at and may be carried out.

    Attributes:
        name: The caller's.
        id: Unique.
        stack: The stack's key.
        kind: `CREATE`, `UPDATE`.
        created_at: ms.
        settings: The settings that the change leads to.
        status: `CREATE_COMPLETE`, `FAILED` …
        execution: `AVAILABLE` …
        reason: For the status.
        description: The caller's.
        changes: As they are shown.
        on_failure: As of a stack.
        nested: It looks into nested stacks.
        token: The caller's.
    """

    restored: ClassVar = {"settings": StackSettings.from_document, "changes": tuple}

    name: str
    id: str
    stack: str
    kind: str
    created_at: int
    settings: StackSettings
    status: str = "CREATE_COMPLETE"
    execution: str = "AVAILABLE"
    reason: str = ""
    description: str = ""
    changes: tuple[Mapping[str, Any], ...] = ()
    on_failure: str = ""
    nested: bool = False
    token: str = ""

    @property
    def key(self) -> str:
        """The key of its document: a stack's change sets are beside each other, in the order they were made."""
        return f"{self.stack}/{self.created_at:015d}-{self.id}"


@dataclass(frozen=True, slots=True)
class Export(Document):
    """A value that other stacks of its account and region may import."""

    name: str
    value: str
    stack: str


@dataclass(frozen=True, slots=True)
class Import(Document):
    """A stack that uses an export."""

    export: str
    stack: str
    stack_name: str


@dataclass(frozen=True, slots=True)
class Signal(Document):
    """Somebody's word to a resource that waits: an answer of a custom resource, a signal of a wait condition.

    Attributes:
        id: Unique of the resource; the same again replaces it.
        status: `SUCCESS` or `FAILURE`.
        answer: All that was said.
    """

    id: str
    status: str
    answer: Mapping[str, Any] = field(default_factory=dict)


DIALECT: Final = "cloudformation"  # of the deliveries that notifications of events are
TO_TOPIC: Final = "cloudformation.event"  # what they are pushed to
EVENT: Final = DocumentKind.of("stack_event", StackEvent, secret=True)
CHANGE_SET: Final = DocumentKind.of("stack_change_set", ChangeSet, secret=True)
EXPORT: Final = DocumentKind.of("stack_export", Export)
IMPORT: Final = DocumentKind.of("stack_import", Import)
SIGNAL: Final = DocumentKind.of("stack_signal", Signal, secret=True)


def export_key(name: ResourceName, export: str) -> str:
    """The key of an export; its name may have slashes, which its key has escaped."""
    return f"{name.account}/{name.region}/{escaped(export)}"


def import_key(stack: Stack, export: str) -> str:
    """The key of a stack's use of an export."""
    return f"{export_key(stack.name, export)}/{stack.id}"


def escaped(text: str) -> str:
    """A text as a part of a key, in which a slash has a meaning."""
    return text.replace("%", "%25").replace("/", "%2F")

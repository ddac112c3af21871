"""Documents beside stacks: events, change sets, exports and their imports, signals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from redrive.aws.cloudformation.documents.records import Stack, StackSettings
from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document
from redrive.model.names import ResourceName


@dataclass(frozen=True, slots=True)
class StackEvent(Document, Unremembered):
    """A moment in the life of a stack."""

    id: str  # Unique
    at: int  # ms
    logical_id: str  # Logical id of the resource, or the stack's name
    physical_id: str  # Physical id of the resource, or the stack's ARN
    type: str  # Resource type
    status: str  # The status that the event brings
    reason: str = ""  # Status reason
    properties: str = ""  # The resource's, as JSON
    token: str = ""  # The caller's


@dataclass(frozen=True, slots=True)
class ChangeSet(Document):
    """A change that may be reviewed and executed."""

    restored: ClassVar = {"settings": StackSettings.from_document, "changes": tuple}

    name: str  # The caller's
    id: str  # Unique
    stack: str  # The stack's key
    kind: str  # `CREATE`, `UPDATE`
    created_at: int  # ms
    settings: StackSettings  # The settings that the change leads to
    status: str = "CREATE_COMPLETE"  # `CREATE_COMPLETE`, `FAILED` …
    execution: str = "AVAILABLE"  # `AVAILABLE` …
    reason: str = ""  # Status reason
    description: str = ""  # The caller's
    changes: tuple[Mapping[str, Any], ...] = ()  # The changes as callers see them
    on_failure: str = ""  # As of a stack
    nested: bool = False  # Includes nested stacks
    token: str = ""  # The caller's

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
    """A signal to a waiting resource: a custom resource's response, or a signal to a wait condition."""

    id: str  # Unique of the resource; the same again replaces it
    status: str  # `SUCCESS` or `FAILURE`
    answer: Mapping[str, Any] = field(default_factory=dict)  # The whole body of the signal


DIALECT: Final = "cloudformation"  # of deliveries that are notifications of events
TO_TOPIC: Final = "cloudformation.event"  # their endpoint
EVENT: Final = DocumentKind.of("stack_event", StackEvent, secret=True)
CHANGE_SET: Final = DocumentKind.of("stack_change_set", ChangeSet, secret=True)
EXPORT: Final = DocumentKind.of("stack_export", Export)
IMPORT: Final = DocumentKind.of("stack_import", Import)
SIGNAL: Final = DocumentKind.of("stack_signal", Signal, secret=True)


def export_key(name: ResourceName, export: str) -> str:
    """The key of an export, in which slashes of its name are escaped."""
    return f"{name.account}/{name.region}/{escape(export)}"


def import_key(stack: Stack, export: str) -> str:
    """The key of a stack's use of an export."""
    return f"{export_key(stack.name, export)}/{stack.id}"


def escape(text: str) -> str:
    """A text as a part of a key, in which a slash has a meaning."""
    return text.replace("%", "%25").replace("/", "%2F")

"""Documents of stacks: the stack itself, its templates and resources; their names, and what each status allows."""

import enum
import random
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from redrive.access.secret import Session
from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.gateway.identities import session_of
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document
from redrive.model.names import ResourceName

PATH: Final = "/_redrive/cloudformation/"  # of what is sent to stacks
NAME_CHARS_MAX: Final = 128
_NAME: Final = re.compile(r"[a-zA-Z][-a-zA-Z0-9]*")
_RANDOM_CHARS: Final = 12
_FORBIDDEN_CHARS: Final = re.compile(r"[^a-zA-Z0-9-]")


def stack_arn(name: ResourceName, stack: str) -> str:
    """The id of a stack."""
    return f"arn:aws:cloudformation:{name.region}:{name.account}:stack/{name.name}/{stack}"


def change_set_arn(name: ResourceName, change_set: str, number: str) -> str:
    """The id of a change set."""
    return f"arn:aws:cloudformation:{name.region}:{name.account}:changeSet/{change_set}/{number}"


def check_name(member: str, name: str) -> None:
    """Check a name that a caller chose; raises AwsError if it has forbidden characters, or too many."""
    if not _NAME.fullmatch(name):
        raise invalid(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member must"
            f" satisfy regular expression pattern: {_NAME.pattern}"
        )
    if len(name) > NAME_CHARS_MAX:
        raise invalid(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member must"
            f" have length less than or equal to {NAME_CHARS_MAX}"
        )


def id_in(text: str) -> str:
    """The unique part of an ARN of a stack or a change set; empty for a name."""
    return text.rpartition("/")[2] if text.startswith("arn:") else ""


def generate_name(
    rng: random.Random, stack: str, logical_id: str, chars_max: int, suffix: str, *, lower_case: bool
) -> str:
    """A unique name for a resource: `<stack>-<logical id>-<12 characters><suffix>`, shortened to fit.

    The logical id gets half of the room, or what the stack's name leaves if that is more.

    - `chars_max`: the most characters that it may have, at least 40; 0: any number.
    """
    letters = string.ascii_lowercase if lower_case else string.ascii_letters
    end = "".join(rng.choices(letters + string.digits, k=_RANDOM_CHARS))
    room = (chars_max or 10_000) - len(end) - len(suffix) - 2
    logical = _FORBIDDEN_CHARS.sub("", logical_id)[: max(room // 2, room - len(stack))]
    name = f"{stack[: room - len(logical)]}-{logical}-{end}{suffix}"
    return name.lower() if lower_case else name


@dataclass(frozen=True, slots=True)
class StackSettings(Document):
    """The specification of a stack by a caller; each change has new settings."""

    restored: ClassVar = {"capabilities": tuple, "topics": tuple}

    template: str  # The id of the template's text
    parameters: Mapping[str, str] = field(default_factory=dict)  # Their texts, by name
    # The values that parameters of the parameter store had, by name.
    resolved: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)  # Tags of the stack, and so of its resources
    capabilities: tuple[str, ...] = ()  # The capabilities that the caller agreed to
    topics: tuple[str, ...] = ()  # The ARNs of the topics that its events go to
    role: str = ""  # The ARN of the role that was given
    rollback: Mapping[str, Any] = field(default_factory=dict)  # As given, with alarms that would roll it back


@dataclass(frozen=True, slots=True)
class StackOutput:
    """An output of a stack: its value, and the name that it is exported by (empty: it is not)."""

    name: str
    value: str
    description: str = ""
    export: str = ""


@dataclass(frozen=True, slots=True)
class Stack(Document):
    """A stack."""

    restored: ClassVar = {
        "session": Session.from_claims,
        "name": ResourceName._make,
        "settings": StackSettings.from_document,
        "wanted": StackSettings.from_document,
        "outputs": lambda stored: tuple(StackOutput(**output) for output in stored),
        "retained": tuple,
        "skipped": tuple,
        "drift": tuple,
    }

    name: ResourceName  # Account, region and name; the name is free again once the stack is deleted
    id: str  # Unique
    caller: str  # The ARN of the principal that made it, or that made the last change to it
    status: str  # `CREATE_COMPLETE` …
    created_at: int  # ms
    settings: StackSettings  # Settings in force
    reason: str = ""  # Status reason
    # Target settings of a change that is in progress or was cut short by a failure
    wanted: StackSettings | None = None
    change: str = ""  # The id of the last change
    token: str = ""  # The caller's, of that change, which its events repeat
    on_failure: str = "ROLLBACK"  # For creations and changes: `ROLLBACK`, `DELETE` or `DO_NOTHING`
    deadline: int = 0  # The moment at which a creation has failed (ms); 0: none
    updated_at: int | None = None  # Start of the last update (ms); None: never updated
    deleted_at: int | None = None  # ms
    description: str = ""  # Description of the template
    outputs: tuple[StackOutput, ...] = ()  # Outputs of the last completed change
    protected: bool = False  # Termination protection
    policy: str = ""  # Policy of the stack: which resources may change
    policy_during: str = ""  # Replaces the stack policy during the last change; empty: it does not
    parent: str = ""  # The ARN of the stack that it is nested in
    root: str = ""  # The ARN of the outermost of those
    change_set: str = ""  # The ARN of the change set that was carried out last
    retained: tuple[str, ...] = ()  # The logical ids that a deletion leaves alone
    forced: bool = False  # A deletion leaves alone what it cannot delete
    skipped: tuple[str, ...] = ()  # The logical ids that a rollback leaves as they are
    drift: tuple[str, int] | tuple[()] = ()  # Result of the last drift detection: status and time (ms)
    # Of the caller, by which its rights are found again; None: it is the account's root.
    session: Session | None = None
    told_at: int = 0  # The moment of its last event (ms)

    @property
    def arn(self) -> str:
        """The id that callers know it by."""
        return stack_arn(self.name, self.id)

    @property
    def key(self) -> str:
        """The key of its document, and the beginning of those of its resources and events."""
        return f"{self.name.account}/{self.name.region}/{self.id}"

    @property
    def target_settings(self) -> StackSettings:
        """The settings that the change in progress leads to, or without one those in force."""
        return self.wanted or self.settings


def with_rights_of(stack: Stack, call: Call, role: str | None = None) -> Stack:
    """A stack whose change has a caller's rights, or those of a role; without a new role it keeps its own."""
    caller, session = call.principal.name, session_of(call.principal)
    if not role:
        return replace(stack, caller=caller, session=session)
    next_settings = stack.wanted and replace(stack.wanted, role=role)
    settings = replace(stack.settings, role=role)
    return replace(stack, caller=caller, session=session, settings=settings, wanted=next_settings)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A resource that was replaced, and is deleted when the change is complete."""

    type: str
    name: str
    physical_id: str
    properties: Mapping[str, Any]
    policy: str = "Delete"


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """A resource as it was before the change that touched it."""

    name: str
    physical_id: str
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any]
    status: str
    policy: str
    replace_policy: str
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackResource(Document, Unremembered):
    """A resource of a stack."""

    restored: ClassVar = {
        "depends_on": tuple,
        "before": lambda stored: ResourceSnapshot(**{**stored, "depends_on": tuple(stored["depends_on"])}),
        "leftovers": lambda stored: tuple(Leftover(**leftover) for leftover in stored),
    }

    logical_id: str  # Its name in the template
    type: str  # `AWS::SQS::Queue`
    name: str  # Chosen before its creation, which may have failed
    status: str  # `CREATE_COMPLETE` …
    updated_at: int  # ms
    properties: Mapping[str, Any]  # With their values
    physical_id: str = ""  # Once it is known
    reason: str = ""  # Status reason
    attributes: Mapping[str, Any] = field(default_factory=dict)  # The values that `Fn::GetAtt` gives
    policy: str = "Delete"  # What happens to it when the stack is deleted
    replace_policy: str = "Delete"  # `UpdateReplacePolicy`
    depends_on: tuple[str, ...] = ()  # Logical ids of the resources it depends on
    change: str = ""  # The change that touched it last
    born: str = ""  # The change that made it
    # As it was before that change; None: that change created it, or did not touch it.
    before: ResourceSnapshot | None = None
    # Resources that are to be deleted: it replaced them, or they replaced it before a rollback.
    leftovers: tuple[Leftover, ...] = ()
    metadata: Any = None  # As the template has it
    drift: str = ""  # Result of the last drift detection

    @property
    def snapshot(self) -> ResourceSnapshot:
        """The resource as it is now, for the way back."""
        return ResourceSnapshot(
            self.name,
            self.physical_id,
            self.properties,
            self.attributes,
            self.status,
            self.policy,
            self.replace_policy,
            self.depends_on,
        )


@dataclass(frozen=True, slots=True)
class TemplateText(Document, Unremembered):
    """The text of a template, as it was given, and as JSON with its transforms carried out."""

    body: str
    processed: str = ""


class OperationState(enum.StrEnum):
    """The state of a change to a stack."""

    RUNNING = "running"
    CANCELLING = "cancelling"
    ENDED = "ended"

    @property
    def active(self) -> bool:
        """True as long as the stack has not come to a final status."""
        return self is not OperationState.ENDED


@dataclass(frozen=True, slots=True)
class StackOperation(Document):
    """A change to a stack under way: the work of a node, which another takes up if that one dies."""

    restored: ClassVar = {"state": OperationState}

    id: str  # Id of the change
    stack: str  # The stack's key
    node: str = ""  # Node that carries it out
    lease_until: int = 0  # ms
    state: OperationState = OperationState.RUNNING  # See OperationState
    # How often a node took it up after another, or itself, had neither ended it nor kept at it for 10 s.
    starts: int = 0

    @property
    def key(self) -> str:
        """The key of its document: a stack has at most one under way."""
        return self.stack


STACK: Final = DocumentKind.of("stack", Stack, secret=True)
RESOURCE: Final = DocumentKind.of("stack_resource", StackResource, secret=True)
TEMPLATE: Final = DocumentKind.of("stack_template", TemplateText, secret=True)
OPERATION: Final = DocumentKind.of("stack_operation", StackOperation)
# The name of a stack that is not deleted leads to the stack's key.
STACK_NAME: Final[DocumentKind[str]] = DocumentKind(
    "stack_name", lambda key: {"key": key}, lambda document: document["key"]
)


def resource_key(stack: Stack, logical_id: str) -> str:
    """The key of a resource."""
    return f"{stack.key}/{logical_id}"


def template_key(stack: Stack, template: str) -> str:
    """The key of a template's text."""
    return f"{stack.key}/{template}"


REVIEW: Final = "REVIEW_IN_PROGRESS"
_UPDATABLE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_FAILED", "IMPORT_COMPLETE"}
)
#: The final status of a change that is given up, by the status of the phase that it is in.
GIVEN_UP: Final[Mapping[str, str]] = {
    "CREATE_IN_PROGRESS": "CREATE_FAILED",
    "DELETE_IN_PROGRESS": "DELETE_FAILED",
    "ROLLBACK_IN_PROGRESS": "ROLLBACK_FAILED",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "UPDATE_COMPLETE",
    "UPDATE_IN_PROGRESS": "UPDATE_FAILED",
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_ROLLBACK_IN_PROGRESS": "UPDATE_ROLLBACK_FAILED",
}


def is_in_progress(stack: Stack) -> bool:
    """True if a change to the stack is in progress."""
    return stack.status.endswith("_IN_PROGRESS") and stack.status != REVIEW


def check_updatable(stack: Stack) -> None:
    """Check that the status of a stack allows changes; raises AwsError if it does not."""
    if stack.status not in _UPDATABLE:
        raise not_updatable(stack)


def not_updatable(stack: Stack) -> AwsError:
    """The refusal to change a stack in its status."""
    hint = ""
    if stack.status == "ROLLBACK_COMPLETE":
        hint = " Delete it first; --on-failure DELETE does that by itself."
    return invalid(f"Stack:{stack.arn} is in {stack.status} state and can not be updated.{hint}")

"""Resource types: how a resource of each type is made, changed, removed and looked at.

A stack may be cut short at any moment and goes on where it was, so each of these may be done again: `create` with a name
that was chosen before, `update` with the same properties, `delete` of what is gone.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

from typing_extensions import override

from redrive.aws.cloudformation.documents.signals import StackSignals
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.schema import TypeSchema, schema_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.model.names import ResourceName

T = TypeVar("T")

_ABSENT: Final = frozenset(
    {
        *("NotFound", "NotFoundException", "ResourceNotFoundException", "ResourceNotFound", "NoSuchEntity"),
        *("NoSuchEntityException", "NoSuchBucket", "NoSuchBucketPolicy", "ParameterNotFound"),
        *("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"),
    }
)


def is_absent(error: AwsError) -> bool:
    """True if a service says that there is no such thing."""
    return error.code in _ABSENT or error.query_code in _ABSENT


class Ask(Protocol):
    """Calls operations of services on behalf of a stack's owner, where the stack is."""

    # Any: of the parameters that come in dictionaries mypy takes each for the region.
    async def __call__(
        self, service: str, operation: str, *, in_region: Any = "", **params: Any
    ) -> Structure:
        """Call an operation, in another region if one is named; raises AwsError."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource as a stack wants it."""

    stack: ResourceName  # Account, region and name of the stack
    stack_id: str  # The stack's ARN
    logical_id: str  # Its name in the template
    type: str  # Of its resource type
    name: str  # Chosen before it was made: the caller's, or one that nobody else has
    properties: Mapping[str, Any]  # With their values
    words: StackSignals  # What it may wait for
    physical_id: str = ""  # The id it has; empty as long as nobody knows
    tags: Mapping[str, str] | None = None  # Of the stack, by key
    base_url: str = ""  # What URLs of this server begin with
    again: bool = False  # It may be there already, made by this stack before it was cut short
    change: str = ""  # The id of the change to the stack
    # Those that it has, where it is there already.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def arn(self, service: str, resource: str) -> str:
        """The ARN of something that belongs to the stack's account and region."""
        return f"arn:aws:{service}:{self.stack.region}:{self.stack.account}:{resource}"

    def all_tags(self) -> dict[str, str]:
        """The stack's tags, and its own over them."""
        own = self.properties.get("Tags") or ()
        pairs = own.items() if isinstance(own, Mapping) else ((tag["Key"], tag["Value"]) for tag in own)
        return {**(self.tags or {}), **{name: text_of(value) for name, value in pairs}}


class ResourceState(NamedTuple):
    """A resource that is there: its id, which is what `Ref` is, and what `Fn::GetAtt` gives."""

    physical_id: str
    attributes: Mapping[str, Any] = {}


class FailedAfterCreation(TemplateInvalid):
    """A resource was made, and cannot be what its template says; a rollback has to remove it.

    Attributes:
        physical_id: Its id.
    """

    def __init__(self, text: str, physical_id: str) -> None:
        super().__init__(text)
        self.physical_id = physical_id


class ResourceType:
    """A type of resources."""

    service: str = ""  # Botocore's name of the service that has it; empty: CloudFormation itself
    name_property: str = ""  # The property that callers may name it by
    name_chars_max: int = 255  # The longest name; 0: its service chooses its id
    lower_case: ClassVar[bool] = False  # Names have small letters only
    # What generated names begin with, in the place of the stack's name; empty: with that.
    name_beginning: ClassVar[str] = ""
    # The properties that nobody reads back, of which drift says nothing.
    unread: ClassVar[frozenset[str]] = frozenset()
    waits: ClassVar[bool] = False  # It may take long to make, until somebody says that it is done

    def __init__(self, name: str) -> None:
        """Be the type of this name: `AWS::SQS::Queue`."""
        self.name = name

    @property
    def schema(self) -> TypeSchema:
        """The type's schema."""
        return schema_of(self.name)

    def suffix(self, properties: Mapping[str, Any]) -> str:  # noqa: ARG002 - of those that have one
        """Returns what generated names end with."""
        return ""

    def replacing(self, changed: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:  # noqa: ARG002 - as overridden
        """Returns the properties, of those that changed, that cannot change in place."""
        return changed & self.schema.create_only

    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        """Make a resource.

        Raises:
            AwsError: Its service refuses.
        """
        raise NotImplementedError

    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        """Change a resource in place from the properties that it had."""
        raise NotImplementedError

    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        """Remove a resource; what is absent is no error."""
        raise NotImplementedError

    async def find(self, ask: Ask, spec: ResourceSpec) -> str:  # noqa: ARG002 - of those that have to ask
        """Returns the id of what may have been made under this name, empty where there is nothing."""
        return spec.name

    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        """Returns the properties as the service has them, as far as it tells; None: it is not there.

        Raises:
            NotImplementedError: Nobody can look at it.
        """
        raise NotImplementedError


class PutResourceType(ResourceType):
    """A type that its service creates and changes with one call: an update is that call again."""

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self.create(ask, spec)


# ---- what types have in common ---------------------------------------------------------------------------------------


def already_exists(spec: ResourceSpec) -> AwsError:
    """The refusal to make what is there, and is not this stack's."""
    text = f"Resource of type '{spec.type}' with identifier '{spec.name}' already exists."
    return AwsError("AlreadyExists", text, status=409)


async def refuse_existing(ask: Ask, spec: ResourceSpec, service: str, operation: str, **params: Any) -> None:
    """Refuse to take over a resource of a name that the caller chose, by an operation that finds it.

    Raises:
        AwsError: It is there.
    """
    if spec.again:
        return
    try:
        await ask(service, operation, **params)
    except AwsError as error:
        if is_absent(error) or error.status == 404:  # noqa: PLR2004 - Not Found
            return
        raise
    raise already_exists(spec)


async def without_absence(request: Awaitable[T]) -> T | None:
    """The answer of a call; None where what it is about is absent, which is as good as removed."""
    try:
        return await request
    except AwsError as error:
        if is_absent(error):
            return None
        raise


def as_text(value: Any) -> str:
    """Returns a property as services take it that have texts only: objects as JSON."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, separators=(",", ":"))
    return text_of(value)


def as_document(value: Any) -> Any:
    """Returns a property that may be given as JSON or as the text of it, as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def changed_properties(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    """The names of properties that came, went, or are others."""
    return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def pick(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns those of some properties that are given."""
    return {name: properties[name] for name in names if name in properties}


def cleared(
    before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the defaults of those properties that a resource had and its template no longer names."""
    return {name: value for name, value in defaults.items() if name in before and name not in after}


def lowered(name: str) -> str:
    """A property's name as some services call the same: with a small letter first."""
    return name[0].lower() + name[1:]


def lowered_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties by the names that such a service has for them."""
    return {lowered(name): value for name, value in properties.items()}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as most services take them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


Factory = Callable[[str], ResourceType]
Act = Callable[[Ask, ResourceSpec], Awaitable[ResourceState]]
"""A part of a step."""

"""Calls of services: the specification of a resource, and what types share to create, change and tag resources."""

import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from redrive.aws.cloudformation.documents.signals import StackSignals
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.model.names import ResourceName


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
    """A resource as its stack specifies it."""

    stack: ResourceName  # Account, region and name of the stack
    stack_id: str  # The stack's ARN
    logical_id: str  # Its name in the template
    type: str  # `AWS::SQS::Queue`
    name: str  # Chosen before its creation: the caller's, or a unique one
    properties: Mapping[str, Any]  # With their values
    signals: StackSignals  # What it may wait for
    physical_id: str = ""  # Its id; empty until it is known
    tags: Mapping[str, str] | None = None  # Of the stack, by key
    base_url: str = ""  # What URLs of this server begin with
    may_exist: bool = False  # A step of this stack may have created it before an interruption
    change: str = ""  # The id of the change to the stack
    # Its current attributes, if it exists.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def arn(self, service: str, resource: str) -> str:
        """The ARN of something that belongs to the stack's account and region."""
        return f"arn:aws:{service}:{self.stack.region}:{self.stack.account}:{resource}"

    def all_tags(self) -> dict[str, str]:
        """The stack's tags, and those of the resource, which override them."""
        own = self.properties.get("Tags") or ()
        pairs = own.items() if isinstance(own, Mapping) else ((tag["Key"], tag["Value"]) for tag in own)
        return {**(self.tags or {}), **{name: text_of(value) for name, value in pairs}}


class ResourceState(NamedTuple):
    """An existing resource: its id, which is the value of `Ref`, and the values of `Fn::GetAtt`."""

    physical_id: str
    attributes: Mapping[str, Any] = {}


class FailedAfterCreation(TemplateInvalid):
    """A resource was created, but not as its template says; a rollback has to delete it.

    Attributes:
        physical_id: Its id.
    """

    def __init__(self, text: str, physical_id: str) -> None:
        super().__init__(text)
        self.physical_id = physical_id


# ---- refusals --------------------------------------------------------------------------------------------------------

T = TypeVar("T")

_ABSENT: Final = frozenset(
    {
        *("NotFound", "NotFoundException", "ResourceNotFoundException", "ResourceNotFound", "NoSuchEntity"),
        *("NoSuchEntityException", "NoSuchBucket", "NoSuchBucketPolicy", "ParameterNotFound"),
        *("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"),
    }
)


def is_absent(error: AwsError) -> bool:
    """True if a service says that there is no such resource."""
    return error.code in _ABSENT or error.query_code in _ABSENT


def already_exists(spec: ResourceSpec) -> AwsError:
    """The refusal to create a resource that exists and is not this stack's."""
    text = f"Resource of type '{spec.type}' with identifier '{spec.name}' already exists."
    return AwsError("AlreadyExists", text, status=409)


async def without_absence(request: Awaitable[T]) -> T | None:
    """The answer of a call; None: the resource that it concerns is absent, which is as good as removed."""
    try:
        return await request
    except AwsError as error:
        if is_absent(error):
            return None
        raise


async def unless_created(request: Awaitable[T], spec: ResourceSpec, code: str) -> T | None:
    """The answer of a call that creates a resource; None: it failed with `code`, as this stack had created it before."""
    try:
        return await request
    except AwsError as error:
        if not (spec.may_exist and code in (error.code, error.query_code)):
            raise
        return None


# ---- properties as services take them --------------------------------------------------------------------------------


def as_text(value: Any) -> str:
    """A property as text, for services that take nothing else: objects and lists as JSON."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, separators=(",", ":"))
    return text_of(value)


def as_document(value: Any) -> Any:
    """A property as an object, which a template or a service may have as its text, too."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def changed_properties(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    """The names of properties that were added, removed or changed."""
    return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def pick(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The properties of these names, as far as there are any."""
    return {name: properties[name] for name in names if name in properties}


def defaults_of_removed(
    before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The defaults of the properties that a template had before, and no longer has."""
    return {name: value for name, value in defaults.items() if name in before and name not in after}


def lower_first(name: str) -> str:
    """A property's name with a small letter first, as some services spell it."""
    return name[0].lower() + name[1:]


def lower_first_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties by names with a small letter first."""
    return {lower_first(name): value for name, value in properties.items()}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as most services take them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


# ---- tags ------------------------------------------------------------------------------------------------------------

_STACK: Final = "aws:cloudformation:stack-name"
_STACK_ID: Final = "aws:cloudformation:stack-id"
_LOGICAL_ID: Final = "aws:cloudformation:logical-id"


def own_tags(spec: ResourceSpec) -> dict[str, str]:
    """The tags of a stack's resource; after an interruption the stack finds it by them."""
    by_stack = {_STACK: spec.stack.name, _STACK_ID: spec.stack_id, _LOGICAL_ID: spec.logical_id}
    return {**spec.all_tags(), **by_stack}


def is_own(spec: ResourceSpec, tags: Mapping[str, str] | None) -> bool:
    """True if a resource with these tags is that of the specification."""
    tags = tags or {}
    return (tags.get(_STACK_ID), tags.get(_LOGICAL_ID)) == (spec.stack_id, spec.logical_id)


def tag_params(spec: ResourceSpec) -> dict[str, Any]:
    """The parameter of most services for the tags of a new resource; empty if it has none."""
    tags = spec.all_tags()
    return {"Tags": tag_list(tags)} if tags else {}


class TagCalls(NamedTuple):
    """A service's operations on the tags of a resource, and its spelling of them."""

    service: str  # Its endpoint prefix
    list: str  # The operation that answers with a resource's tags
    add: str  # The operation that sets some, and leaves the others
    remove: str  # The operation that takes some away
    tags: str = "Tags"  # The parameter of `add` that has the tags
    keys: str = "TagKeys"  # The parameter of `remove` that has their keys
    list_member: str = ""  # The member of the answer of `list` that has the tags; empty: that of `tags`
    # The members of a tag, where tags are a list of structures; empty: they are an object by key.
    pair: tuple[str, ...] = ("Key", "Value")

    async def set(self, ask: Ask, spec: Mapping[str, str], **identifiers: str) -> None:
        """Give a resource these tags, and no others; it is named as the service's operations name it."""
        answer = await ask(self.service, self.list, **identifiers)
        current = self._read(answer.get(self.list_member or self.tags) or {})
        if changes := {key: value for key, value in spec.items() if current.get(key) != value}:
            await ask(self.service, self.add, **identifiers, **{self.tags: self.as_parameter(changes)})
        if removed_keys := sorted(current.keys() - spec.keys()):
            await ask(self.service, self.remove, **identifiers, **{self.keys: removed_keys})

    def as_parameter(self, tags: Mapping[str, str]) -> Any:
        """Tags as the service takes them."""
        if not self.pair:
            return dict(tags)
        key, value = self.pair
        return [{key: name, value: text} for name, text in tags.items()]

    def _read(self, tags: Any) -> dict[str, str]:
        if not self.pair:
            return dict(tags)
        key, value = self.pair
        return {tag[key]: tag[value] for tag in tags}


# ---- contents of buckets ---------------------------------------------------------------------------------------------


async def read_object(ask: Ask, location: Mapping[str, Any]) -> bytes:
    """The content of an object, by `Bucket`, `Key` and perhaps `Version`; raises AwsError if it cannot be read."""
    version = {"VersionId": location["Version"]} if "Version" in location else {}
    answer = await ask("s3", "GetObject", **pick(location, "Bucket", "Key"), **version)
    body = answer.get("Body") or b""
    if isinstance(body, bytes):
        return body
    return b"".join([part async for part in body])

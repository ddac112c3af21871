"""Resource types: how a resource of each type is created, updated, deleted, found and described.

A change to a stack may be interrupted at any moment and continues where it was, so each verb may be carried out again:
`create` with the name that was chosen before, `update` with the same properties, `delete` of a deleted resource.

A type is a class, and overrides what its service does in a way of its own; a type whose verbs are one call each is a row.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    already_exists,
    as_document,
    as_text,
    is_absent,
    lower_first,
    pick,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.schema import TypeSchema, schema_of
from redrive.aws.kit.json_cursor import as_list
from redrive.aws.wire.errors import AwsError

#: Among the parameters that identify a resource: it is not a property, but the physical id.
ID: Final = ""
Parameters = Mapping[str, str]
"""Parameters of operations, each with the property that it has."""


class Description(NamedTuple):
    """The operation that describes a resource, and the place of its properties in the answer."""

    operation: str
    properties: tuple[str, ...] = ()  # The properties in the answer; empty: all of the type
    member: str = ""  # The member of the answer that has them; empty: the answer itself
    is_lowered: bool = False  # Their names begin with a small letter
    is_text: bool = False  # Objects among them are JSON texts
    keys: Parameters | None = None  # The parameters of the operation; None: those that identify the resource
    params: Mapping[str, Any] = {}  # Further ones of the operation
    id: str = ""  # For an operation that lists resources: the member that is the physical id of one

    def read(
        self, answer: Mapping[str, Any], physical_id: str, type_properties: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The properties in an answer; None: the answer is a list without the resource."""
        description: Any = (answer.get(self.member) or {}) if self.member else answer
        if self.id:
            matches = (item for item in description if item[self.id] == physical_id)
            description = next(matches, None)
            if description is None:
                return None
        names = {
            lower_first(name) if self.is_lowered else name: name
            for name in self.properties or type_properties
        }
        properties = {names[member]: value for member, value in pick(description, *names).items()}
        return (
            {name: as_document(value) for name, value in properties.items()} if self.is_text else properties
        )


class ResourceType:
    """A type of resources."""

    service: str = ""  # Botocore's name of its service; empty: CloudFormation itself
    name_property: str = ""  # The property by which a template may name a resource
    name_chars_max: int = 255  # The longest name; 0: its service chooses its id
    noun: ClassVar[str] = ""  # The service's name for such a resource in operations
    # The operation that deletes a resource; empty: `Delete` and the noun, and without a noun none.
    deletion: str = ""
    keys: ClassVar[Parameters] = {}  # The parameters that identify a resource
    description: Description | None = None  # None: its service does not describe it
    lower_case: ClassVar[bool] = False  # Names have small letters only
    # The beginning of generated names; empty: the stack's name.
    name_beginning: ClassVar[str] = ""
    # The properties that no operation describes, and that drift leaves out.
    undescribed: ClassVar[frozenset[str]] = frozenset()
    waits: ClassVar[bool] = False  # A step may wait for hours, until a signal arrives

    def __init__(self, name: str) -> None:
        """Be the type of this name: `AWS::SQS::Queue`."""
        self.name = name

    @property
    def schema(self) -> TypeSchema:
        """The type's schema."""
        return schema_of(self.name)

    def suffix(self, properties: Mapping[str, Any]) -> str:  # noqa: ARG002 - of those that have one
        """The ending of generated names."""
        return ""

    def create_only_names(self, changed_names: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:  # noqa: ARG002 - as overridden
        """The names of the changed properties that cannot change in place: their change replaces the resource."""
        return changed_names & self.schema.create_only

    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        """The parameters by which operations identify a resource."""
        return _identifiers(self.keys, spec)

    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        """Create a resource; raises AwsError if its service refuses."""
        raise NotImplementedError

    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        """Change a resource in place from the properties that it had."""
        raise NotImplementedError

    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        """Delete a resource; one that is absent is no error."""
        if self.deletion or self.noun:
            operation = self.deletion or f"Delete{self.noun}"
            await without_absence(ask(self.service, operation, **self.identifiers(spec)))

    async def find(self, ask: Ask, spec: ResourceSpec) -> str:  # noqa: ARG002 - of those that have to ask
        """The physical id of a resource that an interrupted step may have created; empty: there is none."""
        return spec.name

    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        """The properties as the service describes them; None: the resource is absent.

        Raises:
            NotImplementedError: The service does not describe it.
        """
        description = self.description
        if description is None:
            raise NotImplementedError
        keys = description.keys
        identifiers = self.identifiers(spec) if keys is None else _identifiers(keys, spec)
        params = {**identifiers, **description.params}
        answer = await without_absence(ask(self.service, description.operation, **params))
        if answer is None:
            return None
        return description.read(answer, spec.physical_id, self.schema.properties)

    async def refuse_existing(self, ask: Ask, spec: ResourceSpec, operation: str, **params: Any) -> None:
        """Refuse to take over an existing resource whose name the template chooses; `operation` describes it.

        Raises:
            AwsError: The resource exists.
        """
        if spec.may_exist or self.name_property not in spec.properties:
            return
        try:
            await ask(self.service, operation, **params)
        except AwsError as error:
            if is_absent(error) or error.status == 404:  # noqa: PLR2004 - Not Found
                return
            raise
        raise already_exists(spec)


def _identifiers(keys: Parameters, spec: ResourceSpec) -> dict[str, Any]:
    ids = {parameter: spec.physical_id or spec.name for parameter, source in keys.items() if source == ID}
    return ids | _parameters(spec.properties, keys)


def _parameters(properties: Mapping[str, Any], names: Parameters) -> dict[str, Any]:
    return {parameter: properties[source] for parameter, source in names.items() if source in properties}


class PutResourceType(ResourceType):
    """A type that its service creates and updates with one call: an update is that call again."""

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self.create(ask, spec)


Factory = Callable[[str], ResourceType]
Act = Callable[[Ask, ResourceSpec], Awaitable[ResourceState]]
"""The action of a step."""


# ---- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A type of resources, as operations and their parameters."""

    service: str  # See `ResourceType`
    create: str  # The operation that creates one
    delete: str  # The operation that deletes one
    keys: Parameters  # The parameters of both that identify a resource
    # Further parameters of `create`, each left out if its property is.
    params: Parameters = field(default_factory=dict)
    # The parameters that take a property in another form, and the functions that convert it.
    writers: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    puts: bool = False  # `create` also updates; otherwise no property changes in place
    exists_code: str = ""  # The error of `create` if the resource exists
    id: str = ""  # A format of the physical id, with properties in braces; empty: the name
    attributes: tuple[str, ...] = ()  # Attributes of `Fn::GetAtt` whose value is the physical id
    name_property: str = ""  # See `ResourceType`
    name_chars_max: int = 255  # See `ResourceType`
    description: Description | None = None  # See `ResourceType`

    def __call__(self, name: str) -> "RowType":
        """The type of this name."""
        return RowType(name, self)


class RowType(ResourceType):
    """A type that a row describes."""

    def __init__(self, name: str, row: Row) -> None:
        super().__init__(name)
        self._row = row
        self.service, self.deletion = row.service, row.delete
        self.name_property, self.name_chars_max = row.name_property, row.name_chars_max
        self.description = row.description

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return _identifiers(self._row.keys, spec)

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        row = self._row
        params = {**self.identifiers(spec), **_parameters(spec.properties, row.params)}
        params |= {name: row.writers[name](params[name]) for name in params.keys() & row.writers.keys()}
        await unless_created(ask(row.service, row.create, **params), spec, row.exists_code)
        return self._state(spec)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self.create(ask, spec) if self._row.puts else self._state(spec)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return self._row.id.format_map(spec.properties) or spec.name

    def _state(self, spec: ResourceSpec) -> ResourceState:
        physical_id = self._row.id.format_map(spec.properties) or spec.physical_id or spec.name
        return ResourceState(physical_id, dict.fromkeys(self._row.attributes, physical_id))


def same_names(*properties: str) -> Parameters:
    """Parameters with the names of their properties."""
    return {name: name for name in properties}


def lower_first_names(*properties: str) -> Parameters:
    """Parameters with the names of their properties, but with a small letter first."""
    return {lower_first(name): name for name in properties}


class HeldPolicyType(PutResourceType):
    """A policy of other resources, its holders; if it is deleted, they have their default policy again."""

    holders_property: ClassVar[str]  # The property that names them

    async def write_policy(self, ask: Ask, holder: str, text: str) -> None:
        """Set the policy of a holder."""
        raise NotImplementedError

    def default_policy(self, holder: str) -> str:  # noqa: ARG002 - of those that have one
        """The policy of a holder that has no other."""
        return ""

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        for holder in self._holders(spec.properties):
            await self.write_policy(ask, holder, as_text(spec.properties["PolicyDocument"]))
        if self.holders_property in self.schema.create_only:  # a single holder, which identifies the policy
            return ResourceState(spec.properties[self.holders_property])
        return ResourceState(spec.physical_id or spec.name, {"Id": spec.name})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        remaining = self._holders(spec.properties)
        await self._clear(ask, [holder for holder in self._holders(before) if holder not in remaining])
        return await self.create(ask, spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await self._clear(ask, self._holders(spec.properties))

    async def _clear(self, ask: Ask, holders: Sequence[str]) -> None:
        for holder in holders:
            await without_absence(self.write_policy(ask, holder, self.default_policy(holder)))

    def _holders(self, properties: Mapping[str, Any]) -> list[str]:
        return as_list(properties.get(self.holders_property) or [])

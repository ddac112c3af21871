"""Resources by the specifications of their types: what a document may say, and how a resource is shown.

A resource is kept as a record of the engine's: a topic, or a document of a facade's own kind. Its attributes hold the
ARM id as it was spelt, the `properties` and what stands beside them as JSON, and the access keys, if the type has any.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

import orjson

from redrive.azure.arm import schema
from redrive.azure.arm.schema import Document, DocumentSchema, SchemaField
from redrive.azure.eventgrid import settings
from redrive.azure.eventgrid.documents import NamespacePlace, SystemTopic
from redrive.azure.wire.answers import AzureError, conflict, invalid, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

PROVIDER: Final = "Microsoft.EventGrid"
IN_SUBSCRIPTION: Final = f"/subscriptions/{{subscription}}/providers/{PROVIDER}"
IN_GROUP: Final = f"/subscriptions/{{subscription}}/resourceGroups/{{group}}/providers/{PROVIDER}"
BESIDE: Final = "resource"  # the attribute with what stands beside `properties`
READ_ONLY_BESIDE: Final = frozenset({"id", "name", "type", "systemData", "properties"})
_NAME: Final = re.compile(r"[A-Za-z0-9-]{3,50}")
_RESERVED: Final = ("microsoft", "eventgrid", "system")
_LOCATION: Final = "location"

R = TypeVar("R", Topic, NamespacePlace, SystemTopic)


class Record(Protocol):
    """A record of a resource."""

    @property
    def name(self) -> ResourceName:
        """The place in the engine: Azure subscription, resource group and name, in lower case."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """The ARM id, the document and the keys; see the module."""
        ...


@dataclass(frozen=True, slots=True)
class ArmResourceSpec:
    """A type of resource."""

    types: tuple[str, ...]  # The ARM types from the outermost on: `("domains", "topics")`
    # Makes `properties` for callers of a record, its stored properties, and the base URL.
    properties_shown: Callable[[Record, Mapping[str, Any], str], Mapping[str, Any]]
    properties: DocumentSchema | None = None  # The schema of `properties`; None: documents are not read
    # The schema of what stands beside `properties`; None: nothing is kept of it.
    beside: DocumentSchema | None = None
    # The refusal to move a resource, with `{name}`, `{stands}` and `{location}`; empty: it may be moved.
    moved: str = ""
    has_keys: bool = False  # Resources have two access keys
    replaced_status: HTTPStatus = HTTPStatus.CREATED  # The status of a PUT that replaces
    patch_status: HTTPStatus | None = None  # The status of a PATCH; None: the type has none
    patches_properties: bool = True  # A PATCH changes `properties` too, not only what stands beside them
    # Tells of `properties` as shown whether the answer to a write shows the resource as being written still.
    in_steps: Callable[[Mapping[str, Any]], bool] = lambda _: False


def check_name(name: str) -> None:
    """Check a resource's name: https://learn.microsoft.com/azure/event-grid/troubleshoot-errors.

    Raises:
        AzureError: The name is not one that resources can have.
    """
    if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
        raise invalid(
            f"The name '{name}' must be 3 to 50 letters, digits and hyphens, and must not begin with "
            "Microsoft, EventGrid or System."
        )


def location(document: Document, name: str) -> str:
    """A reader of a location, which every document must have; raises AzureError if the document has none."""
    text = schema.text(document, name)
    if not text:
        raise invalid(f"The {name} property is required for this definition.", "LocationRequired")
    return text


LOCATION: Final = SchemaField(_LOCATION, location)


def apply_put(spec: ArmResourceSpec, record: R, document: Document) -> R:
    """The resource that a PUT asks for, in the place of a record that may have nothing but its id and keys.

    Raises:
        AzureError: The document is not acceptable.
    """
    exists = settings.PROPERTIES in record.attributes
    beside = {} if spec.beside is None else spec.beside.accept(document)
    before = properties_of(record) if exists else None
    properties = _check_properties(spec, schema.part(document, "properties") or {}, before)
    if exists and spec.moved:
        _check_location(spec, record, beside[_LOCATION])
    return _with(spec, record, beside, properties)


def apply_patch(spec: ArmResourceSpec, record: R, document: Document) -> R:
    """The resource as a PATCH leaves it: properties are merged one by one, everything beside them is replaced.

    Raises:
        AzureError: The document is not acceptable.
    """
    properties, beside = properties_of(record), _beside(record)
    if spec.patches_properties:
        change = schema.part(document, "properties") or {}
        properties = _check_properties(spec, schema.merge(properties, change), properties)
    if spec.beside is not None:
        location = {name: value for name, value in beside.items() if name == _LOCATION}
        beside = spec.beside.accept({**beside, **schema.present(document), **location})
    return _with(spec, record, beside, properties)


def body_of(spec: ArmResourceSpec, record: Record, base_url: str) -> dict[str, Any]:
    """A resource as the resource manager shows it; URLs in it begin with `base_url`."""
    resource = id_of(record.attributes)
    return {
        "id": resource.text,
        "name": resource.name,
        "type": "/".join((PROVIDER, *spec.types)),
        **_beside(record),
        "properties": spec.properties_shown(record, properties_of(record), base_url),
    }


def id_of(attributes: Mapping[str, str]) -> ArmId:
    """The ARM id in the attributes of a record, a subscription or a queue."""
    resource = ArmId.parse(attributes[settings.ID])
    if resource is None:
        raise ValueError(f"not a resource id: {attributes[settings.ID]}")
    return resource


def properties_of(record: Record) -> dict[str, Any]:
    """A resource's properties as they are kept."""
    read: dict[str, Any] = orjson.loads(record.attributes[settings.PROPERTIES])
    return read


def location_of(record: Record) -> str:
    """A resource's location; empty if it has none."""
    location: str = _beside(record).get(_LOCATION, "")
    return location


def is_same_location(one: str, other: str) -> bool:
    """Tells whether two locations are the same: blanks and case do not count."""
    return one.replace(" ", "").lower() == other.replace(" ", "").lower()


def no_such(resource: ArmId) -> AzureError:
    """The refusal of a resource that does not exist."""
    return not_found(
        f"The Resource '{resource.type_as_spelt}/{'/'.join(resource.names)}' under resource group '{resource.group}' "
        "was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )


def _check_properties(spec: ArmResourceSpec, document: Document, before: Document | None) -> dict[str, Any]:
    return {} if spec.properties is None else spec.properties.accept(document, before)


def _check_location(spec: ArmResourceSpec, record: Record, location: str) -> None:
    """Refuse another location than the resource has."""
    current_location = location_of(record)
    if not is_same_location(current_location, location):
        name = id_of(record.attributes).name
        text = spec.moved.format(name=name, stands=current_location, location=location)
        raise conflict(text, "InvalidResourceLocation")


def _beside(record: Record) -> dict[str, Any]:
    """The members that a resource keeps beside `properties`, such as its location and its tags."""
    read: dict[str, Any] = orjson.loads(record.attributes.get(BESIDE, "{}"))
    return read


def _with(spec: ArmResourceSpec, record: R, beside: Document, properties: Document) -> R:
    attributes = {settings.PROPERTIES: schema.stored_text(properties)}
    if spec.beside is not None:
        attributes[BESIDE] = schema.stored_text(beside)
    return replace(record, attributes={**record.attributes, **attributes})

"""Templates: their sections, checked for how they are built."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, check_count, format_error
from redrive.aws.cloudformation.template.parameters import ParameterDefinition, read_parameters
from redrive.aws.kit.json_cursor import as_list

RESOURCES_MAX: Final = 500
MAPPINGS_MAX: Final = 200
OUTPUTS_MAX: Final = 200
DESCRIPTION_BYTES_MAX: Final = 1024
VERSION: Final = "2010-09-09"

_LOGICAL_ID: Final = re.compile(r"[A-Za-z0-9]{1,255}")
_SECTIONS: Final = frozenset(
    {
        *(
            "AWSTemplateFormatVersion",
            "Description",
            "Metadata",
            "Parameters",
            "Rules",
            "Mappings",
            "Conditions",
        ),
        *("Transform", "Resources", "Outputs", "Hooks", "Globals"),
    }
)
_RESOURCE_MEMBERS: Final = frozenset(
    {
        *("Type", "Properties", "DependsOn", "Condition", "Metadata", "CreationPolicy", "UpdatePolicy"),
        *("DeletionPolicy", "UpdateReplacePolicy", "Description"),
    }
)
_DELETION_POLICIES: Final = ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot")


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource as its template has it."""

    logical_id: str  # Its name in the template
    type: str  # `AWS::SQS::Queue`
    properties: Mapping[str, Any] = field(default_factory=dict)  # With functions in them
    depends_on: tuple[str, ...] = ()  # Its `DependsOn`
    condition: str = ""  # Created only if it holds; empty: always
    metadata: Any = None  # As given
    deletion_policy: Any = "Delete"  # `Delete`, `Retain`, `RetainExceptOnCreate`
    replace_policy: Any = "Delete"  # `UpdateReplacePolicy`, of what an update replaces
    # As given; only its `ResourceSignal` has an effect.
    creation_policy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """An output as its template has it: its value and the name of its export may be functions."""

    name: str
    value: Any
    description: str = ""
    export: Any = None
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A template with its sections checked."""

    source: Mapping[str, Any]  # As it was read
    description: str  # Free text
    metadata: Any  # As given
    parameters: Mapping[str, ParameterDefinition]  # By name
    rules: Mapping[str, Any]  # By name, as given
    mappings: Mapping[str, Any]  # By name: two levels of keys
    conditions: Mapping[str, Any]  # By name, as given
    transforms: tuple[str, ...]  # The names of its transforms, in order
    resources: Mapping[str, ResourceDefinition]  # By logical id, in their order
    outputs: Mapping[str, OutputDefinition]  # By name


def transforms_of(source: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the transforms that a template asks for."""
    declaration = source.get("Transform")
    if declaration is None:
        return ()
    transforms = [_transform_name(item) for item in as_list(declaration)]
    if not all(transforms):
        raise format_error("Every Transform member must be a string or an object with a Name.")
    return tuple(transforms)


def _transform_name(item: Any) -> str:
    name = item.get("Name") if isinstance(item, Mapping) else item
    return name if isinstance(name, str) else ""


def read_sections(source: Mapping[str, Any]) -> Template:
    """Read the sections of a template; raises TemplateInvalid if one is malformed."""
    _check_top(source)
    resources = _resources(source)
    return Template(
        source=source,
        description=source.get("Description") or "",
        metadata=source.get("Metadata"),
        parameters=read_parameters(section(source, "Parameters")),
        rules=_entries(source, "Rules"),
        mappings=_mappings(source),
        conditions=_entries(source, "Conditions"),
        transforms=transforms_of(source),
        resources=resources,
        outputs=_outputs(source),
    )


def section(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section that is an object; empty if the template has none."""
    value = source.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise format_error(f"{name} must be an object.")
    return value


def _check_top(source: Mapping[str, Any]) -> None:
    unknown_names = [name for name in source if name not in _SECTIONS]
    if unknown_names:
        raise TemplateInvalid(f"Invalid template property or properties [{', '.join(unknown_names)}]")
    version = source.get("AWSTemplateFormatVersion", VERSION)
    if str(version) != VERSION:
        raise format_error("unsupported value for AWSTemplateFormatVersion.")
    description = source.get("Description")
    if description is not None and not isinstance(description, str):
        raise format_error("Description must be a string.")
    if description and len(description.encode()) > DESCRIPTION_BYTES_MAX:
        raise format_error(f"'Description' length is greater than {DESCRIPTION_BYTES_MAX}.")


def _entries(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The members of a section, each an object under a valid name; raises TemplateInvalid."""
    entries = section(source, name)
    for key, value in entries.items():
        if not isinstance(value, Mapping):
            raise format_error(f"Every {name} member must be an object.")
        if name != "Conditions":  # which may have the names of pseudo parameters (recorded)
            _check_id(name.removesuffix("s"), key)
    return entries


def _check_id(kind: str, name: str) -> None:
    if not _LOGICAL_ID.fullmatch(name):
        raise format_error(f"{kind} name {name} is non alphanumeric.")


# ---- mappings --------------------------------------------------------------------------------------------------------


def _mappings(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mappings of a template, checked: two levels of keys."""
    entries = section(source, "Mappings")
    check_count(len(entries), "mappings", MAPPINGS_MAX)
    for name, mapping in entries.items():
        for key, row in _rows(name, mapping):
            if not isinstance(row, Mapping):
                raise format_error(f"Every Mappings member {key} must be a map")
            if not all(isinstance(value, str | int | float | bool | list) for value in row.values()):
                raise format_error("Every Mappings attribute must be a String or a List.")
    return entries


def _rows(name: str, mapping: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(mapping, Mapping):
        raise format_error(f"Every Mappings member {name} must be a map")
    yield from mapping.items()


# ---- resources -------------------------------------------------------------------------------------------------------


def _resources(source: Mapping[str, Any]) -> dict[str, ResourceDefinition]:
    entries = source.get("Resources")
    if isinstance(entries, str):
        raise format_error("Any Resources member must be an object.")
    if not isinstance(entries, Mapping) or not entries:
        raise format_error("At least one Resources member must be defined.")
    check_count(len(entries), "resources", RESOURCES_MAX)
    return {name: _resource(name, definition) for name, definition in entries.items()}


def _resource(name: str, definition: Any) -> ResourceDefinition:
    if not isinstance(definition, Mapping):
        raise format_error("Any Resources member must be an object.")
    _check_id("Resource", name)
    if not isinstance(definition.get("Type"), str):
        raise format_error(f"[/Resources/{name}] Every Resources object must contain a Type member.")
    for key in definition:
        if key not in _RESOURCE_MEMBERS:
            raise TemplateInvalid(f"Invalid template resource property '{key}'")
    properties = definition.get("Properties")
    if not isinstance(properties, Mapping | None):
        raise format_error(f"[/Resources/{name}] Every Properties member must be an object.")
    _refuse_null(properties, ("Resources", name, "Properties"))
    return ResourceDefinition(
        logical_id=name,
        type=definition["Type"],
        properties=properties or {},
        depends_on=_depends_on(name, definition.get("DependsOn")),
        condition=_condition(name, definition.get("Condition")),
        metadata=definition.get("Metadata"),
        deletion_policy=_checked_policy(definition, "DeletionPolicy"),
        replace_policy=_checked_policy(definition, "UpdateReplacePolicy"),
        creation_policy=_object(name, definition, "CreationPolicy"),
    )


def _object(name: str, definition: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = definition.get(key) or {}
    if not isinstance(value, Mapping):
        raise format_error(f"[/Resources/{name}/{key}] must be an object.")
    return value


def _depends_on(name: str, value: Any) -> tuple[str, ...]:
    names = [] if value is None else as_list(value)
    if not all(isinstance(item, str) for item in names):
        raise format_error(f"[/Resources/{name}/DependsOn] must be a string or a list of strings.")
    return tuple(names)


def _condition(location: str, value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise format_error(f"[/Resources/{location}/Condition] must be a string.")
    return value or ""


def _checked_policy(definition: Mapping[str, Any], key: str) -> Any:
    value = definition.get(key, "Delete")
    # A function is evaluated later; AWS takes one without language extensions as well (recorded).
    if isinstance(value, Mapping):
        return value
    if value not in _DELETION_POLICIES:
        raise format_error(f"Unrecognized {key} {value}")
    return value


def _refuse_null(value: Any, path: tuple[str, ...]) -> None:
    """Refuse null in a resource's properties; `path` leads to the value."""
    if value is None and len(path) > len(("Resources", "name", "Properties")):
        raise TemplateInvalid(f"[/{'/'.join(path)}] 'null' values are not allowed in templates")
    children: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        _refuse_null(child, (*path, str(key)))


# ---- outputs ---------------------------------------------------------------------------------------------------------


def _outputs(source: Mapping[str, Any]) -> dict[str, OutputDefinition]:
    entries = section(source, "Outputs")
    check_count(len(entries), "outputs", OUTPUTS_MAX)
    return {name: _output(name, definition) for name, definition in entries.items()}


def _output(name: str, definition: Any) -> OutputDefinition:
    if not isinstance(definition, Mapping):
        raise format_error("Any Outputs member must be an object.")
    _check_id("Output", name)
    if "Value" not in definition:
        raise format_error("Every Outputs member must contain a Value object")
    if definition["Value"] is None:
        raise TemplateInvalid(f"[/Outputs/{name}/Value] 'null' values are not allowed in templates")
    export = definition.get("Export")
    if export is not None and (not isinstance(export, Mapping) or export.keys() != {"Name"}):
        raise format_error(f"Output {name} is malformed. The Export field must be an object with a Name.")
    return OutputDefinition(
        name=name,
        value=definition["Value"],
        description=str(definition.get("Description") or ""),
        export=None if export is None else export["Name"],
        condition=_condition(name, definition.get("Condition")),
    )

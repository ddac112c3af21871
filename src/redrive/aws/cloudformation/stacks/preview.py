"""Previews: what a change would do to the resources of a stack and to their properties, as change sets describe it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.cloudformation.changes.programs import Programs
from redrive.aws.cloudformation.changes.values import StackValues
from redrive.aws.cloudformation.documents.records import RESOURCE, Stack, StackResource, StackSettings
from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid
from redrive.aws.cloudformation.template.functions import evaluate, function_name
from redrive.aws.cloudformation.template.parameters import masked, text_of
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.sections import ResourceDefinition
from redrive.aws.cloudformation.types.calls import changed_properties, pick
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.offloading import offload
from redrive.engine.engine import Engine

_CONTEXTS: Final = ("BeforeContext", "AfterContext")
_TARGET_VALUES: Final = ("Path", "BeforeValue", "AfterValue", "AttributeChangeType")

Properties = Mapping[str, Any]


def masked_properties(
    definition: ResourceDefinition, program: TemplateProgram, before: Properties, after: Properties
) -> tuple[Properties, Properties]:
    """The properties before and after, where those that depend on a parameter with NoEcho are masked."""
    hidden_names = program.hidden_names(definition)
    return masked(before, hidden_names), masked(after, hidden_names)


def context_of(properties: Properties) -> str:
    """The properties of a resource as the JSON that change sets have."""
    return json.dumps({"Properties": properties}, separators=(",", ":"))


def target_values(name: str, before: Properties, after: Properties) -> dict[str, str]:
    """The members of a detail that describe the change of a property."""
    target = {"Path": f"/Properties/{name}"}
    if name in before:
        target["BeforeValue"] = _text(before[name])
    if name in after:
        target["AfterValue"] = _text(after[name])
    kinds = {(False, True): "Add", (True, True): "Modify", (True, False): "Remove"}
    return {**target, "AttributeChangeType": kinds[name in before, name in after]}


def _text(value: Any) -> str:
    is_structured = isinstance(value, Mapping | list)
    return json.dumps(value, separators=(",", ":")) if is_structured else text_of(value)


def without_values(change: Mapping[str, Any]) -> Mapping[str, Any]:
    """A change without property values."""
    if "ResourceChange" not in change:
        return change
    resource = {name: value for name, value in change["ResourceChange"].items() if name not in _CONTEXTS}
    resource["Details"] = [
        {
            **detail,
            "Target": {name: value for name, value in detail["Target"].items() if name not in _TARGET_VALUES},
        }
        for detail in resource["Details"]
    ]
    return {**change, "ResourceChange": resource}


_NO_MAPPING: Final = "Unable to get mapping for"
UNKNOWN: Final = "{{changeSet:KNOWN_AFTER_APPLY}}"

Change = Mapping[str, Any]


async def preview(
    engine: Engine, stack: Stack, settings: StackSettings, program: TemplateProgram
) -> list[Change]:
    """The changes that settings would make to a stack.

    Returns:
        Changes as change sets have them; where only outputs, tags or the like change, one of type `Outputs`.
    """
    resources = await engine.resources.documents.find(RESOURCE, f"{stack.key}/")
    current = {
        resource.logical_id: resource for resource in resources if resource.status != "DELETE_COMPLETE"
    }
    programs = Programs(engine)
    values = StackValues(program, dict(current), await programs.exports(stack.name))
    changed_parameters = _changed_parameters(stack.settings, settings)
    changes = await offload(stack.name.account, lambda: _of_resources(current, values, changed_parameters))
    if removals := [current[name] for name in current if name not in program.resources]:
        before = StackValues(await programs.load(stack, stack.settings), {}, values.exports)
        changes += await offload(
            stack.name.account, lambda: [_removal(resource, before) for resource in removals]
        )
    if not changes and await _has_other_changes(engine, stack, settings, program):
        changes.append({"Type": "Outputs"})
    return changes


def _changed_parameters(before: StackSettings, after: StackSettings) -> frozenset[str]:
    """The names of the parameters whose values change."""
    stored_names = changed_properties(before.resolved, after.resolved)
    return changed_properties(before.parameters, after.parameters) | stored_names


def _of_resources(
    current: Mapping[str, StackResource], values: StackValues, changed_parameters: frozenset[str]
) -> list[Change]:
    """The changes of resources, in order of their dependencies."""
    replaced_ids: set[str] = set()  # `_of_resource` adds to them: those that depend on one change, too
    changes: list[Change] = []
    for name in _dependency_order(values.program):
        changes += _of_resource(
            values.program.resources[name], current.get(name), values, replaced_ids, changed_parameters
        )
    return changes


def _dependency_order(program: TemplateProgram) -> list[str]:
    """The names of the resources, each after those that it depends on."""
    ordered_names: dict[str, None] = {}
    remaining = dict(program.dependencies)
    while remaining:
        ready = [
            name for name, others in remaining.items() if all(other in ordered_names for other in others)
        ]
        ordered_names |= dict.fromkeys(ready)
        remaining = {name: others for name, others in remaining.items() if name not in ready}
    return list(ordered_names)


async def _has_other_changes(
    engine: Engine, stack: Stack, settings: StackSettings, program: TemplateProgram
) -> bool:
    """True if outputs or tags change, or members of resources other than properties."""
    if not stack.settings.template:
        return True
    before = await Programs(engine).load(stack, stack.settings)
    return (
        before.template.outputs != program.template.outputs
        or before.resources != program.resources
        or dict(before.values) != dict(program.values)
        or (stack.settings.tags, stack.settings.rollback) != (settings.tags, settings.rollback)
        or bool(program.template.transforms)  # which are carried out anew (recorded)
    )


def _of_resource(
    definition: ResourceDefinition,
    current: StackResource | None,
    values: StackValues,
    replaced_ids: set[str],
    changed_parameters: frozenset[str],
) -> list[Change]:
    """The change of a resource, if any; adds its logical id to `replaced_ids` if the change replaces it for certain."""
    after = _known_properties(definition, values, replaced_ids)
    program = values.program
    if current is None:
        _, shown_after = masked_properties(definition, program, {}, after)
        return [_change("Add", definition.logical_id, definition.type, AfterContext=context_of(shown_after))]
    changed_names = changed_properties(current.properties, after)
    details = _details_of_metadata(definition, current, values, changed_parameters)
    if not changed_names and not details:
        return []
    scope = [*(["Metadata"] if details else []), *(["Properties"] if changed_names else [])]
    kind = type_of(definition.type)
    create_only_names = kind.create_only_names(changed_names, current.properties)
    unknown_names = {name for name in changed_names if after.get(name) == UNKNOWN}
    if create_only_names - unknown_names:
        replaced_ids.add(definition.logical_id)
    shown_before, shown_after = masked_properties(definition, program, current.properties, after)
    for name in sorted(changed_names):
        recreation = "Always" if name in create_only_names else "Never"
        target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation}
        target |= target_values(name, shown_before, shown_after)
        causes = list(references(definition.properties.get(name), program.conditions.holds))
        details.append(_detail(target, causes, program))
    # A change that follows from a parameter is listed twice: by the parameter, and by itself (recorded).
    direct = [
        {"Target": detail["Target"], "Evaluation": "Dynamic", "ChangeSource": "DirectModification"}
        for detail in details
        if detail["ChangeSource"] == "ParameterReference"
    ]
    item = {
        "PhysicalResourceId": current.physical_id,
        "Replacement": _replacement(create_only_names, unknown_names),
        "Scope": scope,
        "Details": [*details, *direct],
        "BeforeContext": context_of(shown_before),
        "AfterContext": context_of(shown_after),
    }
    if create_only_names and current.replace_policy != "Retain":
        item["PolicyAction"] = "ReplaceAndDelete"
    return [_change("Modify", definition.logical_id, definition.type, **item)]


def _replacement(create_only_names: frozenset[str], unknown_names: set[str]) -> str:
    """`True` if a change replaces its resource, `False` if not, `Conditional` if unknown values decide it."""
    if create_only_names and create_only_names <= unknown_names:
        return "Conditional"
    return str(bool(create_only_names))


def _known_properties(
    definition: ResourceDefinition, values: StackValues, replaced_ids: set[str]
) -> dict[str, Any]:
    """The properties as they will be, `UNKNOWN` where they depend on a resource that is not created yet."""
    properties: dict[str, Any] = {}
    for name, expression in definition.properties.items():
        try:
            names = set(references(expression, values.program.conditions.holds))
            properties[name] = (
                UNKNOWN if names & replaced_ids else evaluate({name: expression}, values.scope)[name]
            )
        except TemplateInvalid as refusal:
            if _NO_MAPPING in str(refusal):  # known now, and refused at once (recorded)
                raise
            properties[name] = UNKNOWN
        except NotYetKnown:
            properties[name] = UNKNOWN
        except KeyError:  # AWS::NoValue
            continue
    known_names = [name for name, value in properties.items() if value != UNKNOWN]
    try:
        typed_properties = type_of(definition.type).schema.typed(properties)
    except TemplateInvalid:  # which the execution of the change reports
        return properties
    return {**properties, **pick(typed_properties, *known_names)}


def _details_of_metadata(
    definition: ResourceDefinition,
    current: StackResource,
    values: StackValues,
    changed_parameters: frozenset[str],
) -> list[dict[str, Any]]:
    """The change of a resource's metadata, which may follow from a parameter (recorded)."""
    try:
        names = list(references(definition.metadata, None))
    except TemplateInvalid:  # functions in metadata are not checked
        names = []
    if definition.metadata == current.metadata and changed_parameters.isdisjoint(names):
        return []
    return [_detail({"Attribute": "Metadata", "RequiresRecreation": "Never"}, names, values.program)]


def _detail(target: Mapping[str, str], names: Sequence[str], program: TemplateProgram) -> dict[str, Any]:
    """The change of a part of a resource, caused by the first resource or else parameter that it refers to."""
    resource_names = [name for name in names if name in program.resources]
    if resource_names:
        source = {"ChangeSource": "ResourceReference", "CausingEntity": resource_names[0]}
        return {"Target": target, "Evaluation": "Dynamic", **source}
    parameter_names = [name for name in names if name in program.template.parameters]
    if parameter_names:
        source = {"ChangeSource": "ParameterReference", "CausingEntity": parameter_names[0]}
        return {"Target": target, "Evaluation": "Static", **source}
    return {"Target": target, "Evaluation": "Static", "ChangeSource": "DirectModification"}


def _removal(current: StackResource, before: StackValues) -> Change:
    action = "Retain" if current.policy == "Retain" else "Delete"
    return _change(
        "Remove",
        current.logical_id,
        current.type,
        PhysicalResourceId=current.physical_id,
        PolicyAction=action,
        BeforeContext=context_of(_properties_before(current, before)),
    )


def _properties_before(current: StackResource, before: StackValues) -> Mapping[str, Any]:
    """The properties of a resource that is removed, without references to other resources (recorded)."""
    program = before.program
    definition = program.resources.get(current.logical_id)
    if definition is None:
        return current.properties
    properties = dict(current.properties)
    for name, expression in definition.properties.items():
        if name in properties and program.resources.keys() & set(
            references(expression, program.conditions.holds)
        ):
            properties[name] = _without_references(expression, before)
    shown_before, _ = masked_properties(definition, program, properties, {})
    return shown_before


def _without_references(value: Any, values: StackValues) -> Any:
    """A value with its functions evaluated; `UNKNOWN` in the place of those that need a resource."""
    try:
        return evaluate(value, values.scope)
    except (NotYetKnown, TemplateInvalid):
        pass
    if function_name(value):
        return UNKNOWN
    if isinstance(value, Mapping):
        return {key: _without_references(child, values) for key, child in value.items()}
    return [_without_references(child, values) for child in value]


def _change(action: str, logical_id: str, kind: str, **members: Any) -> Change:
    item = {
        "Action": action,
        "LogicalResourceId": logical_id,
        "ResourceType": kind,
        "Scope": [],
        "Details": [],
    }
    return {"Type": "Resource", "ResourceChange": {**item, **members}}

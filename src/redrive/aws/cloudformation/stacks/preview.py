"""Previews: what a change would do to the resources of a stack and to their properties, as change sets describe it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.cloudformation.changes.programs import Programs
from redrive.aws.cloudformation.changes.values import StackValues
from redrive.aws.cloudformation.documents.records import RESOURCE, Stack, StackResource, StackSettings
from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid
from redrive.aws.cloudformation.template.functions import evaluate, function_name
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.sections import ResourceDefinition
from redrive.aws.cloudformation.types.calls import changed_properties
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.offloading import offload
from redrive.engine.engine import Engine

_MASK: Final = "****"  # in the place of what a parameter with NoEcho decides
_OF_RESOURCE: Final = ("BeforeContext", "AfterContext")
_OF_TARGET: Final = ("Path", "BeforeValue", "AfterValue", "AttributeChangeType")

Properties = Mapping[str, Any]


def shown_properties(
    definition: ResourceDefinition, program: TemplateProgram, before: Properties, after: Properties
) -> tuple[Properties, Properties]:
    """Properties before and after, those masked that follow from a parameter that is not to be shown."""
    hidden = {name for name in definition.properties if _is_hidden(definition.properties[name], program)}
    masked = dict.fromkeys(hidden, _MASK)
    return (
        {**before, **{name: masked[name] for name in before.keys() & hidden}},
        {**after, **{name: masked[name] for name in after.keys() & hidden}},
    )


def _is_hidden(expression: Any, program: TemplateProgram) -> bool:
    parameters = program.template.parameters
    names = references(expression, program.conditions.holds)
    return any(parameters[name].hidden for name in names if name in parameters)


def context_of(properties: Properties) -> str:
    """The properties of a resource as the JSON that change sets have."""
    return json.dumps({"Properties": properties}, separators=(",", ":"))


def target_values(name: str, before: Properties, after: Properties) -> dict[str, str]:
    """The members of a detail that say what becomes of a property."""
    target = {"Path": f"/Properties/{name}"}
    if name in before:
        target["BeforeValue"] = _text(before[name])
    if name in after:
        target["AfterValue"] = _text(after[name])
    kind = "Add" if name not in before else "Modify" if name in after else "Remove"
    return {**target, "AttributeChangeType": kind}


def _text(value: Any) -> str:
    structured = isinstance(value, Mapping | list)
    return json.dumps(value, separators=(",", ":")) if structured else text_of(value)


def without_values(change: Mapping[str, Any]) -> Mapping[str, Any]:
    """A change without property values."""
    if "ResourceChange" not in change:
        return change
    resource = {name: value for name, value in change["ResourceChange"].items() if name not in _OF_RESOURCE}
    resource["Details"] = [
        {
            **detail,
            "Target": {name: detail["Target"][name] for name in detail["Target"] if name not in _OF_TARGET},
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
        As change sets show them; for a change that touches no resource but outputs or tags, one that says so.
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
        changes += await offload(stack.name.account, lambda: [_removed(each, before) for each in removals])
    if not changes and await _differs_else(engine, stack, settings, program):
        changes.append({"Type": "Outputs"})
    return changes


def _changed_parameters(before: StackSettings, after: StackSettings) -> frozenset[str]:
    """The names of the parameters whose values change."""
    of_store = changed_properties(before.resolved, after.resolved)
    return changed_properties(before.parameters, after.parameters) | of_store


def _of_resources(
    current: Mapping[str, StackResource], values: StackValues, changed_parameters: frozenset[str]
) -> list[Change]:
    replaced: set[str] = set()
    changes: list[Change] = []
    for name in _in_order(values.program):
        changes += _of_resource(
            values.program.resources[name], current.get(name), values, replaced, changed_parameters
        )
    return changes


def _in_order(program: TemplateProgram) -> list[str]:
    done: dict[str, None] = {}
    remaining = dict(program.dependencies)
    while remaining:
        ready = [name for name, needed in remaining.items() if all(other in done for other in needed)]
        done |= dict.fromkeys(ready)
        remaining = {name: needed for name, needed in remaining.items() if name not in ready}
    return list(done)


async def _differs_else(
    engine: Engine, stack: Stack, settings: StackSettings, program: TemplateProgram
) -> bool:
    """True if outputs or tags change, or anything of resources besides their properties."""
    if not stack.settings.template:
        return True
    before = await Programs(engine).load(stack, stack.settings)
    same = before.template.outputs == program.template.outputs and before.resources == program.resources
    values_same = {name: before.values[name] for name in before.values} == dict(program.values)
    is_transformed = bool(program.template.transforms)  # which is carried out anew (recorded)
    settings_same = (stack.settings.tags, stack.settings.rollback) == (settings.tags, settings.rollback)
    return not same or not values_same or not settings_same or is_transformed


def _of_resource(
    definition: ResourceDefinition,
    current: StackResource | None,
    values: StackValues,
    replaced: set[str],
    changed_parameters: frozenset[str],
) -> list[Change]:
    after = _known_properties(definition, values, replaced)
    program = values.program
    if current is None:
        _, shown_after = shown_properties(definition, program, {}, after)
        return [_change("Add", definition.logical_id, definition.type, AfterContext=context_of(shown_after))]
    changed = changed_properties(current.properties, after)
    details = _details_of_metadata(definition, current, values, changed_parameters)
    if not changed and not details:
        return []
    scope = ["Metadata"] * bool(details) + ["Properties"] * bool(changed)
    kind = type_of(definition.type)
    replacing = kind.replacing(changed, current.properties)
    unknown = {name for name in changed if after.get(name) == UNKNOWN}
    if replacing - unknown:
        replaced.add(definition.logical_id)
    shown_before, shown_after = shown_properties(definition, program, current.properties, after)
    for name in sorted(changed):
        recreation = "Always" if name in replacing else "Never"
        target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation}
        target |= target_values(name, shown_before, shown_after)
        names = list(references(definition.properties.get(name), program.conditions.holds))
        details.append(_detail(target, names, program))
    # A change that follows from a parameter is listed twice: by the parameter, and by itself (recorded).
    direct = [
        {"Target": detail["Target"], "Evaluation": "Dynamic", "ChangeSource": "DirectModification"}
        for detail in details
        if detail["ChangeSource"] == "ParameterReference"
    ]
    item = {
        "PhysicalResourceId": current.physical_id,
        "Replacement": "Conditional" if replacing and replacing <= unknown else str(bool(replacing)),
        "Scope": scope,
        "Details": [*details, *direct],
        "BeforeContext": context_of(shown_before),
        "AfterContext": context_of(shown_after),
    }
    if replacing and current.replace_policy != "Retain":
        item["PolicyAction"] = "ReplaceAndDelete"
    return [_change("Modify", definition.logical_id, definition.type, **item)]


def _known_properties(
    definition: ResourceDefinition, values: StackValues, replaced: set[str]
) -> dict[str, Any]:
    """The properties as they will be, as far as that is known before resources are made."""
    properties: dict[str, Any] = {}
    for name, expression in definition.properties.items():
        try:
            names = set(references(expression, values.program.conditions.holds))
            properties[name] = (
                UNKNOWN if names & replaced else evaluate({name: expression}, values.scope)[name]
            )
        except TemplateInvalid as refusal:
            if _NO_MAPPING in str(refusal):  # known now, and refused at once (recorded)
                raise
            properties[name] = UNKNOWN
        except NotYetKnown:
            properties[name] = UNKNOWN
        except KeyError:  # AWS::NoValue
            continue
    known = {name: value for name, value in properties.items() if value != UNKNOWN}
    try:
        typed = type_of(definition.type).schema.typed(properties)
    except TemplateInvalid:
        return properties
    return {**properties, **{name: typed[name] for name in known if name in typed}}


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
    """The change of a part of a resource, with whichever of the names that it refers to causes it."""
    of_resources = [item for item in names if item in program.resources]
    if of_resources:
        source = {"ChangeSource": "ResourceReference", "CausingEntity": of_resources[0]}
        return {"Target": target, "Evaluation": "Dynamic", **source}
    parameters = [item for item in names if item in program.template.parameters]
    if parameters:
        source = {"ChangeSource": "ParameterReference", "CausingEntity": parameters[0]}
        return {"Target": target, "Evaluation": "Static", **source}
    return {"Target": target, "Evaluation": "Static", "ChangeSource": "DirectModification"}


def _removed(current: StackResource, before: StackValues) -> Change:
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
    return shown_properties(definition, program, properties, {})[0]


def _without_references(value: Any, values: StackValues) -> Any:
    """A value with its functions carried out, as far as they need no resource."""
    try:
        return evaluate(value, values.scope)
    except (NotYetKnown, TemplateInvalid):
        pass
    if function_name(value):
        return UNKNOWN
    if isinstance(value, Mapping):
        return {key: _without_references(child, values) for key, child in value.items()}
    return [_without_references(child, values) for child in value]


def _change(action: str, logical_id: str, kind: str, **more: Any) -> Change:
    item = {
        "Action": action,
        "LogicalResourceId": logical_id,
        "ResourceType": kind,
        "Scope": [],
        "Details": [],
    }
    return {"Type": "Resource", "ResourceChange": {**item, **more}}

"""Previews: what a change would do to the resources of a stack, as change sets show it."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.cloudformation.changes.programs import Programs
from redrive.aws.cloudformation.changes.values import StackValues
from redrive.aws.cloudformation.documents.records import RESOURCE, Stack, StackResource, StackSettings
from redrive.aws.cloudformation.stacks.property_values import context_of, shown_properties, target_values
from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid
from redrive.aws.cloudformation.template.functions import evaluate
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.sections import ResourceDefinition
from redrive.aws.cloudformation.types.resource_type import changed_properties
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.offloading import offload
from redrive.engine.engine import Engine

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
    values = StackValues(program, dict(current), await Programs(engine).exports(stack.name))
    changes = await offload(stack.name.account, lambda: _of_resources(current, values))
    changes += [_removed(current[name]) for name in current if name not in program.resources]
    if not changes and await _differs_else(engine, stack, settings, program):
        changes.append({"Type": "Outputs"})
    return changes


def _of_resources(current: Mapping[str, StackResource], values: StackValues) -> list[Change]:
    replaced: set[str] = set()
    changes: list[Change] = []
    for name in _in_order(values.program):
        changes += _of_resource(values.program.resources[name], current.get(name), values, replaced)
    return changes


def _in_order(program: TemplateProgram) -> list[str]:
    done: dict[str, None] = {}
    left = dict(program.dependencies)
    while left:
        ready = [name for name, needed in left.items() if all(other in done for other in needed)]
        done |= dict.fromkeys(ready)
        left = {name: needed for name, needed in left.items() if name not in ready}
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
    definition: ResourceDefinition, current: StackResource | None, values: StackValues, replaced: set[str]
) -> list[Change]:
    after = _known_properties(definition, values, replaced)
    program = values.program
    if current is None:
        _, shown_after = shown_properties(definition, program, {}, after)
        return [_change("Add", definition.logical_id, definition.type, AfterContext=context_of(shown_after))]
    changed = changed_properties(current.properties, after)
    if not changed:
        return []
    kind = type_of(definition.type)
    replacing = kind.replacing(changed, current.properties)
    unknown = {name for name in changed if after.get(name) == UNKNOWN}
    if replacing - unknown:
        replaced.add(definition.logical_id)
    shown_before, shown_after = shown_properties(definition, program, current.properties, after)
    details = [
        _detail(name, definition, values, "Always" if name in replacing else "Never")
        for name in sorted(changed)
    ]
    for name, detail in zip(sorted(changed), details, strict=True):
        detail["Target"] |= target_values(name, shown_before, shown_after)
    # What follows from a parameter is told twice: by the parameter, and as a change of its own (recorded).
    direct = [
        {"Target": detail["Target"], "Evaluation": "Dynamic", "ChangeSource": "DirectModification"}
        for detail in details
        if detail["ChangeSource"] == "ParameterReference"
    ]
    item = {
        "PhysicalResourceId": current.physical_id,
        "Replacement": "Conditional" if replacing and replacing <= unknown else str(bool(replacing)),
        "Scope": ["Properties"],
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


def _detail(
    name: str, definition: ResourceDefinition, values: StackValues, recreation: str
) -> dict[str, Any]:
    target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation}
    expression = definition.properties.get(name)
    names = list(references(expression, values.program.conditions.holds))
    of_resources = [item for item in names if item in values.program.resources]
    if of_resources:
        source = {"ChangeSource": "ResourceReference", "CausingEntity": of_resources[0]}
        return {"Target": target, "Evaluation": "Dynamic", **source}
    parameters = [item for item in names if item in values.program.template.parameters]
    if parameters:
        source = {"ChangeSource": "ParameterReference", "CausingEntity": parameters[0]}
        return {"Target": target, "Evaluation": "Static", **source}
    return {"Target": target, "Evaluation": "Static", "ChangeSource": "DirectModification"}


def _removed(current: StackResource) -> Change:
    action = "Retain" if current.policy == "Retain" else "Delete"
    return _change(
        "Remove",
        current.logical_id,
        current.type,
        PhysicalResourceId=current.physical_id,
        PolicyAction=action,
    )


def _change(action: str, logical_id: str, kind: str, **more: Any) -> Change:
    item = {
        "Action": action,
        "LogicalResourceId": logical_id,
        "ResourceType": kind,
        "Scope": [],
        "Details": [],
    }
    return {"Type": "Resource", "ResourceChange": {**item, **more}}

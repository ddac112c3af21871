"""Values of properties before and after a change, as change sets show them to whoever asks for them."""

import json
from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.sections import ResourceDefinition

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
    """A change as it is shown to whoever does not ask for values."""
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

"""References of a template, and the order that they ask for."""

from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.functions import VARIABLE, attribute_of, function_name, sub_parts
from redrive.aws.cloudformation.template.scope import PSEUDO_PARAMETERS, unresolved
from redrive.aws.cloudformation.template.sections import ResourceDefinition, Template

Holds = Callable[[str], bool] | None
"""Tells whether a condition holds; None: nobody knows, and all branches count."""


def references(value: Any, holds: Holds) -> Iterator[str]:
    """The names that a value refers to, in branches that are taken: parameters and resources, some of them twice."""
    name = function_name(value)
    argument = value[name] if name else None
    match name:
        case "Ref" if isinstance(argument, str):
            yield argument
        case "Fn::GetAtt":
            resource, attribute = attribute_of(argument)
            yield resource
            yield from references(attribute, holds)
        case "Fn::Sub":
            text, variables = sub_parts(argument)
            yield from _of_text(text, variables)
            for variable in variables.values():
                yield from references(variable, holds)
        case "Fn::If" if isinstance(argument, list) and argument:
            condition, *branches = argument
            taken = branches if holds is None else branches[:1] if holds(condition) else branches[1:]
            yield from references(taken, holds)
        case _:
            for child in _children(value):
                yield from references(child, holds)


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _of_text(text: str, variables: Mapping[str, Any]) -> Iterator[str]:
    for match in VARIABLE.finditer(text):
        name = match[1].strip()
        if not name.startswith("!") and name not in variables:
            yield name.partition(".")[0]


def active(template: Template, holds: Holds) -> dict[str, ResourceDefinition]:
    """The resources whose conditions hold, by logical id."""
    resources = template.resources.items()
    return {name: definition for name, definition in resources if _is_made(definition.condition, holds)}


def _is_made(condition: str, holds: Holds) -> bool:
    return not condition or holds is None or holds(condition)


def dependencies(template: Template, holds: Holds) -> dict[str, list[str]]:
    """For each resource that is made those that must be there before it.

    Raises:
        TemplateInvalid: A reference leads nowhere, or in a circle.
    """
    active_resources = active(template, holds)
    known = active_resources.keys() | template.parameters.keys() | PSEUDO_PARAMETERS
    graph: dict[str, list[str]] = {}
    for name, resource in active_resources.items():
        names = dict.fromkeys(references(resource.properties, holds))
        lost = [item for item in names if item not in known]
        lost += [item for item in resource.depends_on if item not in template.resources]
        if lost:
            raise unresolved(lost, "Resources")
        waited = [*names, *resource.depends_on]
        graph[name] = list(dict.fromkeys(item for item in waited if item in active_resources))
    _check_outputs(template, holds, known)
    _check_circles(graph)
    return graph


def _check_outputs(template: Template, holds: Holds, known: set[str]) -> None:
    for output in template.outputs.values():
        if not _is_made(output.condition, holds):
            continue
        names = [*references(output.value, holds), *references(output.export, holds)]
        if lost := [item for item in dict.fromkeys(names) if item not in known]:
            raise unresolved(lost, "Outputs")


def _check_circles(graph: Mapping[str, list[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = set(error.args[1])
        names = ", ".join(name for name in graph if name in circle)
        raise TemplateInvalid(f"Circular dependency between resources: [{names}]") from None

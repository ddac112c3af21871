"""References of a template, the order that follows from them, and the form of functions, checked before evaluation."""

from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, template_error
from redrive.aws.cloudformation.template.functions import (
    JOIN_FAULT,
    SELECT_FAULT,
    SPLIT_FAULT,
    VARIABLE,
    attribute_of,
    function,
    function_name,
    sub_parts,
)
from redrive.aws.cloudformation.template.scope import (
    PSEUDO_PARAMETERS,
    EvaluationScope,
    unresolved_references,
)
from redrive.aws.cloudformation.template.sections import ResourceDefinition, Template
from redrive.aws.kit.json_cursor import children_of

Holds = Callable[[str], bool] | None
"""Tells whether a condition holds; None: it is not known, and all branches count."""


def references(value: Any, holds: Holds) -> Iterator[str]:
    """The parameters and resources that a value refers to, some of them twice; without those of other branches."""
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
            yield from _references_in_text(text, variables)
            for variable in variables.values():
                yield from references(variable, holds)
        case "Fn::If" if isinstance(argument, list) and argument:
            condition, *branches = argument
            if holds is not None:
                branches = branches[:1] if holds(condition) else branches[1:]
            yield from references(branches, holds)
        case _:
            for child in children_of(value):
                yield from references(child, holds)


def _references_in_text(text: str, variables: Mapping[str, Any]) -> Iterator[str]:
    for match in VARIABLE.finditer(text):
        name = match[1].strip()
        if not name.startswith("!") and name not in variables:
            yield name.partition(".")[0]


def active_resources(template: Template, holds: Holds) -> dict[str, ResourceDefinition]:
    """The resources whose conditions hold, by logical id."""
    resources = template.resources.items()
    return {name: definition for name, definition in resources if _is_active(definition.condition, holds)}


def _is_active(condition: str, holds: Holds) -> bool:
    return not condition or holds is None or holds(condition)


def dependencies(template: Template, holds: Holds) -> dict[str, list[str]]:
    """The resources that each resource depends on, of those whose conditions hold.

    Raises:
        TemplateInvalid: A reference leads nowhere, or in a circle.
    """
    resources = active_resources(template, holds)
    referable = resources.keys() | template.parameters.keys() | PSEUDO_PARAMETERS
    graph: dict[str, list[str]] = {}
    for name, resource in resources.items():
        names = dict.fromkeys(references(resource.properties, holds))
        unknown_names = [item for item in names if item not in referable]
        unknown_names += [item for item in resource.depends_on if item not in template.resources]
        if unknown_names:
            raise unresolved_references(unknown_names, "Resources")
        graph[name] = list(
            dict.fromkeys(item for item in (*names, *resource.depends_on) if item in resources)
        )
    _check_outputs(template, holds, referable)
    _check_circles(graph)
    return graph


def _check_outputs(template: Template, holds: Holds, referable: set[str]) -> None:
    for output in template.outputs.values():
        if not _is_active(output.condition, holds):
            continue
        names = [*references(output.value, holds), *references(output.export, holds)]
        if unknown_names := [item for item in dict.fromkeys(names) if item not in referable]:
            raise unresolved_references(unknown_names, "Outputs")


def _check_circles(graph: Mapping[str, list[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = set(error.args[1])
        names = ", ".join(name for name in graph if name in circle)
        raise TemplateInvalid(f"Circular dependency between resources: [{names}]") from None


_PAIR: Final = 2


def check_functions(template: Template, scope: EvaluationScope) -> None:
    """Check the arguments of each function by their shape, and that all conditions are declared.

    Raises:
        TemplateInvalid: A function has other arguments, or a condition is not declared.
    """
    for name in _condition_names(template):
        if name not in template.conditions:
            raise template_error(f"unresolved condition dependency {name} in the template")
    for resource in template.resources.values():
        _check(resource.properties, template, scope)
    for output in template.outputs.values():
        _check(output.value, template, scope)
        _check(output.export, template, scope)


def _condition_names(template: Template) -> list[str]:
    resource_conditions = [resource.condition for resource in template.resources.values()]
    output_conditions = [output.condition for output in template.outputs.values()]
    return [name for name in (*resource_conditions, *output_conditions) if name]


def _check(value: Any, template: Template, scope: EvaluationScope) -> None:
    """Refuse functions, in a value and all within, that are unknown or have arguments of a wrong shape."""
    name = function_name(value)
    if name:
        function(name, scope)  # refuses an unknown function
        if name in _SHAPES:
            _SHAPES[name](value[name])
        if name == "Fn::If" and value[name][0] not in template.conditions:
            raise template_error(f"unresolved condition dependency {value[name][0]} in Fn::If")
    for child in children_of(value):
        _check(child, template, scope)


def _ref(argument: Any) -> None:
    if not isinstance(argument, str):
        raise template_error("every Ref object must have a single String value.")


def _pair(fault: str, first: type, second: tuple[type, ...]) -> Callable[[Any], None]:
    """A check that an argument is a list of two, of these types; it raises TemplateInvalid with the text `fault`."""

    def check(argument: Any) -> None:
        fits = isinstance(argument, list) and len(argument) == _PAIR and isinstance(argument[0], first)
        if not fits or not isinstance(argument[1], second):
            raise template_error(fault)

    return check


def _if(argument: Any) -> None:
    match argument:
        case [str(), _, _]:
            return
    raise template_error("Fn::If requires a list argument with three elements")


def _equals(argument: Any) -> None:
    if not isinstance(argument, list) or len(argument) != _PAIR:
        raise template_error("every Fn::Equals object requires a list of 2 string parameters.")


_SHAPES: Final[Mapping[str, Callable[[Any], object]]] = {
    "Ref": _ref,
    "Fn::GetAtt": attribute_of,
    "Fn::Sub": sub_parts,
    "Fn::Join": _pair(JOIN_FAULT, str, (list, Mapping)),
    "Fn::Split": _pair(SPLIT_FAULT, str, (str, Mapping)),
    "Fn::Select": _pair(SELECT_FAULT, object, (list, Mapping)),
    "Fn::If": _if,
    "Fn::Equals": _equals,
}

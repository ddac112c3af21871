"""The shape of functions, checked before anything is evaluated: refused at once, whatever the values will be."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import template_error
from redrive.aws.cloudformation.template.functions import (
    JOIN_FAULT,
    SELECT_FAULT,
    SPLIT_FAULT,
    attribute_of,
    function,
    function_name,
    sub_parts,
)
from redrive.aws.cloudformation.template.scope import EvaluationScope
from redrive.aws.cloudformation.template.sections import Template

_PAIR: Final = 2


def check_functions(template: Template, scope: EvaluationScope) -> None:
    """Check the shape of each function, and that the conditions that are named are declared.

    Raises:
        TemplateInvalid: One has not the shape that its function has.
    """
    for name in _conditions_named(template):
        if name not in template.conditions:
            raise template_error(f"unresolved condition dependency {name} in the template")
    for resource in template.resources.values():
        _check(resource.properties, template, scope)
    for output in template.outputs.values():
        _check(output.value, template, scope)
        _check(output.export, template, scope)


def _conditions_named(template: Template) -> list[str]:
    of_resources = [resource.condition for resource in template.resources.values()]
    of_outputs = [output.condition for output in template.outputs.values()]
    return [name for name in (*of_resources, *of_outputs) if name]


def _check(value: Any, template: Template, scope: EvaluationScope) -> None:
    name = function_name(value)
    if name:
        function(name, scope)
        if name in _SHAPES:
            _SHAPES[name](value[name])
        if name == "Fn::If" and value[name][0] not in template.conditions:
            raise template_error(f"unresolved condition dependency {value[name][0]} in Fn::If")
    for child in _children(value):
        _check(child, template, scope)


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _ref(argument: Any) -> None:
    if not isinstance(argument, str):
        raise template_error("every Ref object must have a single String value.")


def _pair(fault: str, first: type, second: tuple[type, ...]) -> Callable[[Any], None]:
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

"""Functions of templates, evaluated."""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.aws.cloudformation.template.cidr import subnets
from redrive.aws.cloudformation.template.errors import TemplateInvalid, template_error
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.scope import (
    NO_VALUE,
    NO_VALUE_NAME,
    ZONE_COUNT,
    ZONES,
    EvaluationScope,
)

# Texts of texts of texts grow as fast as they are nested; a template may have a megabyte.
TEXT_CHARS_MAX: Final = 1_000_000
VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")

Function = Callable[[Any, EvaluationScope], Any]


def function_name(value: Any) -> str:
    """The name of the function that a value is; empty for any other value."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return ""
    (name,) = value
    return name if name == "Ref" or name.startswith("Fn::") else ""


def evaluate(value: Any, scope: EvaluationScope) -> Any:
    """Returns a value with its functions evaluated.

    Raises:
        TemplateInvalid: A function is not used as it can be, or refers to nothing.
        NotYetKnown: It refers to a resource of which the scope knows nothing yet.
    """
    scope.spend(1)
    name = function_name(value)
    if name:
        result = function(name, scope)(value[name], scope)
        if name != "Fn::If":  # whose value is a part of the template, paid for when it was evaluated
            scope.spend_value(result)
        return result
    if isinstance(value, Mapping):
        items = ((key, evaluate(child, scope)) for key, child in value.items())
        return {key: child for key, child in items if child is not NO_VALUE}
    if isinstance(value, list):
        return [child for child in (evaluate(child, scope) for child in value) if child is not NO_VALUE]
    return value


def function(name: str, scope: EvaluationScope) -> Function:
    """Returns the function of a name; raises TemplateInvalid if no function has that name."""
    implementation = FUNCTIONS.get(name) or (EXTENSIONS.get(name) if scope.extended else None)
    if implementation is None:
        names = ", ".join([*FUNCTIONS, *(EXTENSIONS if scope.extended else ())])
        raise template_error(f"Encountered unsupported function: {name} Supported functions are: [{names}]")
    return implementation


def scalar(value: Any, scope: EvaluationScope, location: str) -> str:
    """Returns a value, evaluated, as text; raises TemplateInvalid if it is an object or a list."""
    result = evaluate(value, scope)
    if isinstance(result, Mapping | list):
        raise template_error(f"{location} values must be strings.")
    return "" if result is NO_VALUE else text_of(result)


def _list(value: Any, scope: EvaluationScope) -> list[Any] | None:
    result = evaluate(value, scope)
    return result if isinstance(result, list) else None


def _check_length(chars: int) -> None:
    if chars > TEXT_CHARS_MAX:
        raise template_error(f"a value is longer than {TEXT_CHARS_MAX} characters.")


def _join_texts(texts: Sequence[str], delimiter: str = "") -> str:
    _check_length(sum(map(len, texts)) + len(delimiter) * len(texts))
    return delimiter.join(texts)


# ---- references ------------------------------------------------------------------------------------------------------


def _ref(argument: Any, scope: EvaluationScope) -> Any:
    if not isinstance(argument, str):
        raise template_error("every Ref object must have a single String value.")
    value = scope.reference(argument)
    return NO_VALUE if value == NO_VALUE_NAME else value  # a parameter's text may be that, too (recorded)


def attribute_of(argument: Any) -> tuple[str, Any]:
    """The logical id and the attribute that `Fn::GetAtt` names; the attribute may be a function.

    Raises:
        TemplateInvalid: It names something else.
    """
    if isinstance(argument, str):
        resource, _, attribute = argument.partition(".")
        argument = [resource, attribute]
    match argument:
        case [str(resource), attribute] if resource and attribute and isinstance(attribute, str | Mapping):
            return resource, attribute
    raise template_error(
        "every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute"
    )


def _get_att(argument: Any, scope: EvaluationScope) -> Any:
    resource, attribute = attribute_of(argument)
    return scope.attribute(resource, scalar(attribute, scope, "Fn::GetAtt"))


def sub_parts(argument: Any) -> tuple[str, Mapping[str, Any]]:
    """The text and the variables of `Fn::Sub`; raises TemplateInvalid if it has other parts."""
    match argument:
        case str(text):
            return text, {}
        case [str(text), Mapping() as variables]:
            return text, variables
    raise template_error(
        "One or more Fn::Sub intrinsic functions don't specify expected arguments. Specify a string as first"
        " argument, and an optional second argument to specify a mapping of values to replace in the string"
    )


def _sub(argument: Any, scope: EvaluationScope) -> str:
    text, variables = sub_parts(argument)
    values = {name: scalar(value, scope, "Fn::Sub") for name, value in variables.items()}

    def value_of(name: str) -> str:
        if name.startswith("!"):  # `${!Name}` stands for the text `${Name}`
            return f"${{{name[1:]}}}"
        if name in values:
            return values[name]
        resource, dot, attribute = name.partition(".")
        value = scope.attribute(resource, attribute) if dot else scope.reference(name)
        if isinstance(value, Mapping | list):
            raise template_error(f"Fn::Sub expression does not resolve to a string: {name}")
        return "" if value is NO_VALUE else text_of(value)

    texts, at = [], 0
    for match in VARIABLE.finditer(text):
        scope.spend(1)
        texts += [text[at : match.start()], value_of(match[1].strip())]
        at = match.end()
    return _join_texts([*texts, text[at:]])


def _import_value(argument: Any, scope: EvaluationScope) -> str:
    return scope.export_value(scalar(argument, scope, "Fn::ImportValue"))


def _find_in_map(argument: Any, scope: EvaluationScope) -> Any:
    path, default = _map_path(argument, scope)
    keys = [scalar(part, scope, "Fn::FindInMap") for part in path]
    entry: Any = scope.mappings
    for key in keys:
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    if entry is not None:
        return entry
    if default is not None:
        return evaluate(default, scope)
    raise template_error(f"Unable to get mapping for {'::'.join(keys)}")


_MAP_PATH_LENGTH: Final = 3


def _map_path(argument: Any, scope: EvaluationScope) -> tuple[list[Any], Any]:
    """The map and the two keys of `Fn::FindInMap`, and its default, which only the extended language has."""
    match argument:
        case [_, _, _]:
            return argument, None
        case [*path, {"DefaultValue": default}] if len(path) == _MAP_PATH_LENGTH and scope.extended:
            return path, default
    raise template_error(
        "every Fn::FindInMap object requires three parameters, the map name, map key and the attribute for return value"
    )


# ---- texts and lists -------------------------------------------------------------------------------------------------

JOIN_FAULT: Final = (
    "every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined"
    " or a function that returns a list of strings (such as Fn::GetAZs) to be joined."
)
SPLIT_FAULT: Final = (
    "every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string to be split or a"
    " function that returns a string to be split."
)
SELECT_FAULT: Final = "Fn::Select requires a list argument with two elements: an integer index and a list"


def _join(argument: Any, scope: EvaluationScope) -> str:
    match argument:
        case [str(delimiter), values] if (items := _list(values, scope)) is not None:
            return _join_texts([scalar(item, scope, "Fn::Join") for item in items], delimiter)
    raise template_error(JOIN_FAULT)


def _split(argument: Any, scope: EvaluationScope) -> list[str]:
    """The parts of a text between delimiters; raises TemplateInvalid."""
    match argument:
        case [str(delimiter), value] if delimiter:
            text = scalar(value, scope, "Fn::Split")
            scope.spend(text.count(delimiter))
            return text.split(delimiter)
    raise template_error(SPLIT_FAULT)


def _select(argument: Any, scope: EvaluationScope) -> Any:
    match argument:
        case [index, values] if (items := _list(values, scope)) is not None:
            text = scalar(index, scope, "Fn::Select")
            if not text.isascii() or not text.isdecimal():
                raise template_error(SELECT_FAULT)
            if int(text[:9]) >= len(items):  # nine digits: Python refuses to read thousands
                raise template_error(f"Fn::Select cannot select nonexistent value at index {text}")
            return items[int(text)]
    raise template_error(SELECT_FAULT)


def _base64(argument: Any, scope: EvaluationScope) -> str:
    content = scalar(argument, scope, "Fn::Base64").encode()
    _check_length(len(content) * 4 // 3)
    return b64encode(content).decode()


def _get_azs(argument: Any, scope: EvaluationScope) -> list[str]:
    region = scalar(argument, scope, "Fn::GetAZs") or scope.values["AWS::Region"]
    return [f"{region}{letter}" for letter in ZONES[:ZONE_COUNT]]


def _cidr(argument: Any, scope: EvaluationScope) -> list[str]:
    if not isinstance(argument, list) or len(argument) not in (2, 3):
        raise template_error("every Fn::Cidr object requires two or three parameters")
    block, *numbers = (scalar(item, scope, "Fn::Cidr") for item in argument)
    return subnets(block, *numbers)


# ---- conditions ------------------------------------------------------------------------------------------------------

_OPERANDS_MIN: Final = 2
_OPERANDS_MAX: Final = 10


def _if(argument: Any, scope: EvaluationScope) -> Any:
    match argument:
        case [str(condition), if_true, if_false]:
            return evaluate(if_true if scope.condition(condition) else if_false, scope)
    raise template_error("Fn::If requires a list argument with three elements")


def _equals(argument: Any, scope: EvaluationScope) -> bool:
    match argument:
        case [left, right]:
            return bool(_comparable(left, scope) == _comparable(right, scope))
    raise template_error("every Fn::Equals object requires a list of 2 string parameters.")


def _comparable(value: Any, scope: EvaluationScope) -> Any:
    result = evaluate(value, scope)
    return result if isinstance(result, Mapping | list) else text_of(None if result is NO_VALUE else result)


def truth(value: Any, scope: EvaluationScope) -> bool:
    """Returns whether a condition holds; raises TemplateInvalid if the value is not a condition."""
    match value:
        case {"Condition": str(name)}:
            return scope.condition(name)
        case bool(constant):
            return constant
    name = function_name(value)
    if name not in CONDITIONS:
        raise template_error("a condition must be a function that is true or false.")
    return bool(CONDITIONS[name](value[name], scope))


def _not(argument: Any, scope: EvaluationScope) -> bool:
    match argument:
        case [condition]:
            return not truth(condition, scope)
    raise template_error("Fn::Not requires a list argument with one element")


def _and(argument: Any, scope: EvaluationScope) -> bool:
    return all(truth(operand, scope) for operand in _operands("Fn::And", argument))


def _or(argument: Any, scope: EvaluationScope) -> bool:
    return any(truth(operand, scope) for operand in _operands("Fn::Or", argument))


def _operands(name: str, argument: Any) -> list[Any]:
    """The operands of `Fn::And` or `Fn::Or`; raises TemplateInvalid if they are too few or too many."""
    if not isinstance(argument, list) or not _OPERANDS_MIN <= len(argument) <= _OPERANDS_MAX:
        raise template_error(
            f"every {name} object requires a list of at least 2 and at most 10 boolean parameters."
        )
    return argument


# ---- AWS::LanguageExtensions -----------------------------------------------------------------------------------------


def _length(argument: Any, scope: EvaluationScope) -> int:
    items = _list(argument, scope)
    if items is None:
        raise template_error("Fn::Length requires a list, or a function that returns a list.")
    return len(items)


def _to_json_string(argument: Any, scope: EvaluationScope) -> str:
    if not isinstance(argument, Mapping | list):
        raise template_error("Fn::ToJsonString requires an object or a list.")
    try:
        result = evaluate(argument, scope)
        scope.spend_value(result)
        text = orjson.dumps(result)
        _check_length(len(text))
        return text.decode()
    except (TypeError, ValueError) as error:
        raise TemplateInvalid(f"Template error: Fn::ToJsonString: {error}") from None


CONDITIONS: Final[Mapping[str, Function]] = {
    "Fn::And": _and,
    "Fn::Equals": _equals,
    "Fn::Not": _not,
    "Fn::Or": _or,
}
FUNCTIONS: Final[Mapping[str, Function]] = {
    "Ref": _ref,
    "Fn::Base64": _base64,
    "Fn::Cidr": _cidr,
    "Fn::FindInMap": _find_in_map,
    "Fn::GetAtt": _get_att,
    "Fn::GetAZs": _get_azs,
    "Fn::If": _if,
    "Fn::ImportValue": _import_value,
    "Fn::Join": _join,
    "Fn::Select": _select,
    "Fn::Split": _split,
    "Fn::Sub": _sub,
    **CONDITIONS,
}
EXTENSIONS: Final[Mapping[str, Function]] = {"Fn::Length": _length, "Fn::ToJsonString": _to_json_string}

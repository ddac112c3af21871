"""Parameters: what a template declares, and the values that a stack has for them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import re2

from redrive.aws.cloudformation.template.errors import TemplateInvalid, check_count, format_error

PARAMETERS_MAX: Final = 200
VALUE_BYTES_MAX: Final = 4096
MASK: Final = "****"  # in the place of values that are not to be echoed

_NAME: Final = re.compile(r"[A-Za-z0-9]{1,255}")
_TYPE: Final = re.compile(
    r"String|Number|CommaDelimitedList|List<(?:Number|String|AWS::[A-Za-z0-9:]+)>|AWS::[A-Za-z0-9:]+"
)
_STORED: Final = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class ParameterDefinition:
    """A parameter as its template declares it."""

    name: str  # In the template
    type: str  # `String`, `Number`, `CommaDelimitedList`, `AWS::SSM::Parameter::Value<…>` …
    default: str | None = None  # None: a value must be given
    allowed_values: tuple[str, ...] = ()  # Empty: any
    pattern: str = ""  # Matches a whole value; empty: any value will do
    length: tuple[float, float] = (0, float("inf"))  # The least and the greatest number of characters
    bounds: tuple[float, float] = (float("-inf"), float("inf"))  # The least and the greatest number
    hidden: bool = False  # `NoEcho`: its value is not shown
    description: str = ""  # Free text
    constraint: str = ""  # Shown with a wrong value

    @property
    def stored_type(self) -> str:
        """The type of the value in the parameter store, for a parameter that names such a value; else empty."""
        match = _STORED.fullmatch(self.type)
        return match[1] if match else ""

    @property
    def is_list(self) -> bool:
        """True if a reference to it is a list."""
        kind = self.stored_type or self.type
        return kind == "CommaDelimitedList" or kind.startswith("List<")

    def value(self, text: str) -> str | list[str]:
        """The value of a reference to the parameter, if the parameter has this text."""
        return [item.strip() for item in text.split(",")] if self.is_list else text


def read_parameters(section: Mapping[str, Any]) -> dict[str, ParameterDefinition]:
    """Read the declarations of parameters; raises TemplateInvalid if one is malformed."""
    check_count(len(section), "parameters", PARAMETERS_MAX)
    return {name: _parameter(name, definition) for name, definition in section.items()}


def _parameter(name: str, definition: Any) -> ParameterDefinition:
    if not isinstance(definition, Mapping):
        raise format_error("Any Parameters member must be an object.")
    if not _NAME.fullmatch(name):
        raise format_error(f"Parameter name {name} is non alphanumeric.")
    kind = definition.get("Type")
    if kind is None:
        raise format_error("Every Parameters object must contain a Type member.")
    if not isinstance(kind, str) or not (_TYPE.fullmatch(kind) or _STORED.fullmatch(kind)):
        raise format_error(f"Unrecognized parameter type: {kind}")
    default = definition.get("Default")
    if isinstance(default, Mapping | list):
        raise format_error("Every Default member must be a string.")
    pattern = str(definition.get("AllowedPattern") or "")
    _check_pattern(name, pattern)
    return ParameterDefinition(
        name=name,
        type=kind,
        default=None if default is None else text_of(default),
        allowed_values=_allowed_values(definition),
        pattern=pattern,
        length=(
            _limit(name, definition, "MinLength", 0),
            _limit(name, definition, "MaxLength", float("inf")),
        ),
        bounds=(
            _limit(name, definition, "MinValue", float("-inf")),
            _limit(name, definition, "MaxValue", float("inf")),
        ),
        hidden=text_of(definition.get("NoEcho", False)).lower() == "true",
        description=str(definition.get("Description") or ""),
        constraint=str(definition.get("ConstraintDescription") or ""),
    )


def _allowed_values(definition: Mapping[str, Any]) -> tuple[str, ...]:
    values = definition.get("AllowedValues") or []
    if not isinstance(values, list) or any(isinstance(value, Mapping | list) for value in values):
        raise format_error("Every AllowedValues member must be a list of strings.")
    return tuple(text_of(value) for value in values)


def _limit(name: str, definition: Mapping[str, Any], key: str, default: float) -> float:
    """A bound in a parameter's declaration, or the default; raises TemplateInvalid."""
    value = definition.get(key, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise format_error(f"Parameter {name}: {key} must be a number.") from None


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re2.compile(pattern)
    except re2.error:
        raise format_error(f"Parameter {name}: AllowedPattern is not a regular expression.") from None


def masked(properties: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """Properties with those of these names masked."""
    return {name: MASK if name in names else value for name, value in properties.items()}


def text_of(value: Any) -> str:
    """A value of JSON or YAML as a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


# ---- values ----------------------------------------------------------------------------------------------------------

ParameterArguments = Sequence[Mapping[str, Any]]
"""A caller's parameters: `ParameterKey`, and `ParameterValue` or `UsePreviousValue`."""


def choose_values(
    definitions: Mapping[str, ParameterDefinition], arguments: ParameterArguments, previous: Mapping[str, str]
) -> dict[str, str]:
    """The text of each parameter: its argument, its previous text, or its default.

    Raises:
        TemplateInvalid: One has no text, or one that its declaration forbids.
    """
    unknown_names = [
        item.get("ParameterKey") or "null"
        for item in arguments
        if item.get("ParameterKey") not in definitions
    ]
    if unknown_names:
        raise TemplateInvalid(f"Parameters: [{', '.join(unknown_names)}] do not exist in the template")
    values = dict(_argument_values(arguments, previous))
    missing_names = []
    for name, parameter in definitions.items():
        value = values.get(name, parameter.default)
        if value is None:
            missing_names.append(name)
        else:
            values[name] = value
    if stored_names := [name for name in missing_names if definitions[name].stored_type]:
        raise TemplateInvalid(f"Parameter {stored_names[0]} should either have input value or default value")
    if missing_names:
        raise TemplateInvalid(f"Parameters: [{', '.join(missing_names)}] must have values")
    for name, parameter in definitions.items():
        check_value(parameter, values[name])
    return {name: values[name] for name in definitions}


def _argument_values(arguments: ParameterArguments, previous: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The values of a request by parameter, those of the previous version where it asks for them."""
    for item in arguments:
        name = item["ParameterKey"]
        if item.get("UsePreviousValue"):
            fault = f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true"
            if item.get("ParameterValue"):
                raise TemplateInvalid(f"{fault} and non empty value for a parameter")
            if name not in previous:
                raise TemplateInvalid(f"{fault} for a parameter key not in the previous template")
            yield name, previous[name]
        elif item.get("ParameterValue") is not None:
            yield name, item["ParameterValue"]


def check_value(parameter: ParameterDefinition, value: str) -> None:
    """Check a value by its parameter's declaration; raises TemplateInvalid if that forbids it."""
    if len(value.encode()) > VALUE_BYTES_MAX:
        raise TemplateInvalid(f"Parameter '{parameter.name}' is longer than {VALUE_BYTES_MAX} bytes")
    is_number = parameter.type in ("Number", "List<Number>")
    items = parameter.value(value) if parameter.is_list else [value]
    for item in items:
        fault = _number_fault(parameter, item) if is_number else _text_fault(parameter, item)
        if fault:
            raise TemplateInvalid(f"Parameter '{parameter.name}' {fault}")


def _number_fault(parameter: ParameterDefinition, item: str) -> str:
    """The fault of a number; empty: there is none."""
    if not _NUMBER.fullmatch(item):
        return "must be a number."
    least, greatest = parameter.bounds
    if float(item) < least:
        return _constraint_fault(parameter, f"must be a number not less than {least:g}")
    if float(item) > greatest:
        return _constraint_fault(parameter, f"must be a number not greater than {greatest:g}")
    return _allowed_fault(parameter, item)


def _text_fault(parameter: ParameterDefinition, item: str) -> str:
    """The fault of a text; empty: there is none."""
    least, greatest = parameter.length
    if len(item) < least:
        return _constraint_fault(parameter, f"must contain at least {least:g} characters")
    if len(item) > greatest:
        return _constraint_fault(parameter, f"must contain at most {greatest:g} characters")
    if parameter.pattern and re2.fullmatch(parameter.pattern, item) is None:
        return _constraint_fault(parameter, f"must match pattern {parameter.pattern}")
    return _allowed_fault(parameter, item)


def _allowed_fault(parameter: ParameterDefinition, item: str) -> str:
    if parameter.allowed_values and item not in parameter.allowed_values:
        return "must be one of AllowedValues"
    return ""


def _constraint_fault(parameter: ParameterDefinition, fault: str) -> str:
    return f"failed to satisfy constraint: {parameter.constraint}" if parameter.constraint else fault

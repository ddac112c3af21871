"""Texts of templates: JSON where they begin with a brace, otherwise YAML."""

import json
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.template.errors import TemplateInvalid, format_error
from redrive.aws.cloudformation.template.yaml_reading import read_yaml
from redrive.aws.kit.nesting import is_nested_deeper

DEPTH_MAX: Final = 100  # of objects and lists within each other; what walks a template calls itself as often


def read_body(body: str) -> dict[str, Any]:
    """Read the text of a template.

    Raises:
        TemplateInvalid: The text is neither JSON nor YAML, stands for no object, or is nested too deep.
    """
    document = read_part(body)
    if not isinstance(document, dict):
        raise format_error("unsupported structure.")
    return document


def read_part(text: str) -> Any:
    """Read a text that may be a part of a template.

    Raises:
        TemplateInvalid: The text is neither JSON nor YAML, or nested too deep.
    """
    part = _read_json(text) if text.lstrip().startswith("{") else read_yaml(text, DEPTH_MAX)
    check_depth(part)
    return part


def check_depth(document: Any) -> None:
    """Refuse a template that is nested too deep.

    Raises:
        TemplateInvalid: The document is nested deeper than 100 levels.
    """
    if is_nested_deeper(document, DEPTH_MAX):
        raise format_error("unsupported structure.")


def _read_json(body: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        return _read_flow(body, error)
    except RecursionError:
        raise format_error("unsupported structure.") from None
    except ValueError:  # a number of more digits than Python reads, NaN
        raise format_error("JSON not well-formed.") from None


def _read_flow(body: str, problem: json.JSONDecodeError) -> Any:
    """Text in braces that is no JSON, but YAML: with a comma before a brace, or single quotes (recorded)."""
    try:
        value = read_yaml(body, DEPTH_MAX)
    except TemplateInvalid:
        value = None
    if isinstance(value, dict) and any(value.values()):
        return value
    location = f"(line {problem.lineno}, column {problem.colno + 1})"  # behind the character (recorded)
    raise format_error(f"JSON not well-formed. {location}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)

"""Texts of templates: JSON where they begin with a brace, otherwise YAML.

The YAML is version 1.1, with a tag for each function (`!Ref`, `!GetAtt`, `!Sub` …). PyYAML splits the text into events;
values are built from them here, without recursion. An alias repeats a whole value, so nine lines of aliases may stand for
a billion values: all values of a document, aliases expanded, are counted, a long text as several.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import yaml

from redrive.aws.cloudformation.template.errors import TemplateInvalid, format_error
from redrive.aws.kit.json_cursor import is_nested_deeper
from redrive.model.budget import CHARS_PER_STEP

VALUES_MAX: Final = 100_000

_LONG_FORMS: Final = {"Ref": "Ref", "Condition": "Condition"} | {
    name: f"Fn::{name}"
    for name in (
        *("Base64", "Cidr", "And", "Equals", "If", "Not", "Or", "FindInMap", "ForEach", "GetAtt", "GetAZs"),
        *("ImportValue", "Join", "Length", "Select", "Split", "Sub", "ToJsonString", "Transform"),
        *("Contains", "EachMemberEquals", "EachMemberIn", "RefAll", "ValueOf", "ValueOfAll"),
    )
}
_STANDARD: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"  # a hash merge, which CloudFormation does not take
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE: Final = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
# Digits after a zero stay a text, so that the id of an account keeps its zeros.
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_FLOAT: Final = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(slots=True)
class _Container:
    """An object or a list whose end has not been read yet."""

    value: Any  # As far as it was read
    tag: str | None  # The tag in front of it
    anchor: str | None  # Its name for aliases
    is_mapping: bool  # Otherwise a list
    key: str | None = None  # Key of the value that comes next; None: a key comes next
    count: int = 1  # The values in it, those of aliases included; 64 characters of a text count as one


@dataclass(slots=True)
class _YamlReader:
    depth_max: int
    containers: list[_Container] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    root: Any = None

    def take(self, event: yaml.Event) -> None:
        """Build on with the next event of the parser; raises TemplateInvalid."""
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise _malformed(event.start_mark)
                self._append(*self.anchors[event.anchor], event.start_mark)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                is_key = bool(self.containers) and self._awaits_key
                if is_key or len(self.containers) >= self.depth_max:
                    raise format_error("unsupported structure.")
                value: Any = {} if is_mapping else []
                self.containers.append(_Container(value, event.tag, event.anchor, is_mapping))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                container = self.containers.pop()
                value = _with_tag(container.tag, container.value, event.start_mark)
                self._store_anchor(container.anchor, value, container.count)
                self._append(value, container.count, event.start_mark)
            case _:
                pass

    @property
    def _awaits_key(self) -> bool:
        return self.containers[-1].is_mapping and self.containers[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        is_plain = event.implicit[0]  # without quotes, and without a tag
        if self.containers and self._awaits_key:
            if event.value == _MERGE and is_plain:
                raise _malformed(event.start_mark)
            self.containers[-1].key = event.value
            return
        tag = None if event.tag == "!" else event.tag  # `!` alone stands for a text
        value = (
            _plain_value(event.value)
            if is_plain and tag is None
            else _with_tag(tag, event.value, event.start_mark)
        )
        count = 1 + len(event.value) // CHARS_PER_STEP
        self._store_anchor(event.anchor, value, count)
        self._append(value, count, event.start_mark)

    def _store_anchor(self, anchor: str | None, value: Any, count: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = value, count

    def _append(self, value: Any, count: int, mark: yaml.Mark) -> None:
        """Put a value, which consists of `count` values, into the innermost open container."""
        if not self.containers:
            self.root = value
            return
        parent = self.containers[-1]
        parent.count += count
        if parent.count > VALUES_MAX:
            raise format_error("unsupported structure.")
        if not parent.is_mapping:
            parent.value.append(value)
        elif parent.key is None:  # an alias where a key should be
            raise _malformed(mark)
        else:
            parent.value[parent.key], parent.key = value, None


def read_yaml(body: str, depth_max: int) -> Any:
    """Read a template's text.

    Raises:
        TemplateInvalid: It is not well-formed, or stands for more than 100,000 values, or 6.4 million characters.
    """
    reader = _YamlReader(depth_max)
    try:
        for event in yaml.parse(body, Loader=yaml.CSafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        raise _malformed(error.problem_mark or error.context_mark) from None
    except (yaml.YAMLError, UnicodeError):
        raise format_error("YAML not well-formed.") from None
    return reader.root


def _malformed(mark: yaml.Mark | None) -> TemplateInvalid:
    location = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
    return format_error(f"YAML not well-formed.{location}")


def _plain_value(text: str) -> Any:
    """The value of a scalar without quotes; a date stays a text."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _with_tag(tag: str | None, value: Any, mark: yaml.Mark) -> Any:
    """A value as the argument of the function that its tag names: `!Sub a` is `{"Fn::Sub": "a"}`."""
    if tag is None:
        return value
    if tag.startswith(_STANDARD):
        return value
    name = tag.removeprefix("!")
    function = _LONG_FORMS.get(name)
    if function is None:
        raise _malformed(mark)
    if name == "GetAtt" and isinstance(value, str):
        resource, _, attribute = value.partition(".")
        return {function: [resource, attribute]}
    return {function: value}


DEPTH_MAX: Final = 100  # of objects and lists within each other, and so of the functions that walk a template


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
    """Read a part of a template; raises TemplateInvalid if it is neither JSON nor YAML, or nested too deep."""
    part = _read_json(text) if text.lstrip().startswith("{") else read_yaml(text, DEPTH_MAX)
    check_depth(part)
    return part


def check_depth(document: Any) -> None:
    """Refuse a template that is nested deeper than 100 levels; raises TemplateInvalid."""
    if is_nested_deeper(document, DEPTH_MAX):
        raise format_error("unsupported structure.")


def _read_json(body: str) -> Any:
    """The value of a text in JSON, or in the flow style of YAML, which looks like it; raises TemplateInvalid."""
    try:
        return json.loads(body, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        return _read_flow(body, error)
    except RecursionError:
        raise format_error("unsupported structure.") from None
    except ValueError:  # a number of more digits than Python reads, NaN
        raise format_error("JSON not well-formed.") from None


def _read_flow(body: str, problem: json.JSONDecodeError) -> Any:
    """Read a text in braces that is YAML, but not JSON: with a comma before a brace, or single quotes (recorded)."""
    try:
        value = read_yaml(body, DEPTH_MAX)
    except TemplateInvalid:
        value = None
    if isinstance(value, dict) and any(value.values()):
        return value
    location = f"(line {problem.lineno}, column {problem.colno + 1})"  # one after the character (recorded)
    raise format_error(f"JSON not well-formed. {location}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)

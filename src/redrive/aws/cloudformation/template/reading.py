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
# Digits behind a zero stay a text: an account's id keeps them all.
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_FLOAT: Final = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(slots=True)
class _Open:
    """An object or a list that has not come to its end."""

    value: Any  # As far as it was read
    tag: str | None  # Before it
    anchor: str | None  # Its name for aliases
    keyed: bool  # True for an object
    key: str | None = None  # Key of the value that comes next; None: a key comes next
    count: int = 1  # The values in it, aliases written out; 64 characters of a text count as one


@dataclass(slots=True)
class _YamlReader:
    depth_max: int
    open: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    root: Any = None

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise _malformed(event.start_mark)
                self._append(*self.anchors[event.anchor], event.start_mark)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                keyed = isinstance(event, yaml.MappingStartEvent)
                if len(self.open) >= self.depth_max or (self.open and self._awaits_key):
                    raise format_error("unsupported structure.")
                self.open.append(_Open({} if keyed else [], event.tag, event.anchor, keyed))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = self.open.pop()
                value = _tagged(done.tag, done.value, event.start_mark)
                self._name(done.anchor, value, done.count)
                self._append(value, done.count, event.start_mark)
            case _:
                pass

    @property
    def _awaits_key(self) -> bool:
        return self.open[-1].keyed and self.open[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if self.open and self._awaits_key:
            if event.value == _MERGE and event.implicit[0]:
                raise _malformed(event.start_mark)
            self.open[-1].key = event.value
            return
        plain = event.implicit[0]
        own_tag = None if event.tag is None or event.tag == "!" else event.tag
        value = (
            _resolved(event.value)
            if plain and own_tag is None
            else _tagged(own_tag, event.value, event.start_mark)
        )
        count = 1 + len(event.value) // CHARS_PER_STEP
        self._name(event.anchor, value, count)
        self._append(value, count, event.start_mark)

    def _name(self, anchor: str | None, value: Any, count: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = value, count

    def _append(self, value: Any, count: int, mark: yaml.Mark) -> None:
        if not self.open:
            self.root = value
            return
        parent = self.open[-1]
        parent.count += count
        if parent.count > VALUES_MAX:
            raise format_error("unsupported structure.")
        if not parent.keyed:
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


def _resolved(text: str) -> Any:
    """The value of a plain scalar; a date stays the text that it is."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _tagged(tag: str | None, value: Any, mark: yaml.Mark) -> Any:
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

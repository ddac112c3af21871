"""The parameters of a query request: a flat form, the tree its dotted names spell, and the values read from it by shape.

A form is read after its caller is known. What has to be told of it before, the action, is searched for at its ends.
"""

import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import Final, TypeAlias
from urllib.parse import unquote_plus

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.shapes import Member, Shape, Structure, Value
from redrive.model.http import Request

#: The bytes that `search` looks through at either end of a form. SDKs put the action first, or sort the fields, which
#: comes to the same; that for JavaScript puts it last, behind a template of up to 51,200 bytes.
SEARCHED_BYTES: Final = 16 * 1024
_SEARCHED_VALUE_BYTES: Final = 128  # no action and no version is as long

#: Names with more dots are ignored like any unknown name. The published models need eleven; without a bound a
#: megabyte of dots would grow into a million nodes.
_NAME_DOTS_MAX: Final = 32
_NODES_PER_FIELD: Final = 4  # those of a form of all the fields it may have; of usual names, two

_FORM: Final = "application/x-www-form-urlencoded"


class FormNode:
    """One step of a dotted name: what stands at it, and the steps below it."""

    __slots__ = ("children", "text")

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        self.children: dict[str, FormNode] = {}


def search(request: Request, mark: bytes) -> str:
    """The last value of a field in the first `SEARCHED_BYTES` of a form, else in its last: a longer form costs no more.

    The body's stands over the query's. A name that is spelled with escapes is not found: no client has a reason to.

    Args:
        request: Whose form.
        mark: What stands before the value: `b"&Action="`; the first field has no ampersand.
    """
    match = _search_in(request.body, mark) if _has_form(request) else None
    if match is None and request.query:
        match = _search_in(request.query.encode(errors="replace"), mark)
    return match or ""


def _search_in(text: bytes, mark: bytes) -> str | None:
    """The value behind a mark in the first or last `SEARCHED_BYTES` of a text, of several the last; empty if too long.

    None: the mark is in neither.
    """
    start = text.rfind(mark, 0, SEARCHED_BYTES)
    if start < 0:
        if text.startswith(mark[1:]):  # the first field, as if its ampersand stood before the text
            start = -1
        else:
            start = text.rfind(mark, max(SEARCHED_BYTES, len(text) - SEARCHED_BYTES))
            if start < 0:
                return None
    begin = start + len(mark)
    end = text.find(b"&", begin, begin + _SEARCHED_VALUE_BYTES)
    if end < 0:
        end = len(text)
    value = text[begin:end].decode("latin-1") if end - begin <= _SEARCHED_VALUE_BYTES else ""
    return unquote_plus(value) if "%" in value else value


def _has_form(request: Request) -> bool:
    return bool(request.body) and request.headers.get("content-type", _FORM).startswith(_FORM)


def read_form(request: Request, fields_max: int) -> Mapping[str, str]:
    """The fields of a request's query and, unless it is of another type, of its body; where both have one the body's.

    Raises:
        AwsError: `SerializationException`: it is not UTF-8, or has more fields than that.
    """
    try:
        in_query = _fields(request.query, fields_max) if request.query else None
        in_body = _fields(request.body.decode(), fields_max) if _has_form(request) else None
    except UnicodeDecodeError:
        raise common("SerializationException", "The request is not valid UTF-8") from None
    if in_query and in_body:
        return {**in_query, **in_body}
    return in_body or in_query or {}


def tree(fields: Mapping[str, str], fields_max: int) -> FormNode:
    """The root of the tree that the names spell; names with too many dots are left out.

    Raises:
        AwsError: `SerializationException`: it has more branches than `fields_max` sensible names would give it.
    """
    root = FormNode()
    remaining_nodes = _NODES_PER_FIELD * fields_max
    for name, text in fields.items():
        if "." not in name and name not in root.children:
            root.children[name] = FormNode(text)
        elif name.count(".") <= _NAME_DOTS_MAX:
            node = root
            for step in name.split("."):
                child = node.children.get(step)
                if child is None:
                    child = node.children[step] = FormNode()
                    remaining_nodes -= 1
                node = child
            node.text = text
            if remaining_nodes < 0:
                raise common("SerializationException", "The parameters' names are nested too deeply")
    return root


def _fields(text: str, fields_max: int) -> dict[str, str]:
    """The decoded fields; the standard library's own parser takes twice as long for short forms."""
    fields: dict[str, str] = {}
    if text.count("&") >= fields_max:
        raise _too_many(fields_max)
    for field in text.split("&"):
        name, _, value = field.partition("=")
        if "%" in field or "+" in field:
            name, value = _decode(name), _decode(value)
        fields[name] = value
    fields.pop("", None)
    return fields


def _too_many(fields_max: int) -> AwsError:
    return common("SerializationException", f"The request has more than {fields_max} parameters")


def _decode(text: str) -> str:
    return (_remembered_unescape if len(text) <= _REMEMBERED_CHARS_MAX else unescape)(text)


def unescape(text: str) -> str:
    r"""A text without its escapes, as `unquote_plus` of the standard library reads it, strictly.

    That takes 200 to 350 ns for each escape, 0.1 s for a mebibyte of them. Python's own `\x` escapes are read in C,
    so they are put in their place: 6 to 15 times as fast.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    with_spaces = text.replace("+", " ").replace("\\", r"\x5c")
    try:
        return _without_escapes(with_spaces)
    except UnicodeDecodeError as error:
        if error.encoding == "utf-8":
            raise
    return _without_escapes(_NO_ESCAPE.sub("%25", with_spaces))


def _without_escapes(text: str) -> str:
    python_text = text.replace("%", r"\x").encode(errors="surrogatepass")
    return python_text.decode("unicode_escape").encode("latin-1").decode()


_NO_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")  # which stays as it is
# Nearly every call names a resource by an ARN, whose colons come escaped, and most name the same ones again: 5 us of
# a Publish that takes 60. 4 MB of them at most.
_REMEMBERED_CHARS_MAX: Final = 256
_remembered_unescape: Final = lru_cache(maxsize=4096)(unescape)


# ---- values by shape: flattened and member lists, flattened and entry maps, everything from text ---------------

Reader: TypeAlias = Callable[[FormNode], Value]

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INDEX: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?Infinity", re.ASCII)
_LONG_END: Final = 2**63  # integers are kept in 64-bit columns further in
_BOOLEANS: Final = {"true": True, "false": False}


@cache
def structure_reader(shape: Shape) -> Reader:
    """Return the function that reads the structure below a node.

    It raises `AwsError`, in query terms `MalformedInput`, for text or names that do not fit the shape.
    """
    members: dict[str, tuple[str, Reader]] | None = None

    def read(node: FormNode) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = _readers_of_members(shape)
        structure = {}
        for step, child in node.children.items():
            member = members.get(step)
            if member is not None:
                member_name, read_member = member
                structure[member_name] = read_member(child)
        return structure

    return read


@cache
def flat_reader(shape: Shape) -> Callable[[Mapping[str, str]], Structure | None]:
    """Return the function that reads a structure from fields without dots in their names, as nearly all calls have them.

    It returns None for what it cannot read; `structure_reader` reads that, or says what is wrong with it.
    """
    members: dict[str, tuple[str, Callable[[str], Value] | None]] | None = None

    def read(fields: Mapping[str, str]) -> Structure | None:
        nonlocal members
        if members is None:
            members = _flat_members(shape)
        structure: Structure = {}
        try:
            for name, text in fields.items():
                member = members.get(name)
                if member is not None:
                    own_name, parse = member
                    structure[own_name] = text if parse is None else parse(text)
                elif "." in name:
                    return None
        except (ValueError, AwsError):
            return None
        return structure

    return read


def _flat_members(shape: Shape) -> dict[str, tuple[str, Callable[[str], Value] | None]]:
    """Return the members' names and parsers by their names in the request; None: a text stays as it is."""
    members: dict[str, tuple[str, Callable[[str], Value] | None]] = {}
    for field_name, (name, reader) in _readers_of_members(shape).items():
        parse = _PARSERS.get(shape.members[name].shape.type, partial(_read_leaf, reader))
        members[field_name] = name, None if parse is str else parse
    return members


def _read_leaf(read: Reader, text: str) -> Value:
    return read(FormNode(text))


def _readers_of_members(shape: Shape) -> dict[str, tuple[str, Reader]]:
    """Return the members' names and readers by their names in the request.

    A flattened list has two: SDKs write its elements under their name, but an empty list under the list's own.
    """
    members = [(member, (member.name, _member_reader(member))) for member in shape.members.values()]
    by_own_name = {member.query_name or member.name: value for member, value in members}
    return by_own_name | {member.query_key: value for member, value in members}


def _member_reader(member: Member) -> Reader:
    shape = member.shape
    match shape.type:
        case "structure":
            return structure_reader(shape)
        case "list":
            return _list_reader(shape, flattened=member.flattened)
        case "map":
            return _map_reader(shape, flattened=member.flattened)
        case _:
            return _scalar_reader(shape)


def _list_reader(shape: Shape, *, flattened: bool) -> Reader:
    """Return the reader of a list: its elements are numbered, below their own name unless they are flattened."""
    read_element = _member_reader(shape.element)
    element_name = shape.element.query_name or "member"
    elements_max = shape.elements_max

    def read(node: FormNode) -> Value:
        if flattened:
            if node.text:  # one element without its index, as people write it by hand
                return [read_element(node)]
            return [read_element(child) for child in _by_index(node, elements_max)]
        elements = node.children.get(element_name)
        return (
            [] if elements is None else [read_element(child) for child in _by_index(elements, elements_max)]
        )

    return read


def _map_reader(shape: Shape, *, flattened: bool) -> Reader:
    """Return the reader of a map: its entries are numbered, below `entry` unless they are flattened."""
    key_name = shape.key.query_name or "key"
    value_name = shape.value.query_name or "value"
    read_key, read_value = _member_reader(shape.key), _member_reader(shape.value)
    elements_max = shape.elements_max

    def entries(node: FormNode) -> Iterator[FormNode]:
        if not flattened:
            return _by_index(node.children["entry"], elements_max) if "entry" in node.children else iter(())
        if key_name in node.children:  # `Attribute.Name=…&Attribute.Value=…`, as SQS's reference writes it
            return iter((node,))
        return _by_index(node, elements_max)

    def read(node: FormNode) -> Value:
        parsed = {}
        for entry in entries(node):
            key, value = entry.children.get(key_name), entry.children.get(value_name)
            if key is None or value is None:
                raise _malformed(f"A map entry must have a {key_name} and a {value_name}")
            parsed[read_key(key)] = read_value(value)
        return parsed

    return read


def _by_index(node: FormNode, elements_max: float) -> Iterator[FormNode]:
    """Return the numbered steps below a node in the order of their numbers, which may have gaps."""
    if len(node.children) > elements_max:
        raise _malformed(f"A list or map of {len(node.children)} elements is too long")
    for index in node.children:
        if _INDEX.fullmatch(index) is None:
            raise _malformed(f"{index} is not a valid index")
    return (node.children[index] for index in sorted(node.children, key=int))


def _scalar_reader(shape: Shape) -> Reader:
    parse = _PARSERS[shape.type]

    def read(node: FormNode) -> Value:
        if node.text is None:
            raise _malformed("Start of structure or map found where not expected.")
        try:
            return parse(node.text)
        except ValueError as error:
            raise _malformed(f"{node.text} can not be converted to {_ARTICLES[shape.type]}") from error

    return read


def _integer(text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text) is None or not -_LONG_END <= (number := int(text)) < _LONG_END:
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _boolean(text: str) -> bool:
    if (value := _BOOLEANS.get(text.lower())) is None:
        raise ValueError(text)
    return value


def _blob(text: str) -> bytes:
    return binascii.a2b_base64(text, strict_mode=True)


_PARSERS: Final[dict[str, Callable[[str], Value]]] = {
    "string": str,
    "character": str,
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "blob": _blob,
    "timestamp": timestamps.from_text,
}

_ARTICLES: Final = {
    "integer": "an Integer",
    "long": "a Long",
    "float": "a Float",
    "double": "a Double",
    "boolean": "a Boolean",
    "blob": "a Blob",
    "timestamp": "a Date",
}


def _malformed(message: str) -> AwsError:
    return common("SerializationException", message)

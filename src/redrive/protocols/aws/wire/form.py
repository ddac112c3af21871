"""The parameters of a query request: a flat form, and the tree its dotted names spell."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from redrive.protocols.aws.wire.content import content
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.http import Request

#: Names with more dots are ignored like any unknown name. The published models need eleven; without a bound a
#: megabyte of dots would grow into a million nodes.
_NAME_DOTS_MAX: Final = 32

_FORM: Final = "application/x-www-form-urlencoded"


class Form(NamedTuple):
    """The fields of a query string and a form body; where both have a name the body's stands.

    Attributes:
        fields: Names and values, decoded.
        well_formed: Whether all of it could be read; where not, these are the fields as far as they could.
    """

    fields: Mapping[str, str]
    well_formed: bool


class Node:
    """One step of a dotted name: what stands at it, and the steps below it."""

    __slots__ = ("children", "text")

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        self.children: dict[str, Node] = {}


def read_form(request: Request) -> Form:
    """Return the request's parameters, from its query and, unless it is of another type, from its body."""
    try:
        body = content(request) if request.headers.get("content-type", _FORM).startswith(_FORM) else b""
        return Form(
            {**_fields(request.query, "strict"), **_fields(body.decode(), "strict")}, well_formed=True
        )
    except UnicodeDecodeError:
        text = body.decode(errors="replace")
        return Form({**_fields(request.query, "replace"), **_fields(text, "replace")}, well_formed=False)
    except AwsError:  # compressed, and cannot be unfolded: what is left is the query
        return Form(_fields(request.query, "replace"), well_formed=False)


def tree(fields: Mapping[str, str]) -> Node:
    """Return the root of the tree that the names spell."""
    root = Node()
    for name, text in fields.items():
        if "." not in name and name not in root.children:
            root.children[name] = Node(text)
        elif name.count(".") <= _NAME_DOTS_MAX:
            node = root
            for step in name.split("."):
                child = node.children.get(step)
                if child is None:
                    child = node.children[step] = Node()
                node = child
            node.text = text
    return root


def _fields(text: str, errors: str) -> dict[str, str]:
    """Return the decoded fields; the standard library's own parser takes twice as long for short forms."""
    fields: dict[str, str] = {}
    if not text:
        return fields
    for field in text.split("&"):
        name, _, value = field.partition("=")
        if "%" in field or "+" in field:
            name, value = _decoded(name, errors), _decoded(value, errors)
        fields[name] = value
    fields.pop("", None)
    return fields


def _decoded(text: str, errors: str) -> str:
    return (_remembered if len(text) <= _REMEMBERED_CHARS_MAX else unquote_plus)(text, "utf-8", errors)


# Nearly every call names a resource by an ARN, whose colons come escaped, and most name the same ones again: 5 us of
# a Publish that takes 60. 4 MB of them at most.
_REMEMBERED_CHARS_MAX: Final = 256
_remembered: Final = lru_cache(maxsize=4096)(unquote_plus)

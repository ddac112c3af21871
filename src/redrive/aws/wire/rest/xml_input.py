"""XML of requests read by shape. Nothing in it is fetched or expanded: a document type is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Shape, Structure, Value

#: 10,000 parts of an upload, with their numbers, entity tags and two checksums.
_ELEMENTS_MAX: Final = 60_000
_DEPTH_MAX: Final = 16
#: The same upload takes 3 MiB, and has four equals signs a part in base64. expat takes 2 us an attribute and 0.1 us a
#: line, whoever asks for none of them: 16 MiB were 1.3 s of the event loop.
_BYTES_MAX: Final = 4 * 1024 * 1024
_EQUALS_MAX: Final = 65_536
_LINES_MAX: Final = 500_000
_TRUTHS: Final = {"true": True, "false": False}
_SCALARS: Final[dict[str, Callable[[str], Value]]] = {
    "integer": int,
    "long": int,
    "boolean": lambda text: _TRUTHS[text],
    "timestamp": timestamps.from_text,
}


@dataclass(slots=True)
class Element:
    """An element: its local name, its text, and the elements in it."""

    name: str
    text: str = ""
    inner: list["Element"] = field(default_factory=list)


def read_xml(body: bytes) -> Element:
    """The root of a document; raises AwsError (`MalformedXML`, or `MaxMessageLengthExceeded`)."""
    if len(body) > _BYTES_MAX or body.count(b"=") > _EQUALS_MAX or body.count(b"\n") > _LINES_MAX:
        raise AwsError("MaxMessageLengthExceeded", "Your request was too large.")
    return _Parser().read(body)


def structure_of(shape: Shape, element: Element) -> Structure:
    """The members of a structure in an element, without unknown ones; raises AwsError (`MalformedXML`)."""
    children: dict[str, list[Element]] = {}
    for each in element.inner:
        children.setdefault(each.name, []).append(each)
    structure: Structure = {}
    for member in shape.members.values():
        elements = children.get(member.query_key)
        if not elements or member.location:
            continue
        if member.flattened:
            structure[member.name] = [_read_value(member.shape.element.shape, each) for each in elements]
        else:
            structure[member.name] = _read_value(member.shape, elements[-1])
    return structure


def _read_value(shape: Shape, element: Element) -> Value:
    if shape.type == "structure":
        return structure_of(shape, element)
    if shape.type == "list":
        return [_read_value(shape.element.shape, each) for each in element.inner]
    try:
        return _SCALARS.get(shape.type, str)(element.text)
    except (KeyError, ValueError):
        raise malformed() from None


def malformed() -> AwsError:
    """The error for XML that cannot be read, in S3's words."""
    text = "The XML you provided was not well-formed or did not validate against our published schema"
    return AwsError("MalformedXML", text)


class _Parser:
    def __init__(self) -> None:
        self._top = Element("")
        self._open = [self._top]
        self._elements = 0

    def read(self, body: bytes) -> Element:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse
        parser.buffer_text = True
        try:
            parser.Parse(body, True)  # noqa: FBT003 - expat's own: it is all there is
        except (expat.ExpatError, ValueError):
            raise malformed() from None
        return self._top.inner[0]

    def _start(self, name: str, _: dict[str, str]) -> None:
        element = Element(name.rpartition(" ")[2])
        self._elements += 1
        if self._elements > _ELEMENTS_MAX or len(self._open) > _DEPTH_MAX:
            raise malformed()
        self._open[-1].inner.append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].text += text

    def _refuse(self, *_: object) -> None:
        raise malformed()

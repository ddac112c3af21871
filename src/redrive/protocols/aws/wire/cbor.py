"""CBOR (RFC 8949), as far as Smithy RPC v2 needs it: bytes to values, and the pieces that values are written with."""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from redrive.protocols.aws.wire.shapes import Value

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)  # the major types
EPOCH_SECONDS: Final = 1  # the tag of a point in time

_INDEFINITE: Final = 31
_FOLLOWING: Final = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}  # how the argument follows the first byte
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_BREAK: Final = 0xFF


class MalformedCbor(ValueError):  # noqa: N818 - an answer, like the errors of the model
    """The bytes are no item, or one that Smithy has no use for."""


class Tagged(NamedTuple):
    """An item with a tag."""

    tag: int
    item: Value


def decode(content: bytes) -> Value:
    """Read one item that takes all the bytes.

    Raises:
        MalformedCbor: It does not, or is none.
        RecursionError: It is nested too deeply.
    """
    reader = _Reader(content)
    item = reader.item()
    if reader.at != len(content):
        raise MalformedCbor(f"{len(content) - reader.at} bytes follow the item")
    return item


def head(major: int, argument: int) -> bytes:
    """The beginning of an item: its major type and its value, length or count."""
    if argument < 24:  # noqa: PLR2004 - smaller ones stand in the first byte itself
        return bytes((major << 5 | argument,))
    if argument < 1 << 8:
        return struct.pack(">BB", major << 5 | 24, argument)
    if argument < 1 << 16:
        return struct.pack(">BH", major << 5 | 25, argument)
    if argument < 1 << 32:
        return struct.pack(">BI", major << 5 | 26, argument)
    return struct.pack(">BQ", major << 5 | 27, argument)


def integer(number: int) -> bytes:
    """An integer of 64 bits."""
    return head(UNSIGNED, number) if number >= 0 else head(NEGATIVE, -1 - number)


def text(string: str) -> bytes:
    """A string; half a surrogate pair, which UTF-8 has no way to write, becomes a question mark."""
    encoded = string.encode(errors="replace")
    return head(TEXT, len(encoded)) + encoded


def double(number: float) -> bytes:
    """A floating-point number of 64 bits."""
    return struct.pack(">Bd", SIMPLE << 5 | 27, number)


TRUE: Final = bytes((SIMPLE << 5 | 21,))
FALSE: Final = bytes((SIMPLE << 5 | 20,))


class _Reader:
    """Bytes, and how far they are read."""

    __slots__ = ("_content", "at")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def item(self) -> Value:
        """Read the next item."""
        first = self._take(1)[0]
        major, information = first >> 5, first & 31
        if major == SIMPLE:
            return self._simple(information)
        return _ITEMS[major](self, information)

    def integer(self, information: int) -> int:
        """Read the argument of an item: its value, or its length."""
        if information < 24:  # noqa: PLR2004 - see `head`
            return information
        layout = _FOLLOWING.get(information)
        if layout is None:
            raise MalformedCbor(f"additional information {information} where a number is expected")
        number: int = self._unpack(layout)
        return number

    def negative(self, information: int) -> int:
        """Read a negative integer."""
        return -1 - self.integer(information)

    def blob(self, information: int) -> bytes:
        """Read bytes, in one piece or in several."""
        return self._string(BYTES, information)

    def text(self, information: int) -> str:
        """Read a string."""
        try:
            return self._string(TEXT, information).decode()
        except UnicodeDecodeError as error:
            raise MalformedCbor("a string is not UTF-8") from error

    def array(self, information: int) -> list[Value]:
        """Read a list."""
        if information != _INDEFINITE:
            return [self.item() for _ in range(self._count(information))]
        items = []
        while not self._ended():
            items.append(self.item())
        return items

    def map(self, information: int) -> dict[str, Value]:
        """Read a map, whose keys Smithy has as strings."""
        if information != _INDEFINITE:
            return dict(self._entry() for _ in range(self._count(information)))
        entries = {}
        while not self._ended():
            key, value = self._entry()
            entries[key] = value
        return entries

    def tagged(self, information: int) -> Tagged:
        """Read a tag and its item."""
        return Tagged(self.integer(information), self.item())

    def _simple(self, information: int) -> Value:
        if information in _SIMPLE:
            return _SIMPLE[information]
        layout = _FLOATS.get(information)
        if layout is None:
            raise MalformedCbor(f"simple value {information}")
        return self._unpack(layout)

    def _string(self, major: int, information: int) -> bytes:
        if information != _INDEFINITE:
            return self._take(self.integer(information))
        pieces = []
        while not self._ended():
            first = self._take(1)[0]
            if first >> 5 != major:
                raise MalformedCbor("a piece of a string is of another type")
            pieces.append(self._take(self.integer(first & 31)))
        return b"".join(pieces)

    def _entry(self) -> tuple[str, Value]:
        key = self.item()
        if type(key) is not str:
            raise MalformedCbor("the key of a map is not a string")
        return key, self.item()

    def _count(self, information: int) -> int:
        """Read how many items follow; each takes a byte at least, so a lie is found before it costs anything."""
        count = self.integer(information)
        if count > len(self._content) - self.at:
            raise MalformedCbor("the content is incomplete")
        return count

    def _ended(self) -> bool:
        if self._content[self.at : self.at + 1] != bytes((_BREAK,)):
            return False
        self.at += 1
        return True

    def _unpack(self, layout: str) -> Value:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _take(self, count: int) -> bytes:
        begin, end = self.at, self.at + count
        if end > len(self._content):
            raise MalformedCbor("the content is incomplete")
        self.at = end
        return self._content[begin:end]


_ITEMS: Final[tuple[Callable[[_Reader, int], Value], ...]] = (
    _Reader.integer,
    _Reader.negative,
    _Reader.blob,
    _Reader.text,
    _Reader.array,
    _Reader.map,
    _Reader.tagged,
)

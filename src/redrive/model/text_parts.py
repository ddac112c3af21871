"""Text messages as telephones take them: an alphabet, and parts of at most 140 bytes.

The alphabets are those of GSM 03.38 (3GPP TS 23.038): the default one of seven bits, 160 characters to a part, and UCS-2,
70 to a part. A text that needs more has parts of 153 or 67 characters, because each begins with six bytes that say which
part of how many it is. Parts end between words, as SNS has it ("Publishing SMS messages to a mobile phone"); a word that
no part has room for is cut. Nothing is lost at either place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

# In order of their codes, 32 to a row and a half; 0x1B leads to the second table and is not a character.
_DEFAULT: Final = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ"
    " !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_ESCAPE: Final = 0x1B
_EXTENSION: Final = {
    "\f": 0x0A,
    "^": 0x14,
    "{": 0x28,
    "}": 0x29,
    "\\": 0x2F,
    "[": 0x3C,
    "~": 0x3D,
    "]": 0x3E,
    "|": 0x40,
    "€": 0x65,
}
_SEPTETS: Final = {
    **{character: bytes([code]) for code, character in enumerate(_DEFAULT) if code != _ESCAPE},
    **{character: bytes([_ESCAPE, code]) for character, code in _EXTENSION.items()},
}
_OF_SEPTETS: Final = {octets: character for character, octets in _SEPTETS.items()}

# What a part holds where there is one, and where there are several. A septet is an octet here: the message centre packs.
_SEPTETS_ALONE, _SEPTETS_EACH = 160, 153
_OCTETS_ALONE, _OCTETS_EACH = 140, 134

PARTS_MAX: Final = 255  # the number of parts is one byte


@dataclass(frozen=True, slots=True)
class TextParts:
    """A text, written in one alphabet and cut."""

    wide: bool  # It is in UCS-2; else in the default alphabet, a septet in each byte
    parts: Sequence[bytes]  # Content of each part, without the header that numbers it


def parts_of(text: str) -> TextParts:
    """Write and cut a text: in the default alphabet if that has all of its characters."""
    narrow = [_SEPTETS.get(character) for character in text]
    if None in narrow:
        wide = [character.encode("utf-16-be") for character in text]
        return TextParts(wide=True, parts=_cut_between_words(text, wide, _OCTETS_ALONE, _OCTETS_EACH))
    septets = [each for each in narrow if each is not None]
    return TextParts(wide=False, parts=_cut_between_words(text, septets, _SEPTETS_ALONE, _SEPTETS_EACH))


def _cut_between_words(text: str, encoded: Sequence[bytes], alone: int, each: int) -> list[bytes]:
    """Cut between words where there are some, and never within a character."""
    if sum(map(len, encoded)) <= alone:
        return [b"".join(encoded)]
    return [b"".join(encoded[begin:end]) for begin, end in _part_ranges(text, encoded, each)]


def _part_ranges(text: str, encoded: Sequence[bytes], room: int) -> Iterator[tuple[int, int]]:
    """The ranges of characters that go into a part of `room` bytes each; a part ends behind a blank if it can."""
    begin, size = 0, 0
    word = 0  # where the word begins that is being passed
    for index, octets in enumerate(encoded):
        size += len(octets)
        if size > room:
            end = word if word > begin and _has_room(text, encoded, word, room) else index
            yield begin, end
            begin, size = end, sum(map(len, encoded[end : index + 1]))
        if text[index].isspace():
            word = index + 1
    yield begin, len(encoded)


def _has_room(text: str, encoded: Sequence[bytes], begin: int, room: int) -> bool:
    """True if the word at `begin` goes into one part; a long URL does not, and would cost a part for nothing."""
    size = 0
    for index in range(begin, len(text)):
        if text[index].isspace():
            break
        size += len(encoded[index])
        if size > room:
            return False
    return True


def text_of(octets: bytes, *, wide: bool) -> str:
    """Read what a telephone wrote; what is in no alphabet becomes a question mark."""
    if wide:
        return octets.decode("utf-16-be", errors="replace")
    text, index = "", 0
    while index < len(octets):
        length = 2 if octets[index] == _ESCAPE else 1
        text += _OF_SEPTETS.get(octets[index : index + length], "?")
        index += length
    return text

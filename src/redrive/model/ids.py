"""Ids of messages as text, and the measures of their bodies."""

import hashlib
from collections.abc import Sequence
from typing import Final

_ID_DIGITS: Final = 32
_LINE: Final = 37  # an id's digits, four hyphens and a line break
_DIGITS: Final = [at for at in range(_LINE - 1) if at not in (8, 13, 18, 23)]


def bytes_of(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def id_text(message_id: bytes) -> str:
    """A message id as UUIDs are written; `uuid.UUID` says the same ten times as slowly."""
    return f"{message_id[:4].hex()}-{message_id[4:10].hex('-', 2)}-{message_id[10:].hex()}"


def id_texts(message_ids: Sequence[bytes]) -> list[str]:
    """The texts of many ids, as `id_text` writes each: digit by digit for all of them at once."""
    digits = b"".join(message_ids).hex().encode()
    lines = bytearray(b"00000000-0000-0000-0000-000000000000\n" * len(message_ids))
    for digit, at in enumerate(_DIGITS):
        lines[at::_LINE] = digits[digit::_ID_DIGITS]
    return lines.decode().splitlines()


def content_deduplication_id(body: str) -> str:
    """The id a body stands for: SHA-256 of the body alone, never of its attributes (SQS FIFO document)."""
    return hashlib.sha256(body.encode()).hexdigest()

"""Messages as SQS words them: attributes, their checks, their digests, and what is kept beside a body."""

import hashlib
import re
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from redrive.aws.kit import messages
from redrive.aws.kit.messages import Attributes
from redrive.aws.sqs.errors import error, invalid
from redrive.aws.wire.errors import AwsError

try:  # CPython's own: it begins a digest in 0.3 us, where OpenSSL takes 1.3 and catches up at half a kilobyte
    from _md5 import md5 as short_md5  # type: ignore[import-not-found]  # which typeshed does not have
except ImportError:
    from hashlib import md5 as short_md5

_SHORT_BYTES_MAX = 500
ATTRIBUTES_MAX = 10
_NOT_IN_NAME = re.compile(r"[^\w.-]")  # letters and digits of every script
_RESERVED = ("aws.", "amazon.")
# What a message may hold: the characters of XML 1.0 (SendMessage, SQS API reference).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What becomes of a byte: those of them below 128 stay as they are, and others become spaces.
_ALLOWED = bytes(ord(" ") if byte < ord(" ") and byte not in b"\t\n\r" else byte for byte in range(256))
_FORBIDDEN_FOUND_TEXT = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD |"
    " #x10000 to #x10FFFF"
)
_BINARY = 2
_TEXT = 1
_LENGTH = struct.Struct(">I")


def check_body(body: str) -> None:
    """Refuse characters SQS cannot carry; raises AwsError (`InvalidMessageContents`)."""
    if _has_forbidden(body):
        raise error("InvalidMessageContents", _FORBIDDEN_FOUND_TEXT)


def _has_forbidden(text: str) -> bool:
    # Nearly every text is ASCII; a byte takes 2 ns in a table, 9 by `isprintable` and 15 in a pattern.
    if text.isascii():
        content = text.encode()
        return content.translate(_ALLOWED) != content
    return _FORBIDDEN.search(text) is not None


def malformed_id(parameter: str, value: str) -> AwsError:
    """The error for a group, deduplication or attempt id that is too long or has other characters."""
    return invalid(
        parameter,
        value,
        f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
    )


def check_attributes(attributes: Attributes) -> int:
    """The bytes that attributes add to a message; raises AwsError (`InvalidParameterValue`) if SQS refuses one."""
    if len(attributes) > ATTRIBUTES_MAX:
        raise _invalid(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}]."
        )
    for name, attribute in attributes.items():
        _check_attribute_name(name)
        _check_attribute_value(name, attribute)
    return messages.attributes_bytes(attributes)


def _invalid(text: str) -> AwsError:
    return error("InvalidParameterValueException", text)


def _check_attribute_name(name: str) -> None:
    if len(name.encode()) > messages.NAME_BYTES_MAX:
        raise _invalid(f"Length of message attribute name must be less than {messages.NAME_BYTES_MAX} bytes.")
    if messages.name_fault(name, _NOT_IN_NAME) or name.lower().startswith(_RESERVED):
        raise _invalid(f"Message (user) attribute name '{name}' is invalid.")


def _check_attribute_value(name: str, attribute: Mapping[str, Any]) -> None:
    kind = messages.kind_of(attribute.get("DataType") or "")
    if kind is None:
        raise _invalid(messages.type_fault(name))
    value = attribute.get("BinaryValue" if kind == "Binary" else "StringValue")
    if not value:
        raise _invalid(f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'.")
    if kind == "Number" and not messages.is_number(value):
        raise _invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.")
    if isinstance(value, str) and _has_forbidden(value):
        raise _invalid(_FORBIDDEN_FOUND_TEXT)


# ---- digests ---------------------------------------------------------------------------------------------------


def digest_of_body(body: str) -> str:
    """Hex MD5 of the text in UTF-8."""
    content = body.encode()
    md5 = short_md5 if len(content) <= _SHORT_BYTES_MAX else hashlib.md5
    return md5(content, usedforsecurity=False).hexdigest()


def digest_of_attributes(attributes: Attributes) -> str:
    """Hex MD5 of attributes (SQS developer guide, "Calculating the MD5 message digest for message attributes")."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        attribute = attributes[name]
        data_type = attribute["DataType"]
        binary = data_type.startswith("Binary")
        value = attribute["BinaryValue"] if binary else attribute["StringValue"].encode()
        for part in (name.encode(), data_type.encode()):
            digest.update(_LENGTH.pack(len(part)) + part)
        digest.update(bytes((_BINARY if binary else _TEXT,)) + _LENGTH.pack(len(value)) + value)
    return digest.hexdigest()


# ---- what is kept beside a body --------------------------------------------------------------------------------


def pack(attributes: Attributes, trace: str | None, sender: str | None) -> bytes | None:
    """A message's headers: its attributes, its trace, and who sent it where that is not the queue's owner."""
    headers: dict[str, Any] = {}
    if attributes:
        headers["attributes"] = {name: messages.packed(attribute) for name, attribute in attributes.items()}
    if trace is not None:
        headers["trace"] = trace
    if sender is not None:
        headers["sender"] = sender
    return orjson.dumps(headers) if headers else None


def unpack(headers: bytes | None) -> dict[str, Any]:
    """Reads the headers that `pack` wrote, with attributes in SQS's form again."""
    if headers is None:
        return {}
    unpacked: dict[str, Any] = orjson.loads(headers)
    if "attributes" in unpacked:
        unpacked["attributes"] = {
            name: messages.unpacked(*packed) for name, packed in unpacked["attributes"].items()
        }
    return unpacked


def _selectors(names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names and the prefixes that select attributes: `Hel.*` selects `Hello` as well as `Help.Me`."""
    prefixes = tuple(
        "" if name in ("All", "*") else name.removesuffix(".*")
        for name in names
        if name in ("All", "*") or name.endswith(".*")
    )
    return frozenset(names), prefixes


# Receivers repeat a few names in each request; many or long ones are not remembered.
_REMEMBERED_CHARS_MAX = 1024
_remembered_selectors = lru_cache(maxsize=1024)(_selectors)


def select(attributes: Attributes, requested_names: Iterable[str]) -> Attributes:
    """The attributes that a receiver requested: by name, by `prefix.*`, or all by `All`, `.*` or `*`."""
    if not attributes:
        return attributes
    names = tuple(requested_names)
    is_short = len(names) <= ATTRIBUTES_MAX and sum(map(len, names)) <= _REMEMBERED_CHARS_MAX
    exact, prefixes = (_remembered_selectors if is_short else _selectors)(names)
    return {
        name: attribute
        for name, attribute in attributes.items()
        if name in exact or name.startswith(prefixes)
    }

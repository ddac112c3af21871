"""Messages as SQS words them: attributes, their checks, their digests, and what is kept beside a body."""

import hashlib
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from redrive.model.message import bytes_of
from redrive.protocols.aws.sqs.errors import error, invalid

ATTRIBUTES_MAX = 10
NAME_CHARS_MAX = 256
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_GROUP_ID = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")
# What a message may hold: the characters of XML 1.0 (SendMessage, SQS API reference).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BINARY = 2
_TEXT = 1
_LENGTH = struct.Struct(">I")

Attributes = Mapping[str, Mapping[str, Any]]


def check_body(body: str) -> None:
    """Refuse characters SQS cannot carry.

    Raises:
        AwsError: `InvalidMessageContents`.
    """
    if not body.isprintable() and _FORBIDDEN.search(body):
        raise error(
            "InvalidMessageContents",
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to"
            " #xFFFD | #x10000 to #x10FFFF",
        )


def check_id(parameter: str, value: str) -> None:
    """Refuse a group or deduplication id that is too long or has other than printable characters.

    Raises:
        AwsError: `InvalidParameterValue`.
    """
    if not _GROUP_ID.fullmatch(value):
        raise invalid(
            parameter,
            value,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )


def check_attributes(attributes: Attributes) -> int:
    """Refuse attributes SQS would; the bytes that names, types and values add to the message.

    Raises:
        AwsError: `InvalidParameterValue`.
    """
    if len(attributes) > ATTRIBUTES_MAX:
        raise error(
            "InvalidParameterValueException",
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}].",
        )
    return sum(_check_attribute(name, attribute) for name, attribute in attributes.items())


def _check_attribute(name: str, attribute: Mapping[str, Any]) -> int:
    _check_attribute_name(name)
    data_type = attribute.get("DataType") or ""
    base = data_type.partition(".")[0]
    if base not in ("String", "Number", "Binary"):
        raise error(
            "InvalidParameterValueException",
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type"
            " prefixes is Binary, Number, and String.",
        )
    field = "BinaryValue" if base == "Binary" else "StringValue"
    value = attribute.get(field)
    if not value:
        raise error(
            "InvalidParameterValueException",
            f"Message (user) attribute '{name}' must contain a non-empty value of type '{base}'.",
        )
    if base == "Number" and not _is_number(value):
        raise error(
            "InvalidParameterValueException",
            f"Can't cast the value of message (user) attribute '{name}' to a number.",
        )
    if isinstance(value, str):
        check_body(value)
    return bytes_of(name) + bytes_of(data_type) + (len(value) if base == "Binary" else bytes_of(value))


def _check_attribute_name(name: str) -> None:
    lowered = name.lower()
    if len(name) > NAME_CHARS_MAX:
        raise error(
            "InvalidParameterValueException", "Length of message attribute name must be less than 256 bytes."
        )
    if (
        not _ATTRIBUTE_NAME.fullmatch(name)
        or name.startswith(".")
        or name.endswith(".")
        or ".." in name
        or lowered.startswith(("aws.", "amazon."))
    ):
        raise error("InvalidParameterValueException", f"Message (user) attribute name '{name}' is invalid.")


def _is_number(text: str) -> bool:
    try:
        return float(text) not in (float("inf"), float("-inf")) and "_" not in text
    except ValueError:
        return False


# ---- digests ---------------------------------------------------------------------------------------------------


def digest_of_body(body: str) -> str:
    """Hex MD5 of the text in UTF-8."""
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()


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
        headers["attributes"] = {name: _packed(attribute) for name, attribute in attributes.items()}
    if trace is not None:
        headers["trace"] = trace
    if sender is not None:
        headers["sender"] = sender
    return orjson.dumps(headers) if headers else None


def _packed(attribute: Mapping[str, Any]) -> list[str]:
    """Type and value; a binary value, told by its type, as base 64."""
    if attribute["DataType"].startswith("Binary"):
        return [attribute["DataType"], b64encode(attribute["BinaryValue"]).decode()]
    return [attribute["DataType"], attribute["StringValue"]]


def unpack(headers: bytes | None) -> dict[str, Any]:
    """What `pack` wrote, with attributes in SQS's form again."""
    if headers is None:
        return {}
    unpacked: dict[str, Any] = orjson.loads(headers)
    if "attributes" in unpacked:
        unpacked["attributes"] = {name: _unpacked(*packed) for name, packed in unpacked["attributes"].items()}
    return unpacked


def _unpacked(data_type: str, value: str) -> dict[str, Any]:
    if data_type.startswith("Binary"):
        return {"DataType": data_type, "BinaryValue": b64decode(value)}
    return {"DataType": data_type, "StringValue": value}


@lru_cache(maxsize=1024)
def _chooser(wanted: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Exact names, and beginnings: `Hel.*` begins `Hello` as well as `Help.Me`, and `All` begins everything."""
    beginnings = tuple(
        "" if name in ("All", "*") else name.removesuffix(".*")
        for name in wanted
        if name in ("All", "*") or name.endswith(".*")
    )
    return frozenset(wanted), beginnings


def chosen(attributes: Attributes, wanted: Iterable[str]) -> Attributes:
    """The attributes a receiver asked for: by name, by `prefix.*`, or `All`, `.*` or `*` for every one."""
    exact, beginnings = _chooser(tuple(wanted))
    return {
        name: attribute
        for name, attribute in attributes.items()
        if name in exact or name.startswith(beginnings)
    }

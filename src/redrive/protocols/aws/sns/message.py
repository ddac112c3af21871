"""What may be published: texts, subjects and message attributes, and how much of them."""

import re
from base64 import b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

import orjson

from redrive.model.filtering import Attribute
from redrive.model.message import bytes_of as text_bytes_of
from redrive.protocols.aws.sns.errors import error, invalid
from redrive.protocols.aws.wire.errors import AwsError

BYTES_MAX: Final = 256 * 1024
SMS_CHARS_MAX: Final = 1600
SUBJECT_CHARS_MAX: Final = (
    100  # "less than 100", says the reference; CloudWatch cuts its own at 100, and they arrive
)
NAME_BYTES_MAX: Final = 256

Attributes = Mapping[str, Mapping[str, Any]]

_TYPE: Final = re.compile(r"(Binary|Number|String)(\..+)?", re.DOTALL)
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
_NOT_IN_SUBJECT: Final = re.compile(r"[\x00-\x1f\x7f]")
_ID: Final = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")  # letters, digits and punctuation, as SQS has it
_STRUCTURE: Final = "Invalid parameter: Message Structure - "


def check_text(text: str) -> None:
    """Refuse a message without text.

    Raises:
        AwsError: `InvalidParameter`.
    """
    if not text:
        raise invalid("Empty message")


def check_subject(subject: str | None) -> None:
    """Refuse a subject that is empty, too long, or could break a mail's header.

    Raises:
        AwsError: `InvalidParameter`.
    """
    if subject is None:
        return
    if not 1 <= len(subject) <= SUBJECT_CHARS_MAX or _NOT_IN_SUBJECT.search(subject):
        raise invalid("Subject")


def check_id(parameter: str, value: str) -> None:
    """Refuse a message group or deduplication id that is none.

    Raises:
        AwsError: `InvalidParameter`.
    """
    if not _ID.fullmatch(value):
        raise invalid(  # chosen
            f"{parameter} Reason: can only include alphanumeric and punctuation characters. 1 to 128 in length"
        )


def bytes_of(text: str, attributes: Attributes | None) -> int:
    """What a message weighs: its text, and name, type and value of each attribute."""
    weight = text_bytes_of(text)
    if attributes:
        weight += sum(_attribute_bytes(name, one) for name, one in attributes.items())
    return weight


def _attribute_bytes(name: str, attribute: Mapping[str, Any]) -> int:
    value = attribute.get("StringValue") or ""
    declared = text_bytes_of(name) + text_bytes_of(attribute["DataType"])
    return declared + text_bytes_of(value) + len(attribute.get("BinaryValue") or b"")


# ---- attributes ------------------------------------------------------------------------------------------------


def check_attributes(attributes: Attributes) -> None:
    """Refuse message attributes that break a rule.

    Raises:
        AwsError: `ParameterValueInvalid`.
    """
    for name, attribute in attributes.items():
        _check_name(name)
        _check_value(name, attribute)


def _refused(message: str) -> AwsError:
    return error("ParameterValueInvalid", message)


def _check_name(name: str) -> None:
    if not name:
        raise _refused("Message attribute name can not be empty.")  # chosen
    if len(name.encode()) > NAME_BYTES_MAX:
        raise _refused(f"Length of message attribute name must be less than {NAME_BYTES_MAX} bytes.")
    if strange := _NOT_IN_NAME.search(name):
        raise _refused(
            f"Invalid non-alphanumeric character '#x{ord(strange[0]):X}' was found in the message attribute name."
            " Can only include alphanumeric characters, hyphens, underscores, or dots."
        )
    if name.startswith("."):
        raise _refused("Invalid message attribute name starting with character '.' was found.")
    if name.endswith("."):
        raise _refused("Invalid message attribute name ending with character '.' was found.")
    if ".." in name:
        raise _refused("Message attribute name can not have successive '.' character.")


def _check_value(name: str, attribute: Mapping[str, Any]) -> None:
    data_type: str = attribute["DataType"]
    kind = _TYPE.fullmatch(data_type)
    if kind is None:
        raise _refused(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type"
            " prefixes is Binary, Number, and String."
        )
    field, other = ("Binary", "String") if kind[1] == "Binary" else ("String", "Binary")
    if value := attribute.get(f"{field}Value"):
        if kind[1] == "Number" and not _is_number(value):
            raise _refused(f"Could not cast message attribute '{name}' value to number.")
        return
    if attribute.get(f"{other}Value"):
        raise _refused(f"The message attribute '{name}' with type '{data_type}' must use field '{field}'.")
    raise _refused(
        f"The message attribute '{name}' must contain non-empty message attribute value for message attribute"
        f" type '{data_type}'."
    )


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


class Carried(NamedTuple):
    """Attributes as a message carries them.

    Attributes:
        packed: Names to types and values; a binary value, told by its type, in base 64.
        seen: As filters see them; binary ones do not show.
        weight: What they add to the bytes of a message.
    """

    packed: Mapping[str, tuple[str, str]]
    seen: Mapping[str, Attribute]
    weight: int


_NOTHING: Final = Carried({}, {}, 0)


def carried(attributes: Attributes | None) -> Carried:
    """The attributes of a message that were checked; most messages have none."""
    if not attributes:
        return _NOTHING
    packed: dict[str, tuple[str, str]] = {}
    seen: dict[str, Attribute] = {}
    weight = 0
    for name, one in attributes.items():
        packed[name] = data_type, value = _packed(one)
        if not data_type.startswith("Binary"):
            seen[name] = Attribute(data_type, value)
        weight += _attribute_bytes(name, one)
    return Carried(packed, seen, weight)


def _packed(attribute: Mapping[str, Any]) -> tuple[str, str]:
    data_type: str = attribute["DataType"]
    if data_type.startswith("Binary"):
        return data_type, b64encode(attribute["BinaryValue"]).decode()
    return data_type, attribute["StringValue"]


# ---- MessageStructure --------------------------------------------------------------------------------------------


Texts = tuple[str, dict[str, str]]
"""The text for everybody, and the others by the protocols and platforms they are for."""


def texts(message: str, structure: str | None, platform: str | None = None) -> Texts:
    """The text for everybody, and the others by the protocols and platforms they are for.

    Args:
        message: As given.
        structure: `json`, where it is a JSON object of texts; any other word means nothing.
        platform: Whom alone it is for, if it is: then its own text is enough.

    Raises:
        AwsError: `InvalidParameter`: it is no such object, or has no text under `default`.
    """
    if structure != "json":
        return message, {}
    try:
        document = orjson.loads(message)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise error("InvalidParameter", f"{_STRUCTURE}JSON message body failed to parse")
    given = {name: text for name, text in document.items() if isinstance(text, str)}
    if platform is not None and "default" not in given:
        if platform not in given:
            raise invalid(f"JSON must contain an entry for 'default' or '{platform}'.")
        return given[platform], given
    if "default" not in given:
        raise error("InvalidParameter", f"{_STRUCTURE}No default entry in JSON message body")
    return given.pop("default"), given

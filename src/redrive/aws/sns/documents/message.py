"""Texts, subjects and attributes of publications, and their limits."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from redrive.aws.kit import messages
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.kit.messages import Attributes
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.wire.errors import AwsError
from redrive.model.topic import Attribute, Topic

BYTES_MAX: Final = 256 * 1024
MAXIMUM_SIZE: Final = "MaximumMessageSize"
SMS_CHARS_MAX: Final = 1600
# "less than 100", says the reference; CloudWatch cuts its own at 100, and they arrive.
SUBJECT_CHARS_MAX: Final = 100

_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
_NOT_IN_SUBJECT: Final = re.compile(r"[\x00-\x1f\x7f]")
_STRUCTURE: Final = "Invalid parameter: Message Structure - "


def bytes_max(topic: Topic) -> int:
    """The largest message of a topic, with its attributes (bytes)."""
    return int(topic.attributes.get(MAXIMUM_SIZE, BYTES_MAX))


def check_text(text: str) -> None:
    """Refuse a message without text; raises AwsError (`InvalidParameter`)."""
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


# ---- attributes ------------------------------------------------------------------------------------------------


def check_attributes(attributes: Attributes) -> None:
    """Refuse message attributes that break a rule; raises AwsError (`ParameterValueInvalid`)."""
    for name, attribute in attributes.items():
        if fault := messages.name_fault(name, _NOT_IN_NAME):
            raise _invalid(fault)
        _check_value(name, attribute)


def _invalid(message: str) -> AwsError:
    return error("ParameterValueInvalid", message)


def _check_value(name: str, attribute: Mapping[str, Any]) -> None:
    """Refuse an attribute whose type or value is not acceptable."""
    data_type: str = attribute["DataType"]
    kind = messages.kind_of(data_type)
    if kind is None or data_type == f"{kind}.":  # a custom type needs a label after the dot
        raise _invalid(messages.type_fault(name))
    field, other = ("Binary", "String") if kind == "Binary" else ("String", "Binary")
    if value := attribute.get(f"{field}Value"):
        if kind == "Number" and not messages.is_number(value):
            raise _invalid(f"Could not cast message attribute '{name}' value to number.")
        return
    if attribute.get(f"{other}Value"):
        raise _invalid(f"The message attribute '{name}' with type '{data_type}' must use field '{field}'.")
    raise _invalid(
        f"The message attribute '{name}' must contain non-empty message attribute value for message attribute"
        f" type '{data_type}'."
    )


class CarriedAttributes(NamedTuple):
    """Attributes as a message carries them."""

    # Types and values by name; a binary value in base 64.
    packed: Mapping[str, tuple[str, str]]
    filterable: Mapping[str, Attribute]  # As filters see them: without binary ones
    weight: int  # Bytes that they add to a message


_NOTHING: Final = CarriedAttributes({}, {}, 0)


def carry(attributes: Attributes | None) -> CarriedAttributes:
    """The checked attributes of a message: packed for its headers, those that filters can test, and their size."""
    if not attributes:
        return _NOTHING
    packed: dict[str, tuple[str, str]] = {}
    filterable: dict[str, Attribute] = {}
    weight = 0
    for name, attribute in attributes.items():
        packed[name] = data_type, value = messages.packed(attribute)
        if not data_type.startswith("Binary"):
            filterable[name] = Attribute(data_type, value)
        weight += messages.attribute_bytes(name, attribute)
    return CarriedAttributes(packed, filterable, weight)


# ---- MessageStructure --------------------------------------------------------------------------------------------


Texts = tuple[str, dict[str, str]]
"""The default text, and the others by the protocols and platforms they are for."""


def texts(message: str, structure: str | None, platform: str | None = None) -> Texts:
    """The default text, and the others by the protocols and platforms they are for.

    Args:
        message: As given.
        structure: `json`: the message is a JSON object of texts; anything else has no effect.
        platform: The one platform that it is for, if it is for a device: then a text for that is enough.

    Raises:
        AwsError: `InvalidParameter`: it is no such object, or has no text under `default`.
    """
    if structure != "json":
        return message, {}
    document = read_object(message)
    if document is None:
        raise error("InvalidParameter", f"{_STRUCTURE}JSON message body failed to parse")
    texts_by_protocol = {name: text for name, text in document.items() if isinstance(text, str)}
    if platform is not None and "default" not in texts_by_protocol:
        if platform not in texts_by_protocol:
            raise invalid(f"JSON must contain an entry for 'default' or '{platform}'.")
        return texts_by_protocol[platform], texts_by_protocol
    if "default" not in texts_by_protocol:
        raise error("InvalidParameter", f"{_STRUCTURE}No default entry in JSON message body")
    return texts_by_protocol.pop("default"), texts_by_protocol

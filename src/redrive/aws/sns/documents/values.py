"""The answers of SNS to attributes that it does not know or take."""

from typing import TypeVar

from redrive.aws.kit.attributes import ValueReader
from redrive.aws.sns.documents.errors import AttributeRefused

V = TypeVar("V")


class AttributeUnknown(AttributeRefused):
    """There is no such attribute, or it cannot be set."""

    def __init__(self) -> None:
        super().__init__("AttributeName")


def unknown_attribute(_: str) -> AttributeRefused:
    """The answer to the name of no attribute, or of one that cannot be set."""
    return AttributeUnknown()


def invalid_value(name: str, _: str, complaint: str) -> AttributeRefused:
    """The answer to a value that an attribute cannot have."""
    return AttributeRefused(f"{name}: {complaint}")


def read(reader: ValueReader[V], name: str, text: str) -> V:
    """The value of an attribute that is not in a table.

    Raises:
        AttributeRefused: The text is not acceptable.
    """
    value = reader.parse(text)
    if value is None:
        raise invalid_value(name, text, reader.complaint.format(text))
    return value

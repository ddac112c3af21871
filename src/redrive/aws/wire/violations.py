"""Violations of a service's model, and the errors that services make of them.

Whether and how a service speaks of a constraint differs: most answer with one text that lists every violation
(`coral_error`), SQS names the first missing parameter (`sqs_error`) and answers the rest itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.shapes import Value


class ViolationKind(StrEnum):
    """The kind of a constraint; the value is the phrase that services print for it."""

    REQUIRED = "Member must not be null"
    ENUM = "Member must satisfy enum value set: {}"
    LENGTH_MAX = "Member must have length less than or equal to {}"
    LENGTH_MIN = "Member must have length greater than or equal to {}"
    VALUE_MAX = "Member must have value less than or equal to {}"
    VALUE_MIN = "Member must have value greater than or equal to {}"
    PATTERN = "Member must satisfy regular expression pattern: {}"
    ELEMENTS = "Member must satisfy constraint: {}"
    KEYS = "Map keys must satisfy constraint: {}"
    VALUES = "Map value must satisfy constraint: {}"


@dataclass(frozen=True, slots=True)
class Violation:
    """One constraint one value does not meet."""

    path: str  # Where, spelled as the service spells it
    kind: ViolationKind  # Violated constraint
    value: Value  # Offending value; None if a required member is missing
    # The permitted strings, the limit or the pattern; for the elements, keys and values of a collection the
    # phrases of all their constraints; None for a required member.
    bound: float | str | tuple[str, ...] | None


def phrase(kind: ViolationKind, bound: float | str | tuple[str, ...] | None) -> str:
    """Return a constraint in the services' words."""
    return kind.format(f"[{', '.join(bound)}]" if isinstance(bound, tuple) else bound)


def coral_text(violations: Sequence[Violation]) -> str:
    """Return the text most services answer with, all violations in one.

    `1 validation error detected: Value null at 'topicArn' failed to satisfy constraint: Member must not be null`
    """
    count = len(violations)
    details = "; ".join(
        f"Value{_as_text(violation.value)} at '{violation.path}' failed to satisfy constraint: "
        f"{phrase(violation.kind, violation.bound)}"
        for violation in violations
    )
    return f"{count} validation error{'s' if count > 1 else ''} detected: {details}"


def coral_error(violations: Sequence[Violation]) -> AwsError:
    """Return `ValidationException`, in query protocols `ValidationError`, with `coral_text`."""
    return common("ValidationException", coral_text(violations))


def _as_text(value: Value) -> str:
    """The value as the text has it; of bytes nothing is printed."""
    if isinstance(value, bytes):
        return ""
    return " null" if value is None else f" '{_java(value)}'"


def _java(value: Value) -> str:
    """Return a value as the services print it: Java's `toString`."""
    match value:
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{', '.join(map(_java, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}={_java(item)}" for key, item in value.items()) + "}"
        case _:
            return str(value)

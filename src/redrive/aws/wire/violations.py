"""Violations of a service's model, and the errors that services make of them.

Whether and how a service speaks of a constraint differs: most answer with one text that lists every violation
(`coral_error`), SQS names the first missing parameter (`sqs_error`) and answers the rest itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from redrive.aws.wire.errors import AwsError, ErrorKind, common
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
    """One constraint one value does not meet.

    Attributes:
        path: Where, spelled as the service spells it.
        kind: Which constraint.
        value: What stands there; None where a required member is absent.
        bound: The permitted strings, the limit or the pattern; for the elements, keys and values of a
            collection the phrases of all their constraints; None for a required member.
    """

    path: str
    kind: ViolationKind
    value: Value
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
        f"Value{_shown(violation.value)} at '{violation.path}' failed to satisfy constraint: "
        f"{phrase(violation.kind, violation.bound)}"
        for violation in violations
    )
    return f"{count} validation error{'s' if count > 1 else ''} detected: {details}"


def coral_error(violations: Sequence[Violation]) -> AwsError:
    """Return `ValidationException`, in query protocols `ValidationError`, with `coral_text`."""
    return common("ValidationException", coral_text(violations))


_LOG_NAMES: Final = frozenset({"logGroupName", "logStreamName"})
_LOG_NAME_CHARS_MAX: Final = 512


def logs_error(violations: Sequence[Violation]) -> AwsError:
    """Return CloudWatch Logs' `InvalidParameterException` with `coral_text`.

    A name that is too long has words of its own, and of an identifier that does not fit nothing is printed (recorded).
    """
    if any(each.path in _LOG_NAMES and each.kind is ViolationKind.LENGTH_MAX for each in violations):
        return AwsError(
            "InvalidParameterException",
            f"Invalid LogGroup or LogStream, both must have length less than or equal to {_LOG_NAME_CHARS_MAX}.",
        )
    hidden = [
        replace(each, value=b"")
        if each.path == "logGroupIdentifier" and each.kind is ViolationKind.PATTERN
        else each
        for each in violations
    ]
    return AwsError("InvalidParameterException", coral_text(hidden))


_MISSING_PARAMETER = ErrorKind("MissingRequiredParameterException", "MissingParameter")
_EMPTY_BATCH = ErrorKind("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest")


def sqs_error(violations: Sequence[Violation]) -> AwsError:
    """Return SQS's answer to the first missing parameter.

    A batch without entries cannot be told from a batch without the parameter in a query request, so both are
    empty batches.
    """
    path = violations[0].path
    if path.endswith("BatchRequestEntry"):
        return _EMPTY_BATCH.says(f"There should be at least one {path} in the request.")
    return _MISSING_PARAMETER.says(f"The request must contain the parameter {path}.")


def s3_error(violations: Sequence[Violation]) -> AwsError:
    """Return S3's answer to a document that lacks something, and to a header that has to be there."""
    missing = ", ".join(violation.path for violation in violations)
    return AwsError("MalformedXML", f"The request lacks what it has to have: {missing}")


def _shown(value: Value) -> str:
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

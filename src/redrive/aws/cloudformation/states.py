"""Statuses of stacks, and what may be done in them."""

from typing import Final

from redrive.aws.cloudformation.errors import invalid
from redrive.aws.cloudformation.records import Stack
from redrive.aws.wire.errors import AwsError

REVIEW: Final = "REVIEW_IN_PROGRESS"
_UPDATABLE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_FAILED", "IMPORT_COMPLETE"}
)


def is_in_progress(stack: Stack) -> bool:
    """True if something is being done to it."""
    return stack.status.endswith("_IN_PROGRESS") and stack.status != REVIEW


def check_updatable(stack: Stack) -> None:
    """Refuse to change a stack in whose status that cannot be done.

    Raises:
        AwsError: It cannot be changed.
    """
    if stack.status not in _UPDATABLE:
        raise not_updatable(stack)


def not_updatable(stack: Stack) -> AwsError:
    """The refusal to change a stack as it is."""
    hint = ""
    if stack.status == "ROLLBACK_COMPLETE":
        hint = " Delete it first; --on-failure DELETE does that by itself."
    return invalid(f"Stack:{stack.arn} is in {stack.status} state and can not be updated.{hint}")

"""Statuses of stacks, and what may be done in them."""

from collections.abc import Mapping
from typing import Final

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.wire.errors import AwsError

REVIEW: Final = "REVIEW_IN_PROGRESS"
_UPDATABLE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_FAILED", "IMPORT_COMPLETE"}
)
#: What a change ends with that is given up, by the phase that it is in.
GIVEN_UP: Final[Mapping[str, str]] = {
    "CREATE_IN_PROGRESS": "CREATE_FAILED",
    "DELETE_IN_PROGRESS": "DELETE_FAILED",
    "ROLLBACK_IN_PROGRESS": "ROLLBACK_FAILED",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "UPDATE_COMPLETE",
    "UPDATE_IN_PROGRESS": "UPDATE_FAILED",
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_ROLLBACK_IN_PROGRESS": "UPDATE_ROLLBACK_FAILED",
}


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

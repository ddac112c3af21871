"""Names: of stacks, of changes to them, and those made up for resources."""

import random
import re
import string
from typing import Final

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.model.names import ResourceName

PATH: Final = "/_redrive/cloudformation/"  # of what is sent to stacks
NAME_CHARS_MAX: Final = 128
_NAME: Final = re.compile(r"[a-zA-Z][-a-zA-Z0-9]*")
_RANDOM_CHARS: Final = 12
_STRANGE: Final = re.compile(r"[^a-zA-Z0-9-]")


def stack_arn(name: ResourceName, stack: str) -> str:
    """The id of a stack."""
    return f"arn:aws:cloudformation:{name.region}:{name.account}:stack/{name.name}/{stack}"


def change_set_arn(name: ResourceName, change_set: str, number: str) -> str:
    """The id of a change set."""
    return f"arn:aws:cloudformation:{name.region}:{name.account}:changeSet/{change_set}/{number}"


def check_name(member: str, name: str) -> None:
    """Check a name that a caller chose.

    Raises:
        AwsError: It has other characters, or too many.
    """
    if not _NAME.fullmatch(name):
        raise invalid(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member must"
            f" satisfy regular expression pattern: {_NAME.pattern}"
        )
    if len(name) > NAME_CHARS_MAX:
        raise invalid(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member must"
            f" have length less than or equal to {NAME_CHARS_MAX}"
        )


def id_in(text: str) -> str:
    """The unique part of an ARN of a stack or a change set; empty for a name."""
    return text.rpartition("/")[2] if text.startswith("arn:") else ""


def made_up(
    chance: random.Random, stack: str, logical_id: str, chars_max: int, suffix: str, *, lower_case: bool
) -> str:
    """A name for a resource, which nobody else has: `<stack>-<logical id>-<12 characters>`, shortened to fit.

    Args:
        chance: For the last part.
        stack: The stack's name.
        logical_id: The resource's name in the template.
        chars_max: Of the name, 40 at least; 0: as long as it is.
        suffix: The end of the name.
        lower_case: It has small letters only.
    """
    letters = string.ascii_lowercase if lower_case else string.ascii_letters
    end = "".join(chance.choices(letters + string.digits, k=_RANDOM_CHARS))
    room = (chars_max or 10_000) - len(end) - len(suffix) - 2
    logical = _STRANGE.sub("", logical_id)[: max(room // 2, room - len(stack))]
    name = f"{stack[: room - len(logical)]}-{logical}-{end}{suffix}"
    return name.lower() if lower_case else name

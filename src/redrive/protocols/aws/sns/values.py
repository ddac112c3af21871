"""What attributes of topics and of subscriptions have in common: how their values are read; and how SNS writes some."""

import re
from datetime import UTC, datetime
from typing import Final

from redrive.protocols.aws.sns.errors import AttributeRefused

_BOOLEANS: Final = {"true": True, "false": False}
_ROLE_ARN: Final = re.compile(r"arn:[a-z-]+:iam::[0-9]{12}:role/.+")
_PERCENT_MAX: Final = 100


class AttributeUnknown(AttributeRefused):
    """There is no such attribute, or it cannot be set."""

    def __init__(self) -> None:
        super().__init__("AttributeName")


def log_timestamp(at: int) -> str:
    """A moment (ms) as SNS writes it in its logs: `2026-01-02 03:04:05.006`."""
    seconds, milliseconds = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{milliseconds:03d}"


def boolean(name: str, text: str) -> bool:
    """`true` or `false`, in whatever case.

    Raises:
        AttributeRefused: It is neither.
    """
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise AttributeRefused(f"{name}: Invalid value [{text}]. Must be true or false.")
    return value


def one_of(name: str, text: str, choices: tuple[str, ...]) -> str:
    """One of a few words.

    Raises:
        AttributeRefused: It is another one.
    """
    if text not in choices:
        raise AttributeRefused(f"{name}: Invalid value [{text}]. Must be {' or '.join(choices)}.")  # chosen
    return text


def percentage(name: str, text: str) -> str:
    """A whole number from 0 to 100, as text.

    Raises:
        AttributeRefused: It is none.
    """
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= _PERCENT_MAX):
        raise AttributeRefused(f"{name}: {text} value provided is not an integer between 0-{_PERCENT_MAX}")
    return text


def role_arn(name: str, text: str) -> str:
    """The ARN of a role.

    Raises:
        AttributeRefused: It is none.
    """
    if not _ROLE_ARN.fullmatch(text):
        raise AttributeRefused(f"{name}: {text} is not the ARN of a role")  # chosen
    return text

"""Pages of lists: a token says how many were shown."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final, TypeVar

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.wire.shapes import Structure

T = TypeVar("T")
PAGE: Final = 100
_DIGITS_MAX: Final = 12


def page(items: Sequence[T], params: Structure) -> tuple[Sequence[T], Structure]:
    """A page of a list, and the member of the answer that leads to the next.

    Raises:
        AwsError: The token leads nowhere.
    """
    begin = _begin(params.get("NextToken") or "")
    end = begin + (params.get("MaxResults") or PAGE)
    token = {"NextToken": urlsafe_b64encode(str(end).encode()).decode()} if end < len(items) else {}
    return items[begin:end], token


def _begin(token: str) -> int:
    try:
        text = urlsafe_b64decode(token).decode("ascii")
    except ValueError:
        text = "-"
    if text and not (text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise invalid("NextToken is invalid.")
    return int(text or "0")

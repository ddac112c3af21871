"""Pages of a list: a hundred at a time, each naming the key after which the next begins."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from redrive.aws.sns.errors import invalid
from redrive.aws.wire.shapes import Structure

PAGE: Final = 100
T = TypeVar("T")


def after(params: Structure, member: str = "NextToken") -> str:
    """The key that a page begins after.

    Raises:
        AwsError: `InvalidParameter`: the token is not one of ours.
    """
    token: str = params.get(member) or ""
    try:
        return b64decode(token, b"-_", validate=True).decode()
    except ValueError:
        raise invalid(f"{member} Reason: {token} is not a token of this list") from None  # chosen


def paged(
    items: Sequence[T], key: Callable[[T], str], limit: int = PAGE, member: str = "NextToken"
) -> tuple[Sequence[T], Structure]:
    """The page of what was found, one more than a page at most, and the token member of its answer."""
    page = items[:limit]
    if len(items) <= limit:
        return page, {}
    return page, {member: urlsafe_b64encode(key(page[-1]).encode()).decode()}

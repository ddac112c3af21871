"""Pages of a list: up to fifty at a time, each naming the key after which the next begins."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from redrive.aws.lambda_.documents.errors import invalid
from redrive.aws.wire.shapes import Structure

PAGE: Final = 50
T = TypeVar("T")


def limit(params: Structure) -> int:
    """The largest number of items on a page."""
    return min(params.get("MaxItems") or PAGE, PAGE)


def after(params: Structure) -> str:
    """The key that a page begins after.

    Raises:
        AwsError: The marker is not one of ours.
    """
    marker: str = params.get("Marker") or ""
    try:
        return b64decode(marker, b"-_", validate=True).decode()
    except ValueError:
        raise invalid(f"Invalid marker: {marker}") from None  # chosen


def paged(
    items: Sequence[T], key: Callable[[T], str], size: int, member: str, show: Callable[[T], object]
) -> Structure:
    """The answer with one page of what was found, one more than a page at most.

    Args:
        items: In the order of their keys.
        key: Of each.
        size: How many a page has.
        member: The answer's name of the list.
        show: Makes what the answer shows of each.
    """
    answer: Structure = {member: [show(each) for each in items[:size]]}
    if len(items) > size:
        answer["NextMarker"] = urlsafe_b64encode(key(items[size - 1]).encode()).decode()
    return answer

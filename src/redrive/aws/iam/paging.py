"""Pages of a list: up to a thousand at a time, each with a marker that the next begins after."""

from base64 import b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from redrive.aws.iam.errors import invalid
from redrive.aws.wire.shapes import Structure

PAGE: Final = 100
T = TypeVar("T")


def paged(
    items: Iterable[T], key: Callable[[T], str], params: Structure, member: str, show: Callable[[T], object]
) -> Structure:
    """The answer with one page of what was found.

    Args:
        items: All of it, in the order of its keys.
        key: Of each.
        params: `Marker` and `MaxItems`.
        member: The answer's name of the list.
        show: Makes what the answer shows of each.

    Raises:
        AwsError: The marker is not one of this list.
    """
    marker: str = params.get("Marker") or ""
    try:
        after = b64decode(marker, b"-_", validate=True).decode()
    except ValueError:
        raise invalid(f"Invalid Marker: {marker}") from None
    size = params.get("MaxItems") or PAGE
    ordered = items if isinstance(items, Sequence) else list(items)
    begin = bisect_right(ordered, after, key=key) if after else 0
    page, goes_on = ordered[begin : begin + size], len(ordered) > begin + size
    answer: Structure = {member: [show(each) for each in page], "IsTruncated": goes_on}
    if goes_on:
        answer["Marker"] = urlsafe_b64encode(key(page[-1]).encode()).decode()
    return answer

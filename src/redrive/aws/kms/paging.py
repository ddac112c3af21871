"""Pages of lists: a marker is the place of the last element shown."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import TypeVar

from redrive.aws.kms.errors import error
from redrive.aws.wire.shapes import Structure

T = TypeVar("T")


def page(
    params: Structure, member: str, everything: Sequence[T], key: Callable[[T], str], limit_default: int = 100
) -> tuple[list[T], Structure]:
    """The elements that a request asks for, and the answer around them.

    Args:
        params: The request's: `Limit`, `Marker`.
        member: What the answer calls the list.
        everything: All elements, in order of their keys.
        key: The place of an element, unique.
        limit_default: How many, where the request does not say.

    Raises:
        AwsError: `InvalidMarkerException`.
    """
    after = _after(params.get("Marker"))
    behind = [element for element in everything if key(element) > after]
    page_items = behind[: params.get("Limit") or limit_default]
    answer: Structure = {member: [], "Truncated": len(page_items) < len(behind)}
    if answer["Truncated"]:
        answer["NextMarker"] = urlsafe_b64encode(key(page_items[-1]).encode()).decode()
    return page_items, answer


def _after(marker: str | None) -> str:
    if not marker:
        return ""
    try:
        return b64decode(marker, b"-_", validate=True).decode()
    except ValueError:
        raise error("InvalidMarkerException", "The marker is not one that this service gave out.") from None

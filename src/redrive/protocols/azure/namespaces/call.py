"""One call to a namespace, as an operation sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from redrive.model.queue import Queue
from redrive.model.topic import Topic
from redrive.protocols.azure.arm.call import whole_number
from redrive.protocols.azure.wire.errors import AzureError, invalid
from redrive.protocols.http import Request


@dataclass(frozen=True, slots=True)
class NamespaceCall:
    """One call about a topic.

    Attributes:
        request: As it came.
        topic: Which topic.
        query: By names in lower case.
        now: ms.
        count: Adds to a metric of what the call is about, by the dimensions given.
    """

    request: Request
    topic: Topic
    query: Mapping[str, str]
    now: int
    count: "Count"

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """A whole number of the query.

        Raises:
            AzureError: Not a number, or out of its range.
        """
        text = self.query.get(name.lower())
        if text is None:
            return default
        number = whole_number(text, least, most)
        if number is None:
            raise refused(f"The query parameter '{name}' must be a number between {least} and {most}.")
        return number


@dataclass(frozen=True, slots=True)
class PullCall(NamespaceCall):
    """One call about an event subscription in queue mode.

    Attributes:
        queue: What it is received from.
    """

    queue: Queue


class Count(Protocol):
    """Adds to a metric."""

    def __call__(self, name: str, value: float, dimensions: tuple[tuple[str, str], ...] = ()) -> None:
        """Add a value."""
        ...


def refused(message: str) -> AzureError:
    """A call that cannot succeed as it stands."""
    return invalid(message, "BadRequest")

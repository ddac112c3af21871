"""Calls to a namespace: the parsed request that an operation gets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from redrive.azure.wire.errors import AzureError, invalid
from redrive.azure.wire.routes import whole_number
from redrive.model.http import Request
from redrive.model.queue import Queue
from redrive.model.topic import Topic


@dataclass(frozen=True, slots=True)
class NamespaceCall:
    """A call to a topic."""

    request: Request  # The HTTP request, unchanged
    topic: Topic  # The topic of the path
    query: Mapping[str, str]  # The query's parameters, by name in lower case
    now: int  # Time of the call (ms)
    # Adds to a metric of the topic, or of the event subscription, by the dimensions given.
    count: "MetricAdder"

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a parameter of the query that is a whole number.

        Raises:
            AzureError: The parameter is not a whole number, or out of its range.
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
    """A call to an event subscription in queue mode."""

    queue: Queue  # The queue that holds the subscription's events


class MetricAdder(Protocol):
    """Adds to a metric."""

    def __call__(self, name: str, value: float, dimensions: tuple[tuple[str, str], ...] = ()) -> None:
        """Add a value."""
        ...


def refused(message: str) -> AzureError:
    """The error 400 of a malformed call."""
    return invalid(message, "BadRequest")

"""Arrivals of dead letters: how many each dead-letter queue took, and all of a place together, minute by minute.

A dead letter's row does not say when it came, and is gone once somebody sent it back. What came by hand, by a redrive, or
was set aside is no arrival. All nodes add to the same series; of a minute in which nothing came there is no point.
"""

from collections.abc import Iterator
from typing import Final

from redrive.model.metric import Series, Statistics
from redrive.model.names import ResourceName
from redrive.telemetry.traffic import PLACE, place_series

_TAKEN: Final = "dead_letters_taken"


class Arrivals:
    """Counts arrivals by dead-letter queue, until they are taken."""

    def __init__(self) -> None:
        self._taken: dict[ResourceName, int] = {}

    def __bool__(self) -> bool:
        return bool(self._taken)

    def add(self, dead_letter_queue: ResourceName, letters: int) -> None:
        """Count letters that a dead-letter queue took."""
        self._taken[dead_letter_queue] = self._taken.get(dead_letter_queue, 0) + letters

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """Each queue's since the last time, and its place's."""
        taken, self._taken = self._taken, {}
        for name, letters in taken.items():
            yield arrivals_at(name), Statistics.of(letters)
            yield arrivals_in(name), Statistics.of(letters)


def arrivals_at(dead_letter_queue: ResourceName) -> Series:
    """The arrivals at a dead-letter queue; no account's either, since SQS has no such metric."""
    account, region, name = dead_letter_queue
    return Series("", "", PLACE, _TAKEN, (("account", account), ("queue", name), ("region", region)))


def arrivals_in(place: ResourceName) -> Series:
    """The arrivals in an account and region, whatever the name in it."""
    return place_series(place, _TAKEN)

"""Levels: how full queues and backlogs were at the last look, as far as pages show them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import Counts
from redrive.model.names import ResourceName

#: Queues, and topics, that are shown by name. A line of the exposition takes 0.3 µs, and each of these has a dozen.
SHOWN_MAX: Final = 2_000
#: All others together; no queue and no topic can be called like this.
OTHERS: Final = ResourceName("", "", "(others)")


@dataclass(frozen=True, slots=True)
class Level:
    """The level of a queue, or of the backlogs of a topic's subscriptions."""

    name: ResourceName  # The queue or the topic; OTHERS stands for several
    counts: Counts  # Deliveries that are due, in flight, and waiting for a later moment
    age_seconds: int  # Age of the oldest delivery
    # When that began to age (ms); None: nobody says so, or several queues are told of together.
    oldest_at: int | None = None

    def and_also(self, other: "Level") -> "Level":
        """Both levels as one: the deliveries of both, and the greater age."""
        counts = Counts(*(own + others for own, others in zip(self.counts, other.counts, strict=True)))
        return Level(self.name, counts, max(self.age_seconds, other.age_seconds))


EMPTY: Final = Counts(0, 0, 0)


def fullest(levels: Iterable[Level], number: int = SHOWN_MAX) -> list[Level]:
    """The fullest levels by name, and one sum of the others: private ones, and those beyond the number.

    Of 100,000 levels that takes 0.1 s, so it is done when they are looked at and not when they are shown.
    """
    all_levels = list(levels)
    others = [level for level in all_levels if level.name.private]
    public = [level for level in all_levels if not level.name.private] if others else all_levels
    if len(public) > number:
        public = sorted(public, key=_fullness, reverse=True)
        public, others = public[:number], others + public[number:]
    return [*public, _together(others)] if others else public


def _together(levels: Sequence[Level]) -> Level:
    """Several levels as one: the deliveries of all, and the greatest age."""
    counts = Counts(
        sum([level.counts.available for level in levels]),
        sum([level.counts.claimed for level in levels]),
        sum([level.counts.delayed for level in levels]),
    )
    return Level(OTHERS, counts, max(level.age_seconds for level in levels))


def _fullness(level: Level) -> int:
    return sum(level.counts)

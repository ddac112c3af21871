"""The axis of a trace: the attempts of each subscriber on one line of time, in percent that a template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.console.words import failure_words, span
from redrive.engine.ports import AttemptNote

_LEFT, _RIGHT = 1.0, 97.0
_LABELS: Final = 5
STEPS_FROM_MS: Final = (
    600_000  # of a longer span the attempts would stand on each other: each gets the same room
)


class Disc(NamedTuple):
    """An attempt, or the next one."""

    x: float  # Horizontal position (percent)
    label: str  # Beneath it
    text: str  # Sentence for screen readers
    wait: str = ""  # The wait before it, in words; empty if there is no room for it
    due: bool = False  # Whether it is still to come


@dataclass(frozen=True, slots=True)
class Axis:
    """The line of time of all rows."""

    begin: int  # Its left edge (ms)
    end: int  # Its right edge (ms)
    steps: int = 0  # The room that each attempt has alike; 0: time is linear

    def discs(self, notes: Sequence[AttemptNote], next_at: int = 0) -> list[Disc]:
        """The attempts of one row in order, and the one that is due then (ms; 0: none is)."""
        discs: list[Disc] = []
        before = self.begin
        for number, note in enumerate(notes):
            at = note.at - note.duration_ms
            x = self._x(at, number)
            wait = span(at - before) if number and self._is_wide(discs[-1].x, x) else ""
            words = failure_words(f"{note.reason} {note.status or ''}")
            text = f"attempt {note.number}, {words}, took {span(note.duration_ms)}"
            discs.append(Disc(x, str(note.status or words.split()[0].lower()), text, wait))
            before = note.at
        if next_at:
            x = self._x(next_at, len(notes))
            discs.append(Disc(x, "next", f"attempt {len(notes) + 1} is due", due=True))
        return discs

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The places of the head's labels (percent), and the time since the beginning."""
        if self.steps:
            return []
        whole = max(1, self.end - self.begin)
        positions = range(1, _LABELS)
        return [
            (
                _LEFT + (_RIGHT - _LEFT) * each / (_LABELS - 1),
                f"+{span(whole * each // (_LABELS - 1) // 100 * 100)}",
            )
            for each in positions
        ]

    def _x(self, at: int, number: int) -> float:
        share = number / self.steps if self.steps else (at - self.begin) / max(1, self.end - self.begin)
        return round(_LEFT + (_RIGHT - _LEFT) * min(1.0, max(0.0, share)), 1)

    def _is_wide(self, left: float, right: float) -> bool:
        return right - left > 8  # noqa: PLR2004 - percent that a wait in words takes

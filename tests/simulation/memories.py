"""Expected deduplication: a repetition is answered with the original, and nothing else is."""

from dataclasses import replace

from redrive.engine.ports import Enqueued
from tests.simulation.rules import Rule, require


class Memories:
    """The original of each key, by what the key is unique within."""

    def __init__(self, patience_ms: int) -> None:
        """Nodes may disagree by so much about when a memory ends."""
        self._patience_ms = patience_ms
        self._originals: dict[tuple[int, str | None], tuple[Enqueued, int]] = {}

    def repeats(self, at: tuple[int, str | None], answer: Enqueued, now: int, until: int) -> bool:
        """True if the store took this for a repetition; it was right to, or right not to.

        Args:
            at: The queue or topic, and the key; without one nothing is remembered.
            answer: The store's.
            now: When it came (ms, by its sender's clock).
            until: How long its key is to be remembered.
        """
        original, held_until = self._originals.get(at, (None, 0))
        if answer.repeated:
            right = original == replace(answer, repeated=False)
            require(right, Rule.DEDUPLICATED, answer, "for", original)
            return True
        remembered = original is not None and held_until - now > self._patience_ms
        require(not remembered, Rule.DEDUPLICATED, at, "entered again")
        if at[1] is not None:
            self._originals[at] = answer, until
        return False

"""Claims that may have run out: for each queue a moment before which none does, so that a claim need not look for any.

To look takes 4 us, of a claim's 30. Where claims are ended before they run out, it is done once in as many seconds as
they last for.
"""

from typing import Final

_REMEMBERED_MAX: Final = 10_000  # queues; forgetting them all costs each one look
_UNKNOWN: Final = 0
_NEVER: Final = 2**63 - 1


class Lapses:
    """The moments before which no claims of a process's store end."""

    def __init__(self) -> None:
        self._none_before: dict[int, int] = {}

    def possible(self, queue_id: int, now: int) -> bool:
        """True if a claim of this queue may have run out, or may have been given back."""
        return self._none_before.get(queue_id, _UNKNOWN) <= now

    def claimed(self, queue_id: int, until: int) -> None:
        """Something of this queue is claimed until then (ms), perhaps no longer than that."""
        if self._none_before.get(queue_id, _UNKNOWN) > until:
            self._none_before[queue_id] = until

    def found_none(self, queue_id: int, next_at: int | None) -> None:
        """No claim of this queue had run out; the first of them does at `next_at` (ms), if there is any."""
        if len(self._none_before) >= _REMEMBERED_MAX:
            self._none_before.clear()
        self._none_before[queue_id] = _NEVER if next_at is None else next_at

    def forget_queue(self, queue_id: int) -> None:
        """Know nothing of a queue any more, which costs the next claim a look."""
        self._none_before.pop(queue_id, None)

    def forget(self) -> None:
        """Begin anew: a transaction was undone, and what was learnt in it may be wrong."""
        self._none_before.clear()

"""Steps that filtering a message may take: filters and messages are written by callers, and may be made for each other.

A step is one value looked at for one condition, or one element of an array for one choice of the others: 0.1 to 0.5 µs.
Each filter that needs steps has an equal share of those that are left, so that no subscriber's filter can use up what
the others need. What cannot be decided within its share does not match.
"""

from typing import Final

from redrive.model.budget import Budget

#: Of one message: 40 ms. A message of a thousand order lines takes some 3,000 for a filter on three keys.
STEPS_MAX: Final = 100_000
#: Of one filter, however many there are: enough for twenty order lines.
SHARE_MIN: Final = 200
#: To compare a text takes less than to copy it.
_CHARS_PER_STEP: Final = 256


class MessageBudget(Budget):
    """The steps that are left to the filter at hand, and beside them those of the message's other filters."""

    __slots__ = ("_others",)

    def __init__(self) -> None:
        super().__init__(STEPS_MAX)
        self._others = 0

    @property
    def spent(self) -> int:
        """The steps taken."""
        return STEPS_MAX - self.left - self._others

    def share(self, filters: int) -> None:
        """Begin with one filter of so many that are still to be asked."""
        left = self.left + self._others
        self.left = max(left // filters, SHARE_MIN)
        self._others = left - self.left


def weight(value: object) -> int:
    """The steps of looking at a value once: a long text takes more than one."""
    return 1 + len(value) // _CHARS_PER_STEP if isinstance(value, str) else 1

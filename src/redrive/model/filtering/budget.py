"""Steps that filtering a message may take: filters and messages are written by callers, and may be made for each other.

A step is one value looked at for one condition, or one element of an array for one choice of the others: 0.1 to 0.5 µs.
Each filter that needs steps has an equal share of those that are left, so that no subscriber's filter can use up what
the others need. What cannot be decided within its share does not match.
"""

from typing import Final

#: Of one message: 40 ms. A message of a thousand order lines takes some 3,000 for a filter on three keys.
STEPS_MAX: Final = 100_000
#: Of one filter, however many there are: enough for twenty order lines.
SHARE_MIN: Final = 200
_CHARS_PER_STEP: Final = 256


class OverBudgetError(Exception):
    """A filter needs more steps than it has."""


class Budget:
    """The steps that are left to a message, and of them those of the filter at hand."""

    __slots__ = ("_left", "_share")

    def __init__(self) -> None:
        self._left = STEPS_MAX
        self._share = STEPS_MAX

    @property
    def spent(self) -> int:
        """The steps taken."""
        return STEPS_MAX - self._left

    def share(self, filters: int) -> None:
        """Begin with one filter of so many that are still to be asked."""
        self._share = max(self._left // filters, SHARE_MIN)

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            OverBudgetError: The filter at hand has used up its share.
        """
        self._left -= steps
        self._share -= steps
        if self._share < 0:
            raise OverBudgetError


def weight(value: object) -> int:
    """The steps of looking at a value once: a long text takes more than one."""
    return 1 + len(value) // _CHARS_PER_STEP if isinstance(value, str) else 1

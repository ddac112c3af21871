"""A budget: how much work a text of a caller's own may cause, spent before the work is done.

Templates, schemas, filters, queries and policies are small programs that callers write. Each of their steps (a node
evaluated, a pair compared) is spent from a budget before it is taken, and each text before it is put together. So no
loop, product or nesting costs more than its budget, in time or in memory, however few characters describe it.
"""

from typing import Final

#: Characters whose copy takes no longer than a step: what a budget of n steps puts together has at most 64 n of them.
CHARS_PER_STEP: Final = 64
#: However short the text: RE2 is called for 2 µs.
_STEPS_OF_A_SEARCH: Final = 4
#: Some 2 ms: what may be done on the event loop.
STEPS_AT_ONCE: Final = 4_000
#: Some 0.2 s of a thread that shares the processor with the event loop; 26 million characters.
STEPS_MAX: Final = 400_000


class OverBudgetError(Exception):
    """The work needs more steps than are left."""


class Budget:
    """The steps that are left; one takes 0.1 to 0.5 µs."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps; raises OverBudgetError if there are not so many left."""
        self.left -= steps
        if self.left < 0:
            raise OverBudgetError

    def spend_chars(self, count: int) -> None:
        """Take the steps of building a text of so many characters, or of reading it once.

        Raises:
            OverBudgetError: There are not so many left.
        """
        if count >= CHARS_PER_STEP:
            self.spend(count // CHARS_PER_STEP)

    def spend_search(self, instructions: int, chars: int) -> None:
        """Take the steps of searching a text of so many characters for a regular expression.

        Args:
            instructions: Of RE2's program for it, each of which a character may have to be tried on, for 5 ns.
            chars: Of the text.

        Raises:
            OverBudgetError: There are not so many left.
        """
        self.spend(_STEPS_OF_A_SEARCH + instructions * chars // CHARS_PER_STEP)


# Steps that filtering a message may take: filters and messages are written by callers, and may be made for each other.
#
# A step is one value looked at for one condition, or one element of an array for one choice of the others: 0.1 to 0.5 µs.
# Each filter that needs steps has an equal share of those that are left, so that no subscriber's filter can use up what
# the others need. What cannot be decided within its share does not match.

#: Of one message: 40 ms. A message of a thousand order lines takes some 3,000 for a filter on three keys.
MESSAGE_STEPS_MAX: Final = 100_000
#: Of one filter, however many there are: enough for twenty order lines.
SHARE_MIN: Final = 200
#: To compare a text takes less than to copy it.
_CHARS_PER_COMPARISON: Final = 256


class MessageBudget(Budget):
    """The steps that are left for the current filter, and those for the message's other filters."""

    __slots__ = ("_others",)

    def __init__(self) -> None:
        super().__init__(MESSAGE_STEPS_MAX)
        self._others = 0

    @property
    def spent(self) -> int:
        """The steps taken."""
        return MESSAGE_STEPS_MAX - self.left - self._others

    def share(self, filters: int) -> None:
        """Give the next filter its share of what is left, where so many have yet to be evaluated."""
        remaining = self.left + self._others
        self.left = max(remaining // filters, SHARE_MIN)
        self._others = remaining - self.left


def weight(value: object) -> int:
    """The steps of looking at a value once: a long text takes more than one."""
    return 1 + len(value) // _CHARS_PER_COMPARISON if isinstance(value, str) else 1

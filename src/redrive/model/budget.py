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
        """Take steps.

        Raises:
            OverBudgetError: There are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise OverBudgetError

    def spend_chars(self, count: int) -> None:
        """Take the steps of putting a text of so many characters together, or of going through it.

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

"""The budget of a template: how much one rendering may do."""

from typing import Final

#: Characters that cost as much as a step: copying 64 takes less than one.
_CHARS_PER_STEP: Final = 64


class TemplateFailed(Exception):  # noqa: N818 - a refusal
    """A template that cannot be read or carried out; the text says why."""


class TooCostly(TemplateFailed):
    """A template that wants to do more than it may."""


class Budget:
    """The steps that are left; a node of a template costs one, and what it makes costs by its length.

    So no loop, no string that doubles itself and no nested list costs more than the budget: the memory of what a
    rendering makes is at most 64 characters for each step.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        """Allow so many steps."""
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Spend steps.

        Raises:
            TooCostly: There are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooCostly("The template takes too many steps")

    def text(self, made: str) -> str:
        """A text that was made or is gone through, paid for."""
        if len(made) >= _CHARS_PER_STEP:
            self.spend(len(made) // _CHARS_PER_STEP)
        return made

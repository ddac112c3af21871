"""The examination of a store: each check with what was measured, and what is wrong."""

from typing import NamedTuple


class Examined(NamedTuple):
    """The answer to one check.

    Attributes:
        check: Its name.
        fact: What was measured, for people.
        wrong: What is wrong, and what mends it; empty: nothing.
    """

    check: str
    fact: str = ""
    wrong: str = ""

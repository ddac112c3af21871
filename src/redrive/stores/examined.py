"""The examination of a store: each check with what was measured, and what is wrong."""

from typing import NamedTuple


class Examined(NamedTuple):
    """The answer to one check."""

    check: str  # Its name
    fact: str = ""  # What was measured, for people
    wrong: str = ""  # What is wrong, and what mends it; empty: nothing

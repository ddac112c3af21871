"""The examination of a store: each check with what was measured, and what is wrong."""

from typing import NamedTuple


class Examined(NamedTuple):
    """The answer to one check."""

    check: str  # Its name
    fact: str = ""  # Measured value, for people
    wrong: str = ""  # Problem and remedy; empty: there is no problem

"""Memory of what pure functions make of texts: of short ones alone, so that nobody can fill it with long ones."""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import TypeVar

R = TypeVar("R")


def remembered(entries_max: int, chars_max: int) -> Callable[[Callable[[str], R]], Callable[[str], R]]:
    """Remember what a function makes of texts of at most `chars_max`; what it makes of longer ones is made each time.

    A function that raises for long texts needs nothing but `lru_cache`, which remembers no exception.
    """

    def decorate(function: Callable[[str], R]) -> Callable[[str], R]:
        known = lru_cache(entries_max)(function)

        def call(text: str) -> R:
            return known(text) if len(text) <= chars_max else function(text)

        update_wrapper(call, function)
        return call

    return decorate

"""Memory of what pure functions make of texts: of many short ones and few long ones, so that no caller can fill it."""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def remembered(
    entries_max: int, chars_max: int, *, longer_max: int = 0
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember what a function makes of texts, by their length.

    A function that raises for long texts needs nothing but `lru_cache`, which remembers no exception.

    Args:
        entries_max: Of texts that have at most `chars_max` characters together.
        chars_max: Of the arguments that are text.
        longer_max: Entries of longer ones; with 0 what is made of those is made each time.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        short, longer = lru_cache(entries_max)(function), lru_cache(longer_max)(function)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            chars = sum(len(arg) for arg in args if isinstance(arg, (str, bytes)))
            cache = short if chars <= chars_max else longer
            return cache(*args, **kwargs)  # type: ignore[arg-type]  # as of `lru_cache`: what is given is hashable

        update_wrapper(call, function)
        return call

    return decorate

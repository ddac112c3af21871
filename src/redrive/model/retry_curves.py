"""Curves of the wait between a first and a last delay: four, each pinned at both ends.

No vendor publishes formulas. What is published is that the first retry of a backoff waits the minimum and the
last one the maximum, so "double until capped" is ruled out: it reaches the maximum too early or not at all.
These four are convex, never decrease and never rise above the straight line.
"""

import enum
from typing import Final


class Curve(enum.StrEnum):
    """The shape of a backoff between its first and its last delay."""

    LINEAR = "linear"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    EXPONENTIAL = "exponential"

    def at(self, retry: int, retries: int, first: float, last: float) -> float:
        """The delay before one retry of a backoff, in the unit of `first` and `last`.

        With t = (retry - 1) / (retries - 1): linear is m + (M - m)t, arithmetic m + (M - m)t², geometric
        m(M/m)^t, exponential m + (M - m)(2^(retry - 1) - 1)/(2^(retries - 1) - 1).

        Args:
            retry: Its number within the backoff, from 1.
            retries: How many retries the backoff has; with one, both ends coincide and `first` is the answer.
            first: m, the delay before the first retry; more than 0 for a geometric curve.
            last: M, the delay before the last one.
        """
        if retry <= 1:
            return first
        if retry >= retries:
            return last
        if self is Curve.GEOMETRIC:
            return float(first * (last / first) ** ((retry - 1) / (retries - 1)))
        return first + (last - first) * self._rise(retry, retries)

    def _rise(self, retry: int, retries: int) -> float:
        """The share of the way from the first to the last delay, 0 to 1."""
        t = (retry - 1) / (retries - 1)
        if self is Curve.LINEAR:
            return t
        if self is Curve.ARITHMETIC:
            return t * t
        return _doubling(retry, retries)


_HALF: Final = 0.5


def _doubling(retry: int, retries: int) -> float:
    # Numerator and denominator are both divided by 2^(retries - 1): 2.0 ** 1024 would overflow.
    floor: float = _HALF ** (retries - 1)
    return float((_HALF ** (retries - retry) - floor) / (1 - floor))

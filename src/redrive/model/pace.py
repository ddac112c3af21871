"""A pace: at most so many a second, evenly spread over all callers."""

from typing import NamedTuple

_SECOND_US = 1_000_000
_KEPT_MS = 60_000  # by so much nodes' clocks may differ


class Pace(NamedTuple):
    """A throttle: the time of the next delivery.

    There is no burst: `rate_max` a second are one every 1/`rate_max` s, and a pause is not made up for. Takers look
    at whole milliseconds; the part of one by which they come late is carried on, or 300 a second would become 250.
    """

    rate_max: int  # How many a second
    next_us: int  # The moment of the next (µs since the epoch); 0 before the first

    @staticmethod
    def over_us(now: int) -> int:
        """A pace whose next one might have been taken by then (µs) is, now (ms), as if there had never been one."""
        return (now - _KEPT_MS) * 1000

    @staticmethod
    def ends_at(next_us: int) -> int:
        """The moment (ms) from which a pace is as if there had never been one: the first whose `over_us` is `next_us`."""
        return -(-next_us // 1000) + _KEPT_MS

    def wait_until(self, now: int) -> int | None:
        """The moment (ms) to come back at, or None when one may be taken now."""
        return -(-self.next_us // 1000) if self.next_us > now * 1000 else None

    def allowed(self, now: int) -> int:
        """The number of deliveries that may be claimed now (ms)."""
        return max(0, (now * 1000 - self._due_us(now)) * self.rate_max // _SECOND_US + 1)

    def after(self, taken: int, now: int) -> int:
        """The next `next_us` after so many were claimed."""
        return self._due_us(now) + taken * _SECOND_US // self.rate_max

    def _due_us(self, now: int) -> int:
        return max(self.next_us, now * 1000 - 999)

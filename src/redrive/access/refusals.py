"""Refused credentials: counted by reason, and logged so that a guesser is seen and cannot fill a disk."""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import Clock

logger = logging.getLogger(__name__)

#: One line for each address in so much time; what comes between two is counted in the second.
QUIET_MS: Final = 60_000
#: Of those, at most so many lines in that time, 50 MB a day: somebody with IPv6 has more addresses than a disk has room.
ADDRESSES_MAX: Final = 256
_SHOWN_CHARS_MAX: Final = 64


@dataclass(slots=True)
class _Caller:
    """An address: since when it has been quiet, and what was not logged since."""

    logged_at: int
    unlogged: int = 0


class Refusals:
    """Counts of the requests that this node has refused since its start.

    Attributes:
        totals: By reason, in the words of the protocol that refused.
    """

    def __init__(self, clock: Clock) -> None:
        """Keep quiet by this clock: the system's, since guessers do not wait for a simulated one."""
        self.totals: Counter[str] = Counter()
        self._clock = clock
        self._callers: dict[str, _Caller] = {}
        self._unlogged = 0  # of addresses that there was no room for

    def add(self, reason: str, *, address: str, identity: str) -> None:
        """Count a refusal (`SignatureDoesNotMatch`, …), and log it unless its address was logged lately.

        `identity` is the key id that the request named: never a secret, a signature or a token.
        """
        self.totals[reason] += 1
        now = self._clock.now()
        caller = self._callers.get(address)
        if caller is not None and _is_quiet(caller, now):
            caller.unlogged += 1
            return
        if caller is None and not self._has_room(now):
            self._unlogged += 1
            return
        unlogged = self._unlogged if caller is None else caller.unlogged
        if caller is None:
            self._unlogged = 0
        self._callers[address] = _Caller(now)
        logger.warning(
            "authentication.refused address=%s identity=%r reason=%s unlogged=%d",
            address,
            identity[:_SHOWN_CHARS_MAX],
            reason,
            unlogged,
        )

    def _has_room(self, now: int) -> bool:
        """True if another address can be remembered; those that have been quiet for long enough are forgotten for it."""
        if len(self._callers) < ADDRESSES_MAX:
            return True
        self._unlogged += sum(
            caller.unlogged for caller in self._callers.values() if not _is_quiet(caller, now)
        )
        self._callers = {
            address: caller for address, caller in self._callers.items() if _is_quiet(caller, now)
        }
        return len(self._callers) < ADDRESSES_MAX


def _is_quiet(caller: _Caller, now: int) -> bool:
    return 0 <= now - caller.logged_at < QUIET_MS

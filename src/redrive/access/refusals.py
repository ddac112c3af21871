"""Refused credentials: counted by reason, and logged so that a guesser is seen and cannot fill a disk."""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import Clock

logger = logging.getLogger(__name__)

#: One line for each address in so much time; what comes between two is counted in the second.
QUIET_MS: Final = 60_000
_ADDRESSES_MAX: Final = 1024
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

    def add(self, reason: str, *, address: str, identity: str) -> None:
        """Count a refusal, and log it unless its address was logged lately.

        Args:
            reason: Why: `SignatureDoesNotMatch`, …
            address: Where the request came from.
            identity: Who it said it was from: a key id. Never a secret, a signature or a token.
        """
        self.totals[reason] += 1
        now = self._clock.now()
        caller = self._callers.get(address)
        if caller is not None and 0 <= now - caller.logged_at < QUIET_MS:
            caller.unlogged += 1
            return
        unlogged = 0 if caller is None else caller.unlogged
        if len(self._callers) >= _ADDRESSES_MAX:
            self._callers.clear()
        self._callers[address] = _Caller(now)
        logger.warning(
            "authentication.refused address=%s identity=%r reason=%s unlogged=%d",
            address,
            identity[:_SHOWN_CHARS_MAX],
            reason,
            unlogged,
        )

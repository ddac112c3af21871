"""Rounds: runs of functions in a row, each begun by log lines or by a destination of the one before it.

Two functions that are subscribed to each other's log groups, or are each other's destinations, would be invoked for
ever. AWS finds such loops by a count in the trace header, `Lineage`, and ends them after "approximately 16" runs. The
count carries a tag: whoever may invoke a function cannot keep its lines from those who are subscribed to them.
"""

import random
import re
from dataclasses import dataclass
from typing import Final

from redrive.access.secret import InstallationSecret

TRACE: Final = "x-amzn-trace-id"
ROUNDS_MAX: Final = 16
_PURPOSE: Final = "rounds of log events"  # tags of events that wait in a store depend on it
_LINEAGE: Final = re.compile(r"(?:^|;)Lineage=([0-9]{1,4}):([0-9a-f]{32})(?:;|$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rounds:
    """Counts rounds by trace headers."""

    secret: InstallationSecret  # Makes and knows tags
    rng: random.Random  # For the ids of traces

    def header(self, rounds: int) -> str:
        """The trace header of an invocation that is the last of so many rounds."""
        root = f"1-{self.rng.getrandbits(32):08x}-{self.rng.getrandbits(96):024x}"
        tag = self.secret.tag(_PURPOSE, str(rounds))
        return f"Root={root};Sampled=0;Lineage={rounds}:{tag}"

    def following(self, header: str | None) -> str:
        """The trace header for calls that follow from `header`: the same trace, one hop more."""
        next_header = self.header(self.of(header) + 1)
        if not header:
            return next_header
        others = [part for part in header.split(";") if part and not part.startswith("Lineage=")]
        lineage = next_header.rpartition(";")[2]
        return ";".join([*others, lineage])

    def of(self, header: str | None) -> int:
        """The rounds that a trace header counts; 0 if it comes from elsewhere."""
        match = None if header is None else _LINEAGE.search(header)
        if match is None or not self.secret.is_tag(_PURPOSE, match[1], match[2]):
            return 0
        return int(match[1])

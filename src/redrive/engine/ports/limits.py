"""Limits of stores: how much they do at once, and how long they remember; the same in every store."""

from typing import Final

from redrive.model.queue import DAY_MS

# One transaction takes at most so many calls. Past some hundreds the fsync is paid for (under 1 µs a call) and a
# longer group only makes its first caller wait.
GROUP_CALLS_MAX: Final = 512

# One claim removes no more expired and exhausted deliveries than this on its way (about 10 ms in SQLite, 50 ms in
# PostgreSQL): whoever asked is told to come again at once, and in between the other callers have their turn.
REMOVALS_MAX: Final = 1000

# Deliveries whose claims ran out first, among which a claim takes those that arrived first.
BACK_AMONG: Final = 100

# Of 100,015 attempts nobody reads all; the first say how it began and the last how it ended.
NOTES_FIRST: Final = 10
NOTES_LAST: Final = 90

NOTES_KEPT_MS: Final = 14 * DAY_MS  # as long as a dead letter may be kept

# Deliveries of a queue, by arrival, among which its oldest is looked for. The first is the oldest but for dead letters.
OLDEST_AMONG: Final = 100

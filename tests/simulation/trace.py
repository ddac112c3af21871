"""The trace of a run: lines for a reader, counts of events met, and a sum to compare two runs by."""

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from redrive.engine.ports import ClaimRequest, ClaimResult, Counts, MoveRequest, NewDelivery, Put, Resource

_UNTOLD = {"find", "get", "count", "last_seq", "peek", "flush"}  # they change nothing


class Trace:
    """The record of one run; lines are kept only where somebody will read them."""

    def __init__(self, elapsed_ms: Callable[[], int], *, lines: bool) -> None:
        self.lines: list[str] = []
        self.marks: Counter[str] = Counter()
        self.digest = 0
        self.calls = 0
        self._elapsed_ms = elapsed_ms
        self._keeps_lines = lines

    def mark(self, what: str, number: int = 1) -> None:
        """Something worth meeting was met."""
        self.marks[what] += number

    def note(self, who: str, *what: object) -> None:
        """Something happened."""
        self._sum(who)
        if self._keeps_lines:
            self._add(who, " ".join(map(str, what)))

    def call(self, node: str, verb: str, args: tuple[Any, ...], answer: object) -> None:
        """The store did something."""
        self.calls += 1
        self._sum(f"{node} {verb}")
        if self._keeps_lines and (verb not in _UNTOLD or isinstance(answer, Exception)):
            self._add(node, f"{verb} {_told(args)} → {_told(answer)}")

    def _add(self, who: str, what: str) -> None:
        self.lines.append(f"{self._elapsed_ms() / 1000:10.3f}  {who:12} {what}")

    def _sum(self, what: str) -> None:
        self.digest = zlib.crc32(f"{self._elapsed_ms()} {what}".encode(), self.digest)


def _told(value: object) -> str:
    """A value of the store's verbs, in few words."""
    match value:
        case NewDelivery():
            return f"{value.body!r} group={value.group_id} at={value.available_at}"
        case ClaimRequest():
            token = short(value.token)
            return (
                f"queue={value.queue_id} limit={value.limit} lease={value.lease_ms} {token} now={value.now}"
            )
        case ClaimResult():
            rows = [
                f"#{one.seq} {one.body!r} attempt={one.attempts} {short(one.token)}"
                for one in value.deliveries
            ]
            return f"{rows} dead={value.dead_lettered} expired={value.expired} next={value.next_at}"
        case MoveRequest():
            return f"queue={value.queue_id} limit={value.limit} seq<={value.seq_max} now={value.now}"
        case Resource() | Put() | Counts():
            return repr(tuple(value))
        case tuple() | list():
            return f"({', '.join(map(_told, value))})"
        case int() if value >= 1 << 50:
            return short(value)
    return str(value)


def short(token: int | None) -> str:
    """The end of a claim token: enough to tell it from the others of a run."""
    return "-" if token is None else f"…{token & 0xFFFF:04x}"

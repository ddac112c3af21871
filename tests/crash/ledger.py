"""The knowledge of callers of several nodes, in real time: what was acknowledged, is held, and was deleted."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.crash.journal import Violated


@dataclass(slots=True)
class Sent:
    """One message; its body is its name.

    Attributes:
        body: Unique in its queue.
        group: Its message group; empty of a standard queue.
        number: Its place in the group.
        acknowledged: Its send was answered.
        times: How often it was received.
        held_until: Until this moment (s, monotonic) nobody else may get it.
        deleted: Its deletion was answered; None: it was asked for, and nobody knows.
    """

    body: str
    group: str = ""
    number: int = 0
    acknowledged: bool = False
    times: int = 0
    held_until: float = 0.0
    deleted: bool | None = False


@dataclass
class Ledger:
    """The messages of one queue.

    Attributes:
        url: The queue's.
        entries: By body. No send is repeated but those that are deduplicated: each message is there once, or not at all.
        groups: The entries of each message group, in their order.
        duplicates: How often a message came again, which it may when its lease is over.
    """

    url: str
    entries: dict[str, Sent] = field(default_factory=dict)
    groups: dict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    duplicates: int = 0

    def sending(self, body: str, group: str = "") -> Sent:
        """A send is about to be made, for the first time."""
        entry = self.entries[body] = Sent(body, group, len(self.groups[group]))
        if group:
            self.groups[group].append(entry)
        return entry

    def received(self, bodies: Sequence[str], asked_at: float, lease_seconds: float) -> list[Sent]:
        """Messages were handed out to somebody who asked for them at that moment."""
        now = time.monotonic()
        entries = [self._handed_out(body, now) for body in bodies]
        for group in dict.fromkeys(entry.group for entry in entries if entry.group):
            self._check_order([entry for entry in entries if entry.group == group], now)
        for entry in entries:
            entry.times += 1
            entry.held_until = asked_at + lease_seconds
        return entries

    def _handed_out(self, body: str, now: float) -> Sent:
        entry = self.entries.get(body)
        if entry is None:
            raise Violated(f"{body!r} was never sent")
        if entry.deleted:
            raise Violated(f"{entry} was deleted, and came back")
        if now < entry.held_until and entry.deleted is False:
            raise Violated(f"{entry} came to a second receiver while the first holds it, at {now}")
        self.duplicates += entry.times > 0
        return entry

    def _check_order(self, entries: Sequence[Sent], now: float) -> None:
        group = self.groups[entries[0].group]
        numbers = [entry.number for entry in entries]
        if numbers != sorted(numbers):
            raise Violated(f"{numbers} of {entries[0].group} are out of order")
        passed = [entry for entry in group[: numbers[-1]] if entry.deleted is False]
        if missing := [entry for entry in passed if entry.number not in numbers]:
            raise Violated(f"{entries[-1]} came before {missing[:3]}")
        held = [entry for entry in group if now < entry.held_until and entry.deleted is False]
        if held:
            raise Violated(f"{entries[0]} came while {held[:3]} are in flight")

    def check_all_came(self) -> None:
        """Everything acknowledged was received and deleted; what was not acknowledged came or did not."""
        lost = [entry for entry in self.entries.values() if entry.acknowledged and not entry.times]
        if lost:
            raise Violated(f"{len(lost)} acknowledged messages of {self.url} were lost: {lost[:3]}")


def check_all_or_none(ledgers: Iterable[Ledger]) -> None:
    """A publication came to all queues, or to none."""
    came = [{body for body, entry in ledger.entries.items() if entry.times} for ledger in ledgers]
    torn = set.union(*came) - set.intersection(*came)
    if torn:
        raise Violated(f"{len(torn)} publications came to some queues only: {sorted(torn)[:5]}")


@dataclass
class Answers:
    """Times and failures of calls, over all callers.

    Attributes:
        silence: The longest time (s) in which nobody was answered.
        slowest: The longest time (s) from a call to its answer, beyond the wait that the caller asked for.
        failed: Calls without an answer that settles them, by what came instead.
    """

    silence: float = 0.0
    slowest: float = 0.0
    failed: Counter[str] = field(default_factory=Counter)
    _last: float = field(default_factory=time.monotonic)

    def answered(self, seconds: float) -> None:
        """A call had an answer, so long (s) after it was made."""
        now = time.monotonic()
        self.silence = max(self.silence, now - self._last)
        self.slowest = max(self.slowest, seconds)
        self._last = now

    def begin(self) -> None:
        """A round begins."""
        self.silence = self.slowest = 0.0
        self._last = time.monotonic()

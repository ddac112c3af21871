"""The clients' knowledge: acknowledged sends and deletes, the handles they hold, and calls in doubt.

A call that was asked and never answered may or may not have happened. `None` says so, in every field: neither True
nor False is known.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]


@dataclass(slots=True)
class Entry:
    """One message; its body is its name.

    Attributes:
        body: Unique in its queue.
        group: Its message group, on a FIFO queue.
        number: Its place in the group, from 0.
        batch: Which SendMessageBatch call sent it, if one did.
        delayed: Sent with a delay that never ends within a round's load.
        message_id: As acknowledged; None while the send is not.
        sequence: The sequence number acknowledged, on a FIFO queue.
        handle: The latest receipt handle.
        held: Whether the claim behind `handle` is in flight.
        deleted: Whether it was deleted.
    """

    body: str
    group: str = ""
    number: int = 0
    batch: int | None = None
    delayed: bool = False
    message_id: str | None = None
    sequence: str | None = None
    handle: str | None = None
    held: bool | None = False
    deleted: bool | None = False


class Violated(AssertionError):  # noqa: N818 - what became of a promise
    """The server broke a promise."""


@dataclass
class Journal:
    """The messages of one queue.

    Attributes:
        url: The queue's.
        entries: By body, in the order in which they were sent.
        groups: The entries of each message group.
        attempts: Receive attempt ids whose answers are not known.
    """

    url: str
    entries: dict[str, Entry] = field(default_factory=dict)
    groups: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    attempts: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def next_number(self) -> int:
        """A number not given before."""
        return next(self._numbers)

    def sending(self, entry: Entry) -> Entry:
        """A send is about to be asked for."""
        self.entries[entry.body] = entry
        if entry.group:
            entry.number = len(self.groups[entry.group])
            self.groups[entry.group].append(entry)
        return entry

    def sent(self, entry: Entry, answer: Message) -> None:
        """A send was acknowledged, for the first time or again."""
        if entry.message_id not in (None, answer["MessageId"]):
            raise Violated(f"{entry} was sent again as {answer['MessageId']}")
        if entry.sequence not in (None, answer.get("SequenceNumber")):
            raise Violated(f"{entry} was numbered again as {answer['SequenceNumber']}")
        entry.message_id = answer["MessageId"]
        entry.sequence = answer.get("SequenceNumber")

    def received(self, messages: list[Message]) -> list[Entry]:
        """Messages were handed out: each may be, and FIFO ones in their order."""
        claimed = [self._claimed(message) for message in messages]
        for group in dict.fromkeys(entry.group for entry in claimed if entry.group):
            self._check_order([entry for entry in claimed if entry.group == group])
        for entry, message in zip(claimed, messages, strict=True):
            entry.handle, entry.held = message["ReceiptHandle"], True
        return claimed

    def _claimed(self, message: Message) -> Entry:
        entry = self.entries.get(message["Body"])
        if entry is None:
            raise Violated(f"{message['Body']!r} was never sent")
        if entry.message_id not in (None, message["MessageId"]):
            raise Violated(f"{entry} came as {message['MessageId']}")
        if entry.deleted:
            raise Violated(f"{entry} was deleted and came back")
        if entry.held:
            raise Violated(f"{entry} is in flight and came again")
        if entry.delayed:
            raise Violated(f"{entry} came before its time")
        return entry

    def _check_order(self, claimed: list[Entry]) -> None:
        group = self.groups[claimed[0].group]
        in_flight = [entry for entry in group if entry.held and entry.deleted is False]
        if in_flight:
            raise Violated(f"{claimed} came while {in_flight} are in flight")
        numbers = [entry.number for entry in claimed]
        if numbers != sorted(numbers):
            raise Violated(f"{claimed} are out of order")
        passed = [entry for entry in group[: numbers[-1]] if entry.message_id and entry.deleted is False]
        missing = [entry for entry in passed if entry.number not in numbers]
        if missing:
            raise Violated(f"{claimed} came before {missing}")

    def given_back(self, entry: Entry, handle: str | None) -> None:
        """A claim was ended by making its message visible; somebody else may have claimed it since."""
        if entry.handle == handle:
            entry.held = False

"""Invocations as a function's log tells of them: when they ended, how long they took, and whether they failed."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from redrive.model.log import LogEvent

_REPORT: Final = re.compile(
    r"REPORT RequestId: (?P<id>\S+)\s+Duration: (?P<duration>[\d.]+) ms\s+Billed Duration: \d+ ms\s+"
    r"Memory Size: (?P<size>\d+) MB\s+Max Memory Used: (?P<used>\d+) MB(?:\s+Init Duration: (?P<init>[\d.]+) ms)?"
)
_START: Final = re.compile(r"START RequestId: (\S+)")
_TROUBLE: Final = ("Task timed out", "[ERROR]", "Error:", "Traceback")


class Invocation(NamedTuple):
    """One invocation that has ended."""

    at: int  # When it ended (ms)
    id: str  # Request id
    duration_ms: float  # How long it ran
    memory_mb: int  # The most that it held
    init_ms: float | None  # Start time of its environment; None: it was running already
    trouble: str  # The log line of an error; empty: none


def invocations(events: Iterable[LogEvent], most: int) -> list[Invocation]:
    """The invocations among events of a function's group, which come latest first, as these are; `most` at most.

    An event that is tried again has one for each try, all with the id of its request.
    """
    calls: list[Invocation] = []
    running: dict[int, int] = {}  # by stream, since an environment runs one at a time: the index in `calls`
    for event in events:
        report = _REPORT.match(event.message)
        if report is not None:
            if len(calls) == most:
                break
            init = report["init"]
            running[event.stream_id] = len(calls)
            calls.append(
                Invocation(
                    event.at,
                    report["id"],
                    float(report["duration"]),
                    int(report["used"]),
                    None if init is None else float(init),
                    "",
                )
            )
        elif _START.match(event.message):
            running.pop(event.stream_id, None)
        elif any(mark in event.message for mark in _TROUBLE) and event.stream_id in running:
            at = running[event.stream_id]
            calls[at] = calls[at]._replace(trouble=event.message)
    return calls

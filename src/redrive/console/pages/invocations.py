"""Invocations of a function: those that its log tells of, and a test of it with an event and its answer."""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from redrive.aws.wire.errors import AwsError
from redrive.console import json_text
from redrive.console.charts import figure
from redrive.console.typed_messages import SAMPLES, sample_text
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Unusable, Visit
from redrive.console.words import span
from redrive.model.log import LogEvent

_REPORT: Final = re.compile(
    r"REPORT RequestId: (?P<id>\S+)\s+Duration: (?P<duration>[\d.]+) ms\s+Billed Duration: \d+ ms\s+"
    r"Memory Size: (?P<size>\d+) MB\s+Max Memory Used: (?P<used>\d+) MB(?:\s+Init Duration: (?P<init>[\d.]+) ms)?"
)
_START: Final = re.compile(r"START RequestId: (\S+)")
_TROUBLE: Final = ("Task timed out", "[ERROR]", "Error:", "Traceback")
_KINDS: Final = {"wait": "RequestResponse", "event": "Event"}
_REQUEST: Final = re.compile(r"RequestId: ([\w-]{36})")
_NOT_FOUND: Final = "ResourceNotFoundException"


class InvocationCall(NamedTuple):
    """One invocation that has ended."""

    at: int  # When it ended (ms)
    id: str  # Request id
    duration_ms: float  # How long it ran
    memory_mb: int  # The most that it held
    init_ms: float | None  # Start time of its environment; None: it was running already
    trouble: str  # The log line of an error; empty: none


def invocations(events: Iterable[LogEvent], most: int) -> list[InvocationCall]:
    """The invocations among events of a function's group, which come latest first, as these are; `most` at most.

    An event that is tried again has one for each try, all with the id of its request.
    """
    calls: list[InvocationCall] = []
    running: dict[int, int] = {}  # by stream, since an environment runs one at a time: the index in `calls`
    for event in events:
        report = _REPORT.match(event.message)
        if report is not None:
            if len(calls) == most:
                break
            init = report["init"]
            running[event.stream_id] = len(calls)
            calls.append(
                InvocationCall(
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


# ---- events: their attempts after each other -------------------------------------------------------------------

_WAIT_WIDTH: Final = 14.0  # between two attempts (percent), however long
_BAR_WIDTH_MIN: Final = 0.6  # percent


class AttemptBar(NamedTuple):
    """A part of an attempt, drawn."""

    colour: int  # 4: its environment starts; 2: the handler succeeds; 3: it fails
    x: float  # Percent
    width: float  # Percent
    text: str


class EventRow(NamedTuple):
    """One event with all its attempts that are known, the first one first."""

    attempts: Sequence[InvocationCall]
    bars: Sequence[AttemptBar]
    waits: Sequence[tuple[float, float, str]]  # Between attempts: from, to (percent), and how long

    @property
    def last(self) -> InvocationCall:
        """The attempt that says how the event fares."""
        return self.attempts[-1]

    @property
    def text(self) -> str:
        """The attempts in words."""
        parts = [bar.text for bar in self.bars] + [f"{wait} between two attempts" for *_, wait in self.waits]
        return "; ".join(parts)


def event_rows(calls: Sequence[InvocationCall]) -> list[EventRow]:
    """Events by their latest attempt; all attempts are drawn to one scale, and the waits between them all alike."""
    by_id: dict[str, list[InvocationCall]] = {}
    for each in calls:
        by_id.setdefault(each.id, []).insert(0, each)
    longest = max((sum(_ran_ms(each) for each in tries) for tries in by_id.values()), default=0)
    waits = max((len(tries) - 1 for tries in by_id.values()), default=0)
    scale = max(10.0, 100 - waits * _WAIT_WIDTH) / max(1.0, longest)
    return [_event_row(tries, scale) for tries in by_id.values()]


def _ran_ms(call: InvocationCall) -> float:
    return (call.init_ms or 0) + call.duration_ms


def _event_row(tries: Sequence[InvocationCall], scale: float) -> EventRow:
    """The attempts of an event as bars with waits between them, drawn to a scale (widths per ms)."""
    bars: list[AttemptBar] = []
    waits = []
    x = 0.0
    for number, each in enumerate(tries):
        if number:
            wait_ms = max(0, round(each.at - _ran_ms(each) - tries[number - 1].at))
            waits.append((round(x, 2), round(x + _WAIT_WIDTH, 2), span(wait_ms)))
            x += _WAIT_WIDTH
        # The first of each is its colour: see `AttemptBar`.
        parts = [(4, each.init_ms, "cold start")] if each.init_ms is not None else []
        parts.append((3, each.duration_ms, "failed") if each.trouble else (2, each.duration_ms, "handler"))
        for colour, ms, words in parts:
            width = max(_BAR_WIDTH_MIN, ms * scale)
            bars.append(AttemptBar(colour, round(x, 2), round(width, 2), f"{words} {figure(ms)} ms"))
            x += width
    return EventRow(tries, bars, waits)


async def form(visit: Visit) -> Page | Redirect:
    """A form for an event, which a saved view of this page carries; or on to saving one."""
    payload = visit.parameter("payload") or sample_text(visit.parameter("sample")) or "{}"
    if visit.parameter("save"):
        here = visit.link("functions", visit.args["function"], "invoke", payload=payload)
        return Redirect(visit.link("views", to=here.removeprefix(visit.base)))
    return await _page(visit, {"payload": payload})


async def invoke(visit: Visit) -> Page:
    """Invoke the function by the service's own rules, waiting for it or not."""
    payload = visit.parameter("payload").replace("\r\n", "\n")
    kind = _KINDS.get(visit.parameter("kind", "wait"))
    if kind is None:
        raise Unusable("An invocation waits for the answer, or is queued as an event.")
    typed = {"payload": payload, "kind": visit.parameter("kind", "wait")}
    params: dict[str, Any] = {
        "FunctionName": visit.args["function"],
        "InvocationType": kind,
        "Payload": payload.encode("utf-8", "backslashreplace"),
    }
    if kind == "RequestResponse":
        params["LogType"] = "Tail"
    began = visit.engine.clock.now()
    try:
        answer = await visit.call("lambda", "Invoke", params)
    except AwsError as error:
        return await _page(visit, {**typed, "notice": error.message}, REFUSED)
    if kind == "Event":
        return await _page(visit, {**typed, "accepted": True}, did="An event is handed in")
    did = "It failed" if answer.get("FunctionError") else "It succeeded"
    return await _page(
        visit, {**typed, "answer": _answer(visit, answer, visit.engine.clock.now() - began)}, did=did
    )


async def _page(visit: Visit, typed: dict[str, Any], status: int = 200, did: str = "") -> Page:
    """The form for an invocation of the function in the address; `typed`: its values, or the answer."""
    name = visit.args["function"]
    try:
        await visit.call("lambda", "GetFunctionConfiguration", {"FunctionName": name})
    except AwsError as error:
        if error.code != _NOT_FOUND:
            raise
        raise Missing(error.message) from None
    nothing = {"notice": "", "kind": "wait", "accepted": False, "answer": None}
    values = {**nothing, **typed, "name": name, "back": visit.link("functions", name)}
    values["samples"] = [(each, visit.link("functions", name, "invoke", sample=each)) for each in SAMPLES]
    return Page("invoke.html", values, status, did=did)


def _answer(visit: Visit, answer: Any, took_ms: int) -> dict[str, Any]:
    """The answer to an invocation; its payload and log only where bodies are shown."""
    payload = bytes(answer.get("Payload") or b"").decode("utf-8", "replace")
    visible = visit.bodies_shown
    log = _log(answer.get("LogResult", ""))
    request = _REQUEST.search(log)
    return {
        "took_ms": took_ms,
        "request_id": "" if request is None else request[1],
        "failed": answer.get("FunctionError", ""),
        "version": answer.get("ExecutedVersion", ""),
        "payload": (json_text.pretty(payload) or payload) if visible else None,
        "log": log if visible else None,
    }


def _log(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except binascii.Error:
        return ""

"""A test invocation: an event is given, and the answer shown with the end of the log."""

import base64
import binascii
import re
from typing import Any, Final

from redrive.aws.wire.errors import AwsError
from redrive.console import json_text
from redrive.console.typed_messages import SAMPLES, sample_text
from redrive.console.visit import Missing, Page, Unusable, Visit

_KINDS: Final = {"wait": "RequestResponse", "event": "Event"}
_REFUSED: Final = 400
_REQUEST: Final = re.compile(r"RequestId: ([\w-]{36})")
_NOT_FOUND: Final = "ResourceNotFoundException"


async def form(visit: Visit) -> Page:
    """A form for an event."""
    return await _page(visit, {"payload": sample_text(visit.parameter("sample")) or "{}"})


async def invoke(visit: Visit) -> Page:
    """Invoke the function by the service's own rules, waiting for it or not."""
    payload = visit.parameter("payload").replace("\r\n", "\n")
    kind = _KINDS.get(visit.parameter("kind", "wait"))
    if kind is None:
        raise Unusable("An invocation is waited for, or is an event.")
    typed = {"payload": payload, "kind": visit.parameter("kind", "wait")}
    params: dict[str, Any] = {
        "FunctionName": visit.args["function"],
        "InvocationType": kind,
        "Payload": payload.encode("utf-8", "backslashreplace"),
    }
    if kind == "RequestResponse":
        params["LogType"] = "Tail"
    begun = visit.engine.clock.now()
    try:
        answer = await visit.call("lambda", "Invoke", params)
    except AwsError as error:
        return await _page(visit, {**typed, "notice": error.message}, _REFUSED)
    if kind == "Event":
        return await _page(visit, {**typed, "accepted": True}, did="An event is handed in")
    did = "It failed" if answer.get("FunctionError") else "It succeeded"
    return await _page(
        visit, {**typed, "answer": _answer(visit, answer, visit.engine.clock.now() - begun)}, did=did
    )


async def _page(visit: Visit, typed: dict[str, Any], status: int = 200, did: str = "") -> Page:
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

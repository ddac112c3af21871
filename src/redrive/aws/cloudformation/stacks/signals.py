"""Signals to resources that wait: by SignalResource, or by the address that a resource gave away."""

from typing import Any, Final

import orjson

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.finding import standing_stack
from redrive.aws.cloudformation.documents.history import Signal
from redrive.aws.cloudformation.documents.names import PATH
from redrive.aws.cloudformation.documents.records import RESOURCE, resource_key
from redrive.aws.cloudformation.documents.words import SIGNALS, StackSignals
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.http import Request, Response

ANSWER_BYTES_MAX: Final = 4096


class SignalOperations:
    """Takes signals."""

    def __init__(self, engine: Engine, words: StackSignals) -> None:
        self._engine = engine
        self._words = words
        self._routes = {("PUT", PATH): self._take}

    async def signal_resource(self, call: Call, params: Structure) -> Structure:
        stack = await standing_stack(self._engine, call, params["StackName"])
        logical_id = params["LogicalResourceId"]
        resource = await self._engine.resources.documents.get(RESOURCE, resource_key(stack, logical_id))
        if resource is None:
            raise invalid(f"Resource {logical_id} does not exist for stack {stack.name.name}")
        if not resource.status.endswith("_IN_PROGRESS"):
            raise invalid(f"Resource {logical_id} is in {resource.status} state and cannot be signaled")
        signal = Signal(params["UniqueId"], params["Status"])
        await self._words.tell(stack.key, logical_id, SIGNALS, signal)
        return {}

    async def answer(self, request: Request) -> Response:
        """Take what is put to an address that was given away: the address itself is the permission."""
        take = self._routes.get((request.method, PATH))
        return Response(405, b"", "text/plain") if take is None else await take(request)

    async def _take(self, request: Request) -> Response:
        waiting_place = self._words.place_of(request.path)
        if waiting_place is None:
            return Response(403, b"", "text/plain")
        if len(request.body) > ANSWER_BYTES_MAX:
            return Response(400, b"", "text/plain")
        signal = _read(request.body)
        if signal is None:
            return Response(400, b"", "text/plain")
        status = "SUCCESS" if signal.get("Status") == "SUCCESS" else "FAILURE"
        unique = str(signal.get("UniqueId") or signal.get("RequestId") or "answer")
        await self._words.tell(*waiting_place, Signal(unique[:256], status, signal))
        return Response(200, b"", "text/plain")


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

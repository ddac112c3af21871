"""Auditing: what a request to Redrive's own routes changed, as an entry of the trail."""

from typing import Any, Final

import orjson

from redrive.engine.ports import Clock
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.server import endpoints, redriving
from redrive.server.owned import Audit
from redrive.telemetry.audit import AuditEntry, AuditTrail

#: By the path: the action, in the words of the console.
_ACTIONS: Final = {
    redriving.LETTERS: "redrive",
    redriving.TASKS: "change-redrive",
    redriving.EDITS: "edit",
    redriving.ASIDE: "set-aside",
    redriving.BACK: "bring-back",
    endpoints.PATH: "change-subscription",
}
# No trail has a message's text; the others say what it is on.
_NOT_RECORDED: Final = ("body", "queue", "topic", "id")
_RECORDED_OF_ANSWER: Final = ("moved", "to_move", "task", "closed")


def audit_of(trail: AuditTrail, clock: Clock) -> Audit:
    """The function that notes what requests changed."""

    async def note(owner: ResourceName, who: str, request: Request, response: Response) -> None:
        """Record a change that was asked for at a control route, by its request and answer."""
        body: dict[str, Any] = orjson.loads(request.body)
        answer: dict[str, Any] = orjson.loads(response.body)
        on = "/".join(
            str(body[name]) for name in ("queue", "topic", "id") if body.get(name) not in (None, "")
        )
        fields = {name: value for name, value in body.items() if name not in _NOT_RECORDED}
        fields |= {
            name: answer[name] for name in _RECORDED_OF_ANSWER if isinstance(answer.get(name), str | int)
        }
        what = ", ".join(f"{name} {_text(value)}" for name, value in fields.items())
        action = _ACTIONS.get(request.path, request.path)
        await trail.record(
            owner, AuditEntry(clock.now(), who, action, on, what, "control", request.client_host)
        )

    return note


def _text(value: object) -> str:
    return f"{len(value):,}" if isinstance(value, list) else str(value)

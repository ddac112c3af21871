"""The backlog of actions: what an alarm's transition leads to enters it in the transaction that is the transition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from redrive.aws.cloudwatch.alarms.change import StateChange
from redrive.aws.cloudwatch.alarms.event import event
from redrive.aws.cloudwatch.alarms.notification import publication
from redrive.aws.cloudwatch.alarms.records import DIALECT, HISTORY, TO_ACTION, HistoryItem, history_key
from redrive.aws.gateway.owed_calls import backlog_in
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.topic import Subscription, Topic

ACTIONS: Final = "actions"  # the subscription that is the backlog
_SERVICES: Final = 2  # the place of the service in an ARN


@dataclass(frozen=True, slots=True)
class Action:
    """One action that is owed."""

    alarm: str  # The alarm's name
    kind: str  # METRIC or COMPOSITE
    arn: str  # ARN that is called
    params: Mapping[str, Any]  # Parameters of `Publish`, or the event for a function
    history: str  # The key of the item that tells how it went
    at: int  # When the alarm came to its state (ms)

    @property
    def service(self) -> str:
        """The service that is called: `sns` or `lambda`."""
        return service_of(self.arn)

    def pack(self) -> str:
        """The action as the body of a delivery."""
        return orjson.dumps(self).decode()

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what `pack` wrote."""
        return cls(**orjson.loads(body))


def service_of(arn: str) -> str:
    """The service of an action's ARN."""
    return arn.split(":")[_SERVICES]


def action_item(action: Action, error: str | None) -> HistoryItem:
    """The history of an action: that it was carried out, or why not."""
    data = {
        "actionState": "Succeeded" if error is None else "Failed",
        "stateUpdateTimestamp": action.at,
        "notificationResource": action.arn,
        "publishedMessage": action.params.get("Message") if error is None else None,
        "error": error,
    }
    done = "Successfully executed" if error is None else "Failed to execute"
    text = orjson.dumps(data).decode()
    return HistoryItem(action.alarm, action.kind, action.at, "Action", f"{done} action {action.arn}", text)


async def owe_in(draft: Draft, engine: Engine, change: StateChange) -> None:
    """Let the actions of a transition enter the backlog; those that nobody here can carry out fail at once."""
    alarm = change.alarm
    arns: Sequence[str] = alarm.actions(alarm.state.value)
    backlog: tuple[Topic, Subscription] | None = None
    for position, arn in enumerate(arns, 1):
        key = history_key(alarm.name, alarm.state.updated_at, alarm.changes, position)
        action = Action(alarm.name.name, alarm.kind, arn, _params(change, arn), key, alarm.state.updated_at)
        if action.service not in ("sns", "lambda"):
            draft.put(
                HISTORY, key, action_item(action, f"Redrive does not carry out actions of {action.service}")
            )
            continue
        backlog = backlog or await backlog_in(
            draft, engine, alarm.name.account, alarm.name.region, DIALECT, ACTIONS, TO_ACTION
        )
        engine.messages.publish_alone_in(draft, *backlog, action.pack(), b"")


def _params(change: StateChange, arn: str) -> Mapping[str, Any]:
    return publication(change, arn) if service_of(arn) == "sns" else event(change)

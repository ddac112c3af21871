"""Actions: owed in the transaction that is an alarm's transition, and delivered from there.

Delivered as the service that AWS has for it, held to the policies of what is called.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from redrive.access.principals import Principal, service_acting_for
from redrive.aws.cloudwatch.alarms.notification import event, publication
from redrive.aws.cloudwatch.alarms.records import (
    DIALECT,
    HISTORY,
    TO_ACTION,
    HistoryItem,
    StateChange,
    arn_of,
    history_key,
)
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.owed_calls import account_and_region_of, backlog_in, make_call
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Documents, Draft
from redrive.model.attempt import Attempt
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

ACTIONS: Final = "actions"  # the subscription that is the backlog
_SERVICES: Final = 2  # the place of the service in an ARN
logger = logging.getLogger(__name__)
_DENIED: Final = frozenset({"AuthorizationError", "AccessDeniedException", "AuthorizationErrorException"})
_OPERATIONS: Final = {"sns": "SNS:Publish", "lambda": "lambda:InvokeFunction"}
_KEY_DENIED: Final = "CloudWatch Alarms does not have authorization to access the SNS topic encryption key."


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
    result = "Successfully executed" if error is None else "Failed to execute"
    text = orjson.dumps(data).decode()
    return HistoryItem(action.alarm, action.kind, action.at, "Action", f"{result} action {action.arn}", text)


async def owe_actions_in(draft: Draft, engine: Engine, change: StateChange) -> None:
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
        engine.messages.publish_alone_in(draft, *backlog, action.pack(), headers=b"")


def _params(change: StateChange, arn: str) -> Mapping[str, Any]:
    return publication(change, arn) if service_of(arn) == "sns" else event(change)


class ActionEndpoint:
    """Publishes to topics and invokes functions (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, calls: InnerCalls, documents: Documents, *, open_functions: bool) -> None:
        self._calls = calls
        self._documents = documents
        # Whether a function without a policy is invoked for alarms of its own account. Amazon's is not: its
        # policy has to let `lambda.alarms.cloudwatch.amazonaws.com` in
        self._open_functions = open_functions

    async def push(self, push_request: PushRequest) -> Attempt:
        """Carry an action out, and write its result into the alarm's history, over that of an earlier attempt."""
        action = Action.unpack(push_request.body)
        name = ResourceName(*account_and_region_of(push_request), action.alarm)
        error, attempt = await make_call(
            self._call(action, name), action.service, lambda refused: _text(refused, action, name)
        )
        if error is not None:
            logger.warning("alarm.action_failed alarm=%s action=%s error=%s", name.key, action.arn, error)
        item = action_item(action, error)
        try:
            await self._documents.update_or_create(HISTORY, action.history, item, lambda _: item)
        except StoreUnavailable:  # the action is done all the same, and to repeat it would be worse
            logger.warning("alarm.history_lost alarm=%s action=%s", name.key, action.arn)
        return attempt

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def _call(self, action: Action, name: ResourceName) -> None:
        """Publish an action to its topic, or invoke its function with it."""
        if action.service == "sns":
            await self._calls.call(
                "sns", "Publish", dict(action.params), self._caller("cloudwatch", name), name.region
            )
            return
        params = {
            "FunctionName": action.arn,
            "InvocationType": "Event",
            "Payload": orjson.dumps(action.params),
        }
        caller = self._caller("lambda.alarms.cloudwatch", name)
        await self._calls.call("lambda", "Invoke", params, caller, name.region)

    def _caller(self, service: str, name: ResourceName) -> Principal:
        """The service that acts; a topic's default policy admits services that act for its owner."""
        for_owner = service == "cloudwatch" or self._open_functions
        return service_acting_for(service, name.region, arn_of(name), name.account, for_owner=for_owner)


def _text(refusal: AwsError, action: Action, name: ResourceName) -> str:
    """The refusal as an alarm's history words it (recorded)."""
    if refusal.code in _DENIED:
        operation = _OPERATIONS[action.service]
        return (
            f"Resource: {arn_of(name)} is not authorized to perform: {operation} on resource: {action.arn} because no"
            f" resource-based policy allows the {operation} action"
        )
    if refusal.code.startswith("KMSAccessDenied"):
        return _KEY_DENIED
    return f"{refusal.message} ({refusal.code})"

"""Delivering actions: as the service that AWS has for it, held to the policies of what is called."""

import logging
from typing import Final

import orjson

from redrive.access.principals import Principal, acting_for
from redrive.aws.cloudwatch.alarms.backlog import Action, action_item
from redrive.aws.cloudwatch.alarms.records import HISTORY, arn_of
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.owed_calls import asked_at, attempted
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Documents
from redrive.model.attempt import Attempt
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

_DENIED: Final = frozenset({"AuthorizationError", "AccessDeniedException", "AuthorizationErrorException"})
_OPERATIONS: Final = {"sns": "SNS:Publish", "lambda": "lambda:InvokeFunction"}
_KEY_DENIED: Final = "CloudWatch Alarms does not have authorization to access the SNS topic encryption key."


class ActionEndpoint:
    """Publishes to topics and invokes functions (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, calls: InnerCalls, documents: Documents, *, open_functions: bool) -> None:
        """Call by these calls.

        Args:
            calls: Calls of this server's services.
            documents: Where history is.
            open_functions: Whether a function without a policy is invoked for alarms of its own account. Amazon's is
                not: its policy has to let `lambda.alarms.cloudwatch.amazonaws.com` in.
        """
        self._calls = calls
        self._documents = documents
        self._open_functions = open_functions

    async def push(self, push_request: PushRequest) -> Attempt:
        """Carry an action out, and write down how it went: what is tried again, each time anew."""
        action = Action.unpack(push_request.body)
        name = ResourceName(*asked_at(push_request), action.alarm)
        error, attempt = await attempted(
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
        return acting_for(service, name.region, arn_of(name), name.account, for_owner=for_owner)


def _text(refused: AwsError, action: Action, name: ResourceName) -> str:
    """The refusal as an alarm's history words it (recorded)."""
    if refused.code in _DENIED:
        operation = _OPERATIONS[action.service]
        return (
            f"Resource: {arn_of(name)} is not authorized to perform: {operation} on resource: {action.arn} because no"
            f" resource-based policy allows the {operation} action"
        )
    if refused.code.startswith("KMSAccessDenied"):
        return _KEY_DENIED
    return f"{refused.message} ({refused.code})"

"""Delivering actions: as the service that AWS has for it, held to the policies of what is called."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import orjson

from redrive.access.principals import Principal, acting_for
from redrive.engine.facts import Attempted
from redrive.engine.ports import FollowUp, Plan, PushRequest, SubscriptionContext, whole_envelope
from redrive.engine.resources import Documents
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.retry_plans import MANAGED_ENDPOINT
from redrive.model.topic import Subscription, Topic
from redrive.protocols.aws.cloudwatch.alarms import backlog
from redrive.protocols.aws.cloudwatch.alarms.backlog import Action, action_item
from redrive.protocols.aws.cloudwatch.alarms.records import HISTORY, arn_of
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.wire.errors import AwsError

logger = logging.getLogger(__name__)

#: A topic or a function that is in trouble is tried for a day; nobody wants to hear of older alarms.
_PLAN: Final = Plan(replace(MANAGED_ENDPOINT, expires_after_ms=DAY_MS), concurrency_max=8, lease_ms=60_000)
_TIMEOUT_MS: Final = 15_000
_ACCOUNT: Final = "account"
_REGION: Final = "region"
_DENIED: Final = frozenset({"AuthorizationError", "AccessDeniedException", "AuthorizationErrorException"})
_OPERATIONS: Final = {"sns": "SNS:Publish", "lambda": "lambda:InvokeFunction"}
_KEY_DENIED: Final = "CloudWatch Alarms does not have authorization to access the SNS topic encryption key."


class AlarmDeliveryProfile:
    """`DeliveryProfile` of actions."""

    name: Final = backlog.DIALECT

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`."""
        return SubscriptionContext(topic, subscription, self, plan=_PLAN, headers=whole_envelope)

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """See `DeliveryProfile.refusal`; never asked, since nothing here goes to a queue by itself."""
        raise NotImplementedError

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """See `DeliveryProfile.render`."""
        (delivery,) = deliveries
        account, region = context.topic.name.account, context.topic.name.region.partition(":")[0]
        headers = {_ACCOUNT: account, _REGION: region}
        return PushRequest("", delivery.body.encode(), "application/json", headers, _TIMEOUT_MS)

    def follow_ups(self, _fact: Attempted) -> Sequence[FollowUp]:
        """See `DeliveryProfile.follow_ups`: none; how an action went stands in the alarm's history."""
        return ()


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
        name = ResourceName(push_request.headers[_ACCOUNT], push_request.headers[_REGION], action.alarm)
        error, attempt = await self._carried_out(action, name)
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

    async def _carried_out(self, action: Action, name: ResourceName) -> tuple[str | None, Attempt]:
        """The reason of a failure, None: it did not fail; and the attempt."""
        try:
            await self._call(action, name)
        except StoreUnavailable as away:
            return str(away), _failure(Reason.SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE, str(away))
        except KeyError:
            text = f"This server does not offer {action.service}"
            return text, _failure(Reason.MISSING, HTTPStatus.NOT_FOUND, text)
        except AwsError as refused:
            reason = Reason.CLIENT_ERROR if refused.sender else Reason.SERVER_ERROR
            text = _text(refused, action, name)
            return text, _failure(reason, refused.status, text)
        return None, Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "", 0)

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
        """The service that acts; a topic's default policy lets in whoever acts for its owner."""
        for_owner = service == "cloudwatch" or self._open_functions
        return acting_for(service, name.region, arn_of(name), name.account, for_owner=for_owner)


def _failure(reason: Reason, status: int, text: str) -> Attempt:
    again = reason is Reason.SERVER_ERROR
    return Attempt(AttemptResult.FAILED if again else AttemptResult.REFUSED, reason, status, text[:1024], 0)


def _text(refused: AwsError, action: Action, name: ResourceName) -> str:
    """The refusal as an alarm's history words it (recorded)."""
    if refused.code in _DENIED:
        asked = _OPERATIONS[action.service]
        return (
            f"Resource: {arn_of(name)} is not authorized to perform: {asked} on resource: {action.arn} because no"
            f" resource-based policy allows the {asked} action"
        )
    if refused.code.startswith("KMSAccessDenied"):
        return _KEY_DENIED
    return f"{refused.message} ({refused.code})"

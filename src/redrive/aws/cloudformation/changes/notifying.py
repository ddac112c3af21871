"""Events of stacks, and the topics that they are published to: a notification is owed with the write of its event."""

import itertools
import logging
from collections.abc import Sequence
from typing import Final

import orjson

from redrive.aws.cloudformation.changes.sources import Services
from redrive.aws.cloudformation.documents.history import DIALECT, EVENT, TO_TOPIC, StackEvent
from redrive.aws.cloudformation.documents.records import STACK, Stack
from redrive.aws.gateway.owed_calls import attempted, backlog_in
from redrive.aws.wire.timestamps import to_iso8601
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Documents, Draft
from redrive.model.attempt import Attempt

logger = logging.getLogger(__name__)

_NOTIFICATIONS: Final = "notifications"  # the subscription that is the backlog
_SUBJECT: Final = "AWS CloudFormation Notification"
_REGION: Final = 3  # the place of the region in an ARN
_numbers = itertools.count()  # events of a millisecond stay in their order


async def put_events(draft: Draft, engine: Engine, stack: Stack, events: Sequence[StackEvent]) -> None:
    """Write events behind those that there are, and owe them to the stack's topics.

    Args:
        draft: What is written with them.
        engine: What drains the backlog.
        stack: Whose they are.
        events: In the order in which they happened.
    """
    for event in events:
        draft.put(EVENT, f"{stack.key}/{event.at:015d}-{next(_numbers):09d}-{event.id[-4:]}", event)
    topics = stack.aim.topics
    if not topics or not events:
        return
    backlog = await backlog_in(
        draft, engine, stack.name.account, stack.name.region, DIALECT, _NOTIFICATIONS, TO_TOPIC
    )
    for event in events:
        for topic in topics:
            owed = {"stack": stack.key, "topic": topic, "message": message_of(stack, event)}
            engine.messages.publish_alone_in(draft, *backlog, orjson.dumps(owed).decode(), b"")


def message_of(stack: Stack, event: StackEvent) -> str:
    """The message of an event: a line for each of its members, as CloudFormation writes them."""
    principal = stack.session.unique_id if stack.session is not None else ""
    members = {
        "StackId": stack.arn,
        "Timestamp": to_iso8601(event.at),
        "EventId": event.id,
        "LogicalResourceId": event.logical_id,
        "Namespace": stack.name.account,
        "PhysicalResourceId": event.physical_id,
        "PrincipalId": principal or stack.name.account,
        "ResourceProperties": event.properties or "null",
        "ResourceStatus": event.status,
        "ResourceStatusReason": event.reason,
        "ResourceType": event.type,
        "StackName": stack.name.name,
        "ClientRequestToken": event.token or "null",
    }
    return "".join(f"{name}='{value}'\n" for name, value in members.items())


class StackTopicEndpoint:
    """Publishes events of stacks, with the rights of whoever changed the stack (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def push(self, push_request: PushRequest) -> Attempt:
        """Publish an event; a refusal is final, and the log says so."""
        owed = orjson.loads(push_request.body)
        error, attempt = await attempted(
            self._publish(owed["stack"], owed["topic"], owed["message"]),
            "sns",
            lambda refused: f"{refused.message} ({refused.code})",
        )
        if error is not None:
            logger.warning(
                "stack.event_unpublished stack=%s topic=%s error=%s", owed["stack"], owed["topic"], error
            )
        return attempt

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def _publish(self, key: str, topic: str, message: str) -> None:
        stack = await self._documents.get(STACK, key)
        if stack is None:  # forgotten since
            return
        region = topic.split(":")[_REGION:][:1]
        params = {"TopicArn": topic, "Subject": _SUBJECT, "Message": message}
        await self._services.ask_for(stack)("sns", "Publish", in_region="".join(region), **params)

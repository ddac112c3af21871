"""The journal of a change: each step is stored before and after it is carried out, with its events and notifications.

A node writes only while it holds the lease of the change: one that lost it, and comes back late, is refused. The
notifications of a stack's topics are owed with the same write as the events that they are about.
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import orjson

from redrive.aws.cloudformation.changes.programs import Services
from redrive.aws.cloudformation.documents.history import DIALECT, EVENT, TO_TOPIC, StackEvent
from redrive.aws.cloudformation.documents.records import (
    OPERATION,
    RESOURCE,
    STACK,
    OperationState,
    Stack,
    StackOperation,
    StackResource,
    resource_key,
)
from redrive.aws.cloudformation.template.parameters import masked
from redrive.aws.gateway.owed_calls import backlog_in, make_call
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.timestamps import to_iso8601
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Documents, Draft
from redrive.model.attempt import Attempt
from redrive.model.names import id_text

logger = logging.getLogger(__name__)

_NOTIFICATIONS: Final = "notifications"  # the subscription that is the backlog
_SUBJECT: Final = "AWS CloudFormation Notification"
_numbers = itertools.count()  # events of a millisecond stay in their order


async def put_events(draft: Draft, engine: Engine, stack: Stack, events: Sequence[StackEvent]) -> None:
    """Write events behind the existing ones, and owe them to the topics of the stack."""
    for event in events:
        draft.put(EVENT, f"{stack.key}/{event.at:015d}-{next(_numbers):09d}-{event.id[-4:]}", event)
    topics = stack.target_settings.topics
    if not topics or not events:
        return
    backlog = await backlog_in(
        draft, engine, stack.name.account, stack.name.region, DIALECT, _NOTIFICATIONS, TO_TOPIC
    )
    for event in events:
        for topic in topics:
            notification = {"stack": stack.key, "topic": topic, "message": message_of(stack, event)}
            engine.messages.publish_alone_in(draft, *backlog, orjson.dumps(notification).decode(), b"")


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
    """Publishes events of stacks, with the rights of the user who changed the stack (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def push(self, push_request: PushRequest) -> Attempt:
        """Publish an event; a refusal is final, and the log says so."""
        notification = orjson.loads(push_request.body)
        stack, topic = notification["stack"], notification["topic"]
        error, attempt = await make_call(
            self._publish(stack, topic, notification["message"]),
            "sns",
            lambda refused: f"{refused.message} ({refused.code})",
        )
        if error is not None:
            logger.warning("stack.event_unpublished stack=%s topic=%s error=%s", stack, topic, error)
        return attempt

    async def close(self) -> None:
        """Nothing is held."""

    async def _publish(self, key: str, topic: str, message: str) -> None:
        stack = await self._documents.get(STACK, key)
        if stack is None:  # forgotten since
            return
        # Of a text that is no ARN the region is empty, which stands for the stack's.
        arn = read_arn(topic)
        region = arn.region if arn is not None else ""
        params = {"TopicArn": topic, "Subject": _SUBJECT, "Message": message}
        await self._services.ask_for(stack)("sns", "Publish", in_region=region, **params)


STACK_TYPE: Final = "AWS::CloudFormation::Stack"
_PROPERTIES_CHARS_MAX: Final = 16_384


class Superseded(Exception):  # noqa: N818 - an outcome
    """Another node has taken over the change."""


def event_of(
    stack: Stack, resource: StackResource, at: int, status: str = "", reason: str = ""
) -> StackEvent:
    """The event that a resource has a status; empty: its own."""
    status = status or resource.status
    return StackEvent(
        id=f"{resource.logical_id}-{status}-{to_iso8601(at)}",
        at=at,
        logical_id=resource.logical_id,
        physical_id=resource.physical_id,
        type=resource.type,
        status=status,
        reason=reason,
        properties=orjson.dumps(resource.properties).decode(),
        token=stack.token,
    )


def stack_event(stack: Stack, at: int, event_id: str) -> StackEvent:
    """The event of a stack's status."""
    return StackEvent(
        id=event_id,
        at=at,
        logical_id=stack.name.name,
        physical_id=stack.arn,
        type=STACK_TYPE,
        status=stack.status,
        reason=stack.reason,
        token=stack.token,
    )


class Journal:
    """Stores the progress of one change to a stack.

    Attributes:
        stack: As it was last written.
        hidden_names: Properties that its events mask, by logical id.
    """

    def __init__(self, engine: Engine, operation: StackOperation, stack: Stack) -> None:
        self._engine = engine
        self._operation = operation
        self._last_event_at = stack.told_at
        self.stack = stack
        self.hidden_names: Mapping[str, frozenset[str]] = {}

    @property
    def now(self) -> int:
        """The moment (ms)."""
        return self._engine.clock.now()

    def _as_told(self, event: StackEvent) -> StackEvent:
        """An event at its own moment, by which it has its place among the others, and without what is hidden."""
        self._last_event_at = max(event.at, self._last_event_at + 1)
        identity = event.id.replace(to_iso8601(event.at), to_iso8601(self._last_event_at))
        properties = event.properties
        if hidden_names := self.hidden_names.get(event.logical_id):
            properties = orjson.dumps(masked(orjson.loads(properties), hidden_names)).decode()
        return replace(
            event, at=self._last_event_at, id=identity, properties=properties[:_PROPERTIES_CHARS_MAX]
        )

    async def require_hold(self, draft: Draft) -> StackOperation:
        """Require that this node holds the change when the draft is written; raises Superseded if another does."""
        stored = await draft.get(OPERATION, self._operation.key)
        if stored is None or stored.id != self._operation.id or stored.node != self._operation.node:
            raise Superseded
        return stored

    async def read(self) -> Stack:
        """The stack as it is stored: callers may have changed their request."""
        return await self._engine.resources.documents.get(STACK, self.stack.key) or self.stack

    async def is_cancelled(self) -> bool:
        """True if the caller wants the change rolled back."""
        stored = await self._engine.resources.documents.get(OPERATION, self._operation.key)
        return stored is not None and stored.state is OperationState.CANCELLING

    async def write_resource(
        self,
        resource: StackResource,
        *events: StackEvent,
        also: Callable[[Draft], Awaitable[None]] | None = None,
    ) -> None:
        """Write a resource, with its events and whatever `also` adds to the draft."""
        events = tuple(map(self._as_told, events))

        async def decide(draft: Draft) -> None:
            await self.require_hold(draft)
            key = resource_key(self.stack, resource.logical_id)
            await draft.overwrite(RESOURCE, key, resource)
            await put_events(draft, self._engine, self.stack, events)
            if also is not None:
                await also(draft)

        await self._engine.resources.write(decide)

    async def remove_resource(self, resource: StackResource, *events: StackEvent) -> None:
        """Remove a resource from its stack."""
        events = tuple(map(self._as_told, events))

        async def decide(draft: Draft) -> None:
            await self.require_hold(draft)
            draft.remove(RESOURCE, resource_key(self.stack, resource.logical_id))
            await put_events(draft, self._engine, self.stack, events)

        await self._engine.resources.write(decide)

    async def write_status(
        self,
        status: str,
        reason: str = "",
        *,
        change: Callable[[Stack], Stack] = lambda stack: stack,
        also: Callable[[Draft, Stack], Awaitable[None]] | None = None,
    ) -> Stack:
        """Write another status of the stack, with its event: `change` changes the stack, `also` adds to the draft."""
        event_id = id_text(self._engine.runtime.message_id())
        self._last_event_at = at = max(self.now, self._last_event_at + 1)

        async def decide(draft: Draft) -> Stack:
            await self.require_hold(draft)
            current = await draft.get(STACK, self.stack.key)
            if current is None:
                raise Superseded
            after = replace(change(current), status=status, reason=reason, told_at=at)
            draft.put(STACK, after.key, after)
            await put_events(draft, self._engine, after, [stack_event(after, at, event_id)])
            if also is not None:
                await also(draft, after)
            return after

        self.stack = await self._engine.resources.write(decide)
        return self.stack

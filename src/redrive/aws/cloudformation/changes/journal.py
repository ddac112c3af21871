"""The journal of a change: each step is written down before it is made and after, with its events.

A node writes only as long as it holds the change: one that was taken for dead, and comes back late, is refused.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import orjson

from redrive.aws.cloudformation.changes.notifying import put_events
from redrive.aws.cloudformation.documents.history import StackEvent
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
from redrive.aws.wire.timestamps import to_iso8601
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.ids import id_text

STACK_TYPE: Final = "AWS::CloudFormation::Stack"
_PROPERTIES_CHARS_MAX: Final = 16_384


class Superseded(Exception):  # noqa: N818 - an outcome
    """Another node carries the change on."""


def event_of(
    stack: Stack, resource: StackResource, at: int, status: str = "", reason: str = ""
) -> StackEvent:
    """The event of a resource's status, its own or another."""
    status = status or resource.status
    text = orjson.dumps(resource.properties).decode()
    return StackEvent(
        id=f"{resource.logical_id}-{status}-{to_iso8601(at)}",
        at=at,
        logical_id=resource.logical_id,
        physical_id=resource.physical_id,
        type=resource.type,
        status=status,
        reason=reason,
        properties=text[:_PROPERTIES_CHARS_MAX],
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
    """Writes down one change to a stack.

    Attributes:
        stack: As it was last written.
    """

    def __init__(self, engine: Engine, operation: StackOperation, stack: Stack) -> None:
        self._engine = engine
        self._operation = operation
        self._told_at = stack.told_at
        self.stack = stack

    @property
    def now(self) -> int:
        """The moment (ms)."""
        return self._engine.clock.now()

    def _with_own_moment(self, event: StackEvent) -> StackEvent:
        """An event at a moment of its own: by their moments events are in the order in which they happened."""
        self._told_at = max(event.at, self._told_at + 1)
        identity = event.id.replace(to_iso8601(event.at), to_iso8601(self._told_at))
        return replace(event, at=self._told_at, id=identity)

    async def hold(self, draft: Draft) -> StackOperation:
        """Require that this node holds the change when the draft is written.

        Raises:
            Superseded: Another does.
        """
        held = await draft.get(OPERATION, self._operation.key)
        if held is None or held.id != self._operation.id or held.node != self._operation.node:
            raise Superseded
        return held

    async def read(self) -> Stack:
        """The stack as it is now: callers may have changed what they want of it."""
        return await self._engine.resources.documents.get(STACK, self.stack.key) or self.stack

    async def is_cancelled(self) -> bool:
        """True if the caller wants the change rolled back."""
        held = await self._engine.resources.documents.get(OPERATION, self._operation.key)
        return held is not None and held.state is OperationState.CANCELLING

    async def resource(
        self,
        resource: StackResource,
        *events: StackEvent,
        also: Callable[[Draft], Awaitable[None]] | None = None,
    ) -> None:
        """Write a resource as it is from now on, with its events."""
        events = tuple(map(self._with_own_moment, events))

        async def decide(draft: Draft) -> None:
            await self.hold(draft)
            key = resource_key(self.stack, resource.logical_id)
            await draft.get(RESOURCE, key)
            draft.put(RESOURCE, key, resource)
            await put_events(draft, self._engine, self.stack, events)
            if also is not None:
                await also(draft)

        await self._engine.resources.write(decide)

    async def forget(self, resource: StackResource, *events: StackEvent) -> None:
        """Remove a resource from its stack."""
        events = tuple(map(self._with_own_moment, events))

        async def decide(draft: Draft) -> None:
            await self.hold(draft)
            draft.remove(RESOURCE, resource_key(self.stack, resource.logical_id))
            await put_events(draft, self._engine, self.stack, events)

        await self._engine.resources.write(decide)

    async def status(
        self,
        status: str,
        reason: str = "",
        *,
        change: Callable[[Stack], Stack] = lambda stack: stack,
        also: Callable[[Draft, Stack], Awaitable[None]] | None = None,
    ) -> Stack:
        """Bring the stack to another status."""
        event_id = id_text(self._engine.runtime.message_id())
        self._told_at = at = max(self.now, self._told_at + 1)

        async def decide(draft: Draft) -> Stack:
            await self.hold(draft)
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

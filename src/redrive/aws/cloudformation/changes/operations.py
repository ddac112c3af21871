"""Changes to stacks as tasks that survive their node."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.cloudformation.changes.change import Change
from redrive.aws.cloudformation.changes.journal import Journal, Superseded, put_events, stack_event
from redrive.aws.cloudformation.changes.programs import Services
from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.history import CHANGE_SET, EVENT, SIGNAL, Signal, StackEvent
from redrive.aws.cloudformation.documents.lookup import require_stack
from redrive.aws.cloudformation.documents.records import (
    GIVEN_UP,
    OPERATION,
    PATH,
    RESOURCE,
    STACK,
    TEMPLATE,
    OperationState,
    Stack,
    StackOperation,
    resource_key,
)
from redrive.aws.cloudformation.documents.signals import SIGNALS, Activity, DocumentWatch, StackSignals
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.operations import LEASE_MS, LeasedTasks
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.engine.upkeep import Upkeep
from redrive.model.errors import NotFound, StoreUnavailable
from redrive.model.http import Request, Response
from redrive.model.names import id_text
from redrive.model.queue import DAY_MS

logger = logging.getLogger(__name__)

ROUND_MS: Final = 10_000  # between two searches for the changes of dead nodes
_RENEWAL_MS: Final = LEASE_MS // 3
#: Of a change; more than it takes to survive other crashes and an unstable store.
_STARTS_MAX: Final = 4


class StackOperations:
    """Begins changes, and continues those that were interrupted.

    Attributes:
        activity: Work on changes.
        signals: What resources wait for.
    """

    def __init__(
        self, engine: Engine, services: Services, key: bytes, *, alone: bool, simulated: bool
    ) -> None:
        """Carry changes out.

        - `key`: the installation's secret, for the URLs that responses are sent to.
        - `alone`: this node is the only one: a lease of another node is that of a dead one.
        - `simulated`: the clock is simulated, and this node alone: it looks for abandoned changes at its start only.
        """
        self._alone = alone
        self._engine = engine
        self._services = services
        self._simulated = simulated
        self.activity = Activity()
        resources, clock = engine.resources, engine.clock
        watch = DocumentWatch(resources, clock, self.activity)
        self.signals = StackSignals(resources, clock, watch, services.base_url, key)
        self._tasks = LeasedTasks(engine.runtime, engine.resources.documents, OPERATION)
        self._upkeep = Upkeep(self._round, engine.clock, ROUND_MS, "stacks.unread", once=simulated)
        self._forgets_at = 0

    async def begin_in(self, draft: Draft, stack: Stack, *, change: str = "") -> None:
        """Begin a change with the write of a draft that has read the stack.

        - `stack`: with the status of its first phase, and not yet the id of the change.
        - `change`: the id of a change that continues; empty: a new one.
        """
        change = change or self.new_id()
        stack = replace(stack, change=change, told_at=max(self._engine.clock.now(), stack.told_at + 1))
        operation = self._tasks.with_lease(StackOperation(change, stack.key))
        draft.put(STACK, stack.key, stack)
        await put_events(draft, self._engine, stack, [self.event(stack)])
        await draft.overwrite(OPERATION, operation.key, operation)
        draft.afterwards(lambda: self._begin(operation))

    def _begin(self, operation: StackOperation) -> None:
        """Begin to work on a change, which counts as active at once, before its turn comes."""
        self.activity.add(1)
        self._tasks.begin(operation, self._finish)

    async def _resume(self, operation: StackOperation) -> None:
        """Go on with a change that a node left."""
        self.activity.add(1)
        await self._finish(operation, is_resumed=True)

    async def _finish(self, operation: StackOperation, *, is_resumed: bool = False) -> None:
        """Carry a change on to its end, or give up one that began too often."""
        try:
            if is_resumed:
                operation = await self._count_start(operation)
            if operation.starts <= _STARTS_MAX:
                await self._carry_on(operation)
            else:
                await self._give_up(operation)
        except Superseded:
            logger.info("stack.superseded stack=%s", operation.stack)
        finally:
            self.activity.add(-1)

    async def _count_start(self, operation: StackOperation) -> StackOperation:
        """Record another start before doing anything: the change itself may crash the server."""
        return await self._engine.resources.documents.update(
            OPERATION, operation.key, lambda current: replace(current, starts=current.starts + 1)
        )

    async def _give_up(self, operation: StackOperation) -> None:
        """Fail a change that began too often without an end."""
        stack = await self._engine.resources.documents.get(STACK, operation.stack)
        if stack is not None and stack.status in GIVEN_UP:
            logger.error(
                "stack.given_up stack=%s status=%s starts=%d", stack.arn, stack.status, operation.starts
            )
            reason = f"Internal Failure: the change began {operation.starts} times and did not come to an end"
            await Journal(self._engine, operation, stack).write_status(GIVEN_UP[stack.status], reason)
        await self._end(operation)

    def new_id(self) -> str:
        """A fresh unique id."""
        return id_text(self._engine.runtime.message_id())

    def event(self, stack: Stack) -> StackEvent:
        """The event of a stack's status."""
        return stack_event(stack, stack.told_at or self._engine.clock.now(), self.new_id())

    # ---- carrying on -------------------------------------------------------------------------------------------------

    async def _carry_on(self, operation: StackOperation) -> None:
        """Work on a change while its lease is renewed, then end it."""
        renewals = None if self._simulated else asyncio.ensure_future(self._renew_lease(operation))
        try:
            stack = await self._engine.resources.documents.get(STACK, operation.stack)
            if stack is not None:
                parts = self._engine, self._services, self.signals, self.activity
                await Change(*parts, operation, stack).carry_on()
            await self._end(operation)
        finally:
            if renewals is not None:
                renewals.cancel()

    async def _renew_lease(self, operation: StackOperation) -> None:
        """Renew the lease until this is cancelled, when work on the change ends here."""
        clock = self._engine.clock

        def renew(current: StackOperation) -> StackOperation:
            is_ours = self._tasks.is_ours(current)
            # Only starts after which no node kept at it count.
            return replace(self._tasks.with_lease(current), starts=0) if is_ours else current

        while True:
            await clock.sleep_until(clock.now() + _RENEWAL_MS)
            with contextlib.suppress(NotFound, StoreUnavailable):
                await self._engine.resources.documents.update(OPERATION, operation.key, renew)

    async def _end(self, operation: StackOperation) -> None:
        """Write that the change has ended, if it is still this node's."""

        async def decide(draft: Draft) -> None:
            current = await draft.get(OPERATION, operation.key)
            if current is not None and current.id == operation.id and self._tasks.is_ours(current):
                draft.put(OPERATION, operation.key, replace(current, state=OperationState.ENDED))

        await self._engine.resources.write(decide)

    # ---- on this node ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take over the changes of dead nodes."""
        self._upkeep.start()

    async def _round(self) -> None:
        with self.activity.going_on():
            await self._release()
            await self.take_up()
            await self._forget()

    async def _forget(self) -> None:
        """Forget deleted stacks, once a day."""
        now = self._engine.clock.now()
        if now >= self._forgets_at:
            await forget_deleted(self._engine, now)
            self._forgets_at = now + DAY_MS

    async def _release(self) -> None:
        """Release the leases of dead nodes if no other node is alive."""
        if not self._alone:
            return
        for operation in await self._active():
            if not self._tasks.is_ours(operation):
                await self._engine.resources.documents.update(
                    OPERATION, operation.key, lambda current: replace(current, lease_until=0)
                )

    async def take_up(self) -> None:
        """Resume changes that no node works on."""
        await self._tasks.take_up(await self._active(), self._resume)

    async def _active(self) -> Sequence[StackOperation]:
        operations = await self._engine.resources.documents.find(OPERATION, "")
        return [operation for operation in operations if operation.state.active]

    @property
    def is_quiet(self) -> bool:
        """True if all remaining work waits for a time or a signal."""
        return self.activity.is_quiet

    async def until_quiet(self) -> None:
        """Return when all remaining work waits for a time or a signal."""
        await self.activity.until_quiet()

    async def close(self) -> None:
        """Leave what is under way to the next start."""
        await self._upkeep.close()
        await self._tasks.stop()


# ---- forgetting ------------------------------------------------------------------------------------------------------
#
# A deleted stack is described for 90 days, with its resources and events.

KEPT_MS: Final = 90 * DAY_MS
_PAGE: Final = 500  # documents read in one turn
_HISTORY: Final[tuple[DocumentKind[Any], ...]] = (EVENT, RESOURCE, CHANGE_SET, SIGNAL, TEMPLATE)


async def forget_deleted(engine: Engine, now: int) -> int:
    """Remove all that is stored of stacks deleted longer ago than `KEPT_MS`; returns their number.

    The stack itself goes last, so that a node which dies in between leaves nothing that nobody finds.
    """
    documents = engine.resources.documents
    count = 0
    for stack in await documents.find(STACK, ""):
        if stack.status != "DELETE_COMPLETE" or stack.deleted_at is None:
            continue
        if stack.deleted_at + KEPT_MS <= now:
            for kind in _HISTORY:
                await _remove_all(engine, kind, stack)
            await documents.remove(OPERATION, stack.key)
            count += await documents.remove(STACK, stack.key)
    return count


async def _remove_all(engine: Engine, kind: DocumentKind[Any], stack: Stack) -> None:
    documents = engine.resources.documents
    while stored_documents := await documents.find_versioned(kind, f"{stack.key}/", limit=_PAGE):
        for key, _, _ in stored_documents:
            await documents.remove(kind, key)


# ---- signals -----------------------------------------------------------------------------------------------------------

ANSWER_BYTES_MAX: Final = 4096
_SIGNAL_ID_CHARS_MAX: Final = 256  # chosen: a sender chooses the id, which is a part of a key


class SignalOperations:
    """Stores signals."""

    def __init__(self, engine: Engine, signals: StackSignals) -> None:
        self._engine = engine
        self._signals = signals
        self._routes = {("PUT", PATH): self._store_answer}

    async def signal_resource(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        logical_id = params["LogicalResourceId"]
        resource = await self._engine.resources.documents.get(RESOURCE, resource_key(stack, logical_id))
        if resource is None:
            raise invalid(f"Resource {logical_id} does not exist for stack {stack.name.name}")
        if not resource.status.endswith("_IN_PROGRESS"):
            raise invalid(f"Resource {logical_id} is in {resource.status} state and cannot be signaled")
        signal = Signal(params["UniqueId"], params["Status"])
        await self._signals.add(stack.key, logical_id, SIGNALS, signal)
        return {}

    async def answer(self, request: Request) -> Response:
        """Store what is put to a URL that a resource gave away: the URL itself is the permission."""
        store = self._routes.get((request.method, PATH))
        return Response(405, b"", "text/plain") if store is None else await store(request)

    async def _store_answer(self, request: Request) -> Response:
        """Store the answer of a custom resource, or a signal of a wait condition, which a request brings to its URL."""
        target = self._signals.target_of(request.path)
        if target is None:
            return Response(403, b"", "text/plain")
        if len(request.body) > ANSWER_BYTES_MAX:
            return Response(400, b"", "text/plain")
        answer = read_object(request.body)
        if answer is None:
            return Response(400, b"", "text/plain")
        status = "SUCCESS" if answer.get("Status") == "SUCCESS" else "FAILURE"
        signal_id = str(answer.get("UniqueId") or answer.get("RequestId") or "answer")
        await self._signals.add(*target, Signal(signal_id[:_SIGNAL_ID_CHARS_MAX], status, answer))
        return Response(200, b"", "text/plain")

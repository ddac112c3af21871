"""Parts that steps share (names, calls to services, entries in the journal), and the steps that remove resources."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.changes.journal import Journal, event_of
from redrive.aws.cloudformation.changes.order import StepFailed
from redrive.aws.cloudformation.changes.programs import Services
from redrive.aws.cloudformation.changes.values import resolve_references
from redrive.aws.cloudformation.documents.history import (
    EXPORT,
    IMPORT,
    Import,
    StackEvent,
    export_key,
    import_key,
)
from redrive.aws.cloudformation.documents.records import (
    Leftover,
    ResourceSnapshot,
    Stack,
    StackResource,
    generate_name,
)
from redrive.aws.cloudformation.documents.signals import SIGNALS, StackSignals, duration_ms
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.types.calls import Ask, FailedAfterCreation, ResourceSpec, ResourceState
from redrive.aws.cloudformation.types.resource_type import Act, ResourceType
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.service import service_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text


def spec_of(
    stack: Stack, resource: StackResource, base_url: str, signals: StackSignals, *, may_exist: bool
) -> ResourceSpec:
    """The specification of a resource for its type; `may_exist`: a step before an interruption may have created it."""
    return ResourceSpec(
        stack=stack.name,
        stack_id=stack.arn,
        logical_id=resource.logical_id,
        type=resource.type,
        name=resource.name,
        physical_id=resource.physical_id,
        properties=resource.properties,
        signals=signals,
        tags=stack.target_settings.tags,
        base_url=base_url,
        may_exist=may_exist,
        change=stack.change,
        attributes=resource.attributes,
    )


CANCELLED: Final = "Resource creation cancelled"


class AttemptRefused(Exception):  # noqa: N818 - an outcome
    """A service refused what a step asked for.

    Attributes:
        reason: As it stands in events.
        is_uncreated: Nothing was created: what has the resource's name, if anything, is not this stack's.
        physical_id: Of a resource that was created nevertheless; empty: none was.
    """

    def __init__(self, reason: str, *, is_uncreated: bool = False, physical_id: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_uncreated = is_uncreated
        self.physical_id = physical_id


_READS: Final = ("Describe", "Get", "Head", "List")


class _CountedCalls:
    """The calls of one attempt.

    Attributes:
        changes: How many that change something were carried out.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.changes = 0

    async def ask(self, service: str, operation: str, *, in_region: Any = "", **params: Any) -> Structure:
        """Call an operation; see `Ask`."""
        answer = await self._ask(service, operation, in_region=in_region, **params)
        self.changes += not operation.startswith(_READS)
        return answer


class StepParts:
    """The parts that the steps of one change share.

    Attributes:
        resources: As they are now, by logical id.
    """

    def __init__(
        self,
        engine: Engine,
        services: Services,
        signals: StackSignals,
        journal: Journal,
        resources: dict[str, StackResource],
    ) -> None:
        self._runtime = engine.runtime
        self._services = services
        self._base_url = services.base_url
        self._signals = signals
        self._journal = journal
        self.resources = resources
        self._over = asyncio.Event()

    def end(self) -> None:
        """End the steps that still wait: the phase has failed."""
        self._over.set()

    @property
    def is_over(self) -> bool:
        """True if the phase has failed."""
        return self._over.is_set()

    @property
    def _stack(self) -> Stack:
        return self._journal.stack

    @property
    def _ask(self) -> Ask:
        return self._services.ask_for(self._stack)

    def _name(self, kind: ResourceType, resource: StackResource) -> str:
        """The name that the template gives a resource, or else a generated one."""
        name = resource.properties.get(kind.name_property) if kind.name_property else None
        if name:
            return str(name)
        return generate_name(
            self._runtime.rng,
            kind.name_beginning or self._stack.name.name,
            resource.logical_id,
            kind.name_chars_max,
            kind.suffix(resource.properties),
            lower_case=kind.lower_case,
        )

    def _spec(self, resource: StackResource, *, may_exist: bool) -> ResourceSpec:
        return spec_of(self._stack, resource, self._base_url, self._signals, may_exist=may_exist)

    async def _attempt(self, kind: ResourceType, act: Act, spec: ResourceSpec) -> ResourceState:
        """Carry out a part of a step; raises AttemptRefused if it cannot be done."""
        call_id = id_text(self._runtime.message_id())
        calls = _CountedCalls(self._ask)
        try:
            properties = await resolve_references(spec.properties, self._ask)
            if properties != spec.properties:  # what a reference stands for is text, also of a number
                properties = kind.schema.typed(properties)
            action = act(calls.ask, replace(spec, properties=properties))
            resource_state: ResourceState = await (self._unless_over(action) if kind.waits else action)
        except AwsError as error:
            token = id_text(self._runtime.message_id())
            reason = reason_of(kind.service, error, call_id, token)
            raise AttemptRefused(reason, is_uncreated=not (spec.may_exist or calls.changes)) from None
        except FailedAfterCreation as failure:
            raise AttemptRefused(str(failure), physical_id=failure.physical_id) from None
        except TemplateInvalid as refusal:
            is_uncreated = not (spec.may_exist or calls.changes)
            raise AttemptRefused(str(refusal), is_uncreated=is_uncreated) from None
        return resource_state

    async def _unless_over(self, action: Awaitable[ResourceState]) -> ResourceState:
        """Wait for an action that may take hours; raises AttemptRefused once the phase has failed."""
        task, over = asyncio.ensure_future(action), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((task, over), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise AttemptRefused(CANCELLED)
        finally:
            task.cancel()
            over.cancel()
            await asyncio.gather(task, over, return_exceptions=True)

    async def _await_signals(self, resource: StackResource, policy: Mapping[str, Any]) -> str:
        """Wait for the signals that a creation policy asks for; returns why they failed, empty if they did not."""
        signal_policy = policy.get("ResourceSignal")
        if not isinstance(signal_policy, Mapping):
            return ""
        count = int(signal_policy.get("Count") or 1)
        deadline = self._journal.now + duration_ms(str(signal_policy.get("Timeout") or "PT5M"))
        signals = await self._signals.wait(self._stack.arn, resource.logical_id, SIGNALS, count, deadline)
        failures = [signal for signal in signals if signal.status != "SUCCESS"]
        if failures:
            return f"Received FAILURE signal with UniqueId {failures[0].id}"
        if len(signals) < count:
            return (
                f"Failed to receive {count - len(signals)} resource signal(s) within the specified duration"
            )
        return ""

    async def _write(
        self, after: StackResource, *events: StackEvent, imports: set[str] | None = None
    ) -> None:
        """Write a resource, with its events and the names of the exports that it imports."""

        async def write_imports(draft: Draft) -> None:
            for export in imports or ():
                # Read so that the draft is not written if the export is removed meanwhile.
                await draft.get(EXPORT, export_key(self._stack.name, export))
                key = import_key(self._stack, export)
                if await draft.get(IMPORT, key) is None:
                    draft.put(IMPORT, key, Import(export, self._stack.key, self._stack.name.name))

        await self._journal.write_resource(after, *events, also=write_imports if imports else None)
        self.resources[after.logical_id] = after

    async def _raise_failed(
        self, after: StackResource, status: str, reason: str, *events: StackEvent
    ) -> NoReturn:
        """Write a failure of a resource; raises StepFailed, which ends the step."""
        failed = replace(after, status=status, reason=reason, updated_at=self._journal.now)
        await self._write(failed, *events, event_of(self._stack, failed, failed.updated_at, reason=reason))
        raise StepFailed(after.logical_id)


def leftover_of(kind: str, before: ResourceSnapshot) -> Leftover:
    """The leftover of a resource that a change replaced, as it was before."""
    return Leftover(kind, before.name, before.physical_id, before.properties, before.replace_policy)


# ---- reasons of failures, as CloudFormation words those of its handlers ----------------------------------------------

_CODES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("AlreadyExists", ("AlreadyExists", "ConflictException", "QueueNameExists", "BucketAlreadyExists")),
    ("NotFound", ("NotFound", "NoSuch", "NonExistent", "DoesNotExist")),
    ("AccessDenied", ("AccessDenied", "AuthorizationError", "NotAuthorized")),
    ("ServiceLimitExceeded", ("LimitExceeded",)),
    ("Throttling", ("Throttl", "TooManyRequests")),
)
_SERVER_FAULT: Final = 500


def reason_of(service: str, error: AwsError, request_id: str, token: str) -> str:
    """The reason of a resource's failure; `service` is botocore's name, empty if no service was called."""
    if not service:
        return error.message
    text = error.message or error.code
    sentence = f"{text} (Service: {service_of(service).title}, Status Code: {error.status}, Request ID: {request_id})"
    return f'Resource handler returned message: "{sentence}" (RequestToken: {token}, HandlerErrorCode: {_code(error)})'


def _code(error: AwsError) -> str:
    for code, parts in _CODES:
        if any(part in error.code for part in parts):
            return code
    return "GeneralServiceException" if error.status >= _SERVER_FAULT else "InvalidRequest"


class ResourceRemoval(StepParts):
    """The steps that remove the resources of a stack."""

    async def remove(self, name: str, *, forget: bool = False) -> None:
        """Remove a resource and those that it replaced; `forget`: its document goes, too, as the stack stays.

        Raises:
            StepFailed: It could not be removed.
        """
        await self.clear_leftovers(name)
        current = self.resources[name]
        if current.status in {"DELETE_COMPLETE", "DELETE_SKIPPED"}:
            return
        if self._is_retained(current):
            await self._finish(replace(current, status="DELETE_SKIPPED"), forget=forget)
            return
        may_exist = bool(current.physical_id) or current.status != "CREATE_FAILED"
        if current.name or current.physical_id:
            current = replace(current, status="DELETE_IN_PROGRESS", reason="", updated_at=self._journal.now)
            await self._write(current, event_of(self._stack, current, current.updated_at))
            reason = await self._delete(
                current, Leftover(current.type, current.name, current.physical_id, current.properties)
            )
            if reason and self._stack.forced:
                await self._finish(replace(current, status="DELETE_SKIPPED", reason=reason), forget=forget)
                return
            if reason and may_exist:  # otherwise nothing is left, whatever the service says (recorded)
                await self._raise_failed(current, "DELETE_FAILED", reason)
        await self._finish(replace(current, status="DELETE_COMPLETE"), forget=forget)

    def _is_retained(self, current: StackResource) -> bool:
        """True if a resource stays when the stack gives it up: by the request, or by its policy."""
        if current.logical_id in self._stack.retained:
            return True
        if not current.physical_id:
            return False
        is_creation_undone = current.born == self._stack.change and "ROLLBACK" in self._stack.status
        return current.policy == "Retain" or (
            current.policy == "RetainExceptOnCreate" and not is_creation_undone
        )

    async def _finish(self, current: StackResource, *, forget: bool) -> None:
        """Write a resource's status after its removal, or (`forget`) remove its document."""
        current = replace(current, updated_at=self._journal.now)
        event = event_of(self._stack, current, current.updated_at, reason=current.reason)
        if forget:
            await self._journal.remove_resource(current, event)
            del self.resources[current.logical_id]
        else:
            await self._write(current, event)

    async def clear_leftovers(self, name: str) -> None:
        """Remove the resources that one replaced, except retained ones; the failure to remove one is only an event."""
        current = self.resources[name]
        if not current.leftovers:
            return
        events = []
        for leftover in current.leftovers:
            if leftover.policy == "Retain":
                continue
            old = replace(current, physical_id=leftover.physical_id, properties=leftover.properties)
            events.append(event_of(self._stack, old, self._journal.now, "DELETE_IN_PROGRESS"))
            reason = await self._delete(current, leftover)
            status = "DELETE_FAILED" if reason else "DELETE_COMPLETE"
            events.append(event_of(self._stack, old, self._journal.now, status, reason))
        await self._write(replace(current, leftovers=()), *events)

    async def _delete(self, current: StackResource, leftover: Leftover) -> str:
        """Remove a resource; returns why that failed, empty if it did not."""
        kind = type_of(leftover.type)
        spec = replace(
            self._spec(current, may_exist=True),
            name=leftover.name,
            physical_id=leftover.physical_id,
            properties=leftover.properties,
        )

        async def delete(ask: Ask, spec: ResourceSpec) -> ResourceState:
            physical_id = spec.physical_id or await kind.find(ask, spec)
            if physical_id:
                await kind.delete(ask, replace(spec, physical_id=physical_id))
            return ResourceState(physical_id)

        try:
            await self._attempt(kind, delete, spec)
        except AttemptRefused as refusal:
            return refusal.reason
        return ""

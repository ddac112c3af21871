"""Operations that change stacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.policies import given_policy
from redrive.aws.cloudformation.changes.programs import (
    Programs,
    Services,
    choose_parameters,
    expanded,
    known_values,
    processed,
    program_of,
    template_body,
    with_included,
)
from redrive.aws.cloudformation.documents.errors import error, invalid
from redrive.aws.cloudformation.documents.history import CHANGE_SET
from redrive.aws.cloudformation.documents.lookup import (
    current_stack_in,
    find_stack,
    stack_name,
    standing_stack,
)
from redrive.aws.cloudformation.documents.records import (
    OPERATION,
    REVIEW,
    STACK,
    STACK_NAME,
    TEMPLATE,
    OperationState,
    Stack,
    StackSettings,
    TemplateText,
    check_name,
    check_updatable,
    not_updatable,
    template_key,
    with_rights_of,
)
from redrive.aws.cloudformation.stacks.preview import preview
from redrive.aws.cloudformation.stacks.requests import (
    capabilities_of,
    check_capabilities,
    check_deletable,
    check_triggers,
    check_types,
    tags_of,
    topics_of,
)
from redrive.aws.cloudformation.template.parameters import read_parameters
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.reading import read_body
from redrive.aws.cloudformation.template.sections import section
from redrive.aws.cloudformation.template.transforms import is_including
from redrive.aws.gateway.identities import session_of
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName

_MINUTE_MS: Final = 60_000
NO_CHANGE: Final = "No updates are to be performed."


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change as its caller wants it, checked: the settings it leads to, the text of the template, its program."""

    settings: StackSettings
    text: TemplateText
    program: TemplateProgram


class StackChanges:
    """Creates, changes and deletes stacks."""

    def __init__(self, engine: Engine, services: Services, operations: StackOperations) -> None:
        self._engine = engine
        self._services = services
        self._operations = operations
        self._programs = Programs(engine)

    # ---- creation ----------------------------------------------------------------------------------------------------

    async def create_stack(self, call: Call, params: Structure) -> Structure:
        name = stack_name(call, params["StackName"])
        check_name("stackName", name.name)
        identity = self._operations.new_id()
        prepared = await self.prepare(call, params, name, identity, None)
        check_capabilities(prepared.program.template, params, expands=bool(prepared.text.processed))
        token = params.get("ClientRequestToken") or ""
        stack = new_stack(call, params, name, identity, prepared.settings)

        async def decide(draft: Draft) -> Stack:
            key = await draft.get(STACK_NAME, name.key)
            current: Stack | None = None
            if key is not None:
                current = await draft.get(STACK, key)
            if current is not None and token and current.token == token:
                return current
            if current is not None and current.status == REVIEW:
                return await self._create_reviewed_in(draft, current, stack, prepared)
            if current is not None:
                raise error("AlreadyExistsException", f"Stack [{name.name}] already exists")
            draft.put(STACK_NAME, name.key, stack.key)
            draft.put(TEMPLATE, template_key(stack, prepared.settings.template), prepared.text)
            await self._operations.begin_in(draft, stack)
            return stack

        return {"StackId": (await self._engine.resources.write(decide)).arn}

    async def _create_reviewed_in(
        self, draft: Draft, reviewed: Stack, stack: Stack, prepared: Prepared
    ) -> Stack:
        """Create the stack that a change set was to create, which stays behind."""
        started_stack = replace(stack, id=reviewed.id)
        draft.put(TEMPLATE, template_key(started_stack, prepared.settings.template), prepared.text)
        await self._operations.begin_in(draft, started_stack)
        await self._outdate_change_sets(draft, started_stack)
        return started_stack

    # ---- changes -----------------------------------------------------------------------------------------------------

    async def update_stack(self, call: Call, params: Structure) -> Structure:
        stack = await standing_stack(self._engine, call, params["StackName"])
        token = params.get("ClientRequestToken") or ""
        if token and stack.token == token:
            return {"StackId": stack.arn}
        check_updatable(stack)
        prepared = await self.prepare(call, params, stack.name, stack.id, stack)
        check_capabilities(prepared.program.template, params, expands=bool(prepared.text.processed))
        policies = [
            await given_policy(self._services, call, params, member)
            for member in ("StackPolicy", "StackPolicyDuringUpdate")
        ]
        if stack.status != "UPDATE_FAILED" and not await preview(
            self._engine, stack, prepared.settings, prepared.program
        ):
            raise invalid(NO_CHANGE)
        on_failure = "DO_NOTHING" if params.get("DisableRollback") else "ROLLBACK"
        await self.begin_update(call, stack, prepared.settings, prepared.text, on_failure, token, policies)
        return {"StackId": stack.arn}

    async def begin_update(
        self,
        call: Call,
        stack: Stack,
        settings: StackSettings,
        text: TemplateText,
        on_failure: str,
        token: str,
        policies: Sequence[str] = ("", ""),
    ) -> None:
        """Begin a change to a stack; the policies are the stack's from now on and that of this change alone.

        Raises:
            AwsError: Another operation began meanwhile.
        """

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            check_updatable(current)
            key = template_key(stack, settings.template)
            await draft.overwrite(TEMPLATE, key, text)
            started_stack = replace(
                with_rights_of(current, call),
                status="UPDATE_IN_PROGRESS",
                reason="User Initiated",
                wanted=settings,
                on_failure=on_failure,
                token=token,
                updated_at=self._engine.clock.now(),
                policy=policies[0] or current.policy,
                policy_during=policies[1],
                change_set="",  # it was not a change set that brought this (recorded)
            )
            await self._operations.begin_in(draft, started_stack)
            await self._outdate_change_sets(draft, current)

        await self._engine.resources.write(decide)

    async def _outdate_change_sets(self, draft: Draft, stack: Stack) -> None:
        """Take away the change sets that were made before: they say nothing of the stack as it will be."""
        for key, change_set in await draft.find(CHANGE_SET, f"{stack.key}/"):
            if change_set.execution == "AVAILABLE":
                draft.put(CHANGE_SET, key, replace(change_set, execution="OBSOLETE"))

    async def cancel_update_stack(self, call: Call, params: Structure) -> Structure:
        stack = await standing_stack(self._engine, call, params["StackName"])

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            if current.status != "UPDATE_IN_PROGRESS":
                raise invalid(
                    f"CancelUpdateStack cannot be called from current stack status {current.status}"
                )
            operation = await draft.get(OPERATION, current.key)
            if operation is not None and operation.state.active:
                draft.put(OPERATION, operation.key, replace(operation, state=OperationState.CANCELLING))

        await self._engine.resources.write(decide)
        return {}

    async def continue_update_rollback(self, call: Call, params: Structure) -> Structure:
        skipped = tuple(params.get("ResourcesToSkip") or ())
        await self._go_on(call, params, {"UPDATE_ROLLBACK_FAILED": "UPDATE_ROLLBACK_IN_PROGRESS"}, skipped)
        return {}

    async def rollback_stack(self, call: Call, params: Structure) -> Structure:
        leads = {"CREATE_FAILED": "ROLLBACK_IN_PROGRESS", "UPDATE_FAILED": "UPDATE_ROLLBACK_IN_PROGRESS"}
        return {"StackId": (await self._go_on(call, params, leads, ())).arn}

    async def _go_on(
        self, call: Call, params: Structure, leads: Mapping[str, str], skipped: tuple[str, ...]
    ) -> Stack:
        """Go on with a change that came to a stop, from a status to the one that it leads to."""
        stack = await standing_stack(self._engine, call, params["StackName"])
        role = await self._passed(call, params)

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            if current.status not in leads:
                raise not_updatable(current)
            status = leads[current.status]
            started_stack = replace(
                with_rights_of(current, call, role),
                status=status,
                deleted_at=call.now if status == "ROLLBACK_IN_PROGRESS" else current.deleted_at,
                reason="User Initiated",
                skipped=skipped,
                token=params.get("ClientRequestToken") or "",
            )
            await self._operations.begin_in(draft, started_stack, change=current.change)

        await self._engine.resources.write(decide)
        return stack

    # ---- deletion ----------------------------------------------------------------------------------------------------

    async def delete_stack(self, call: Call, params: Structure) -> Structure:
        stack = await find_stack(self._engine, call, params["StackName"])
        if stack is None or stack.status == "DELETE_COMPLETE":
            return {}
        role = await self._passed(call, params)
        await self._engine.resources.write(lambda draft: self._delete_in(draft, call, stack, role, params))
        return {}

    async def _delete_in(
        self, draft: Draft, call: Call, stack: Stack, role: str | None, params: Structure
    ) -> None:
        current = await current_stack_in(draft, stack)
        check_deletable(current, params)
        if current.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
            return
        if current.status == "CREATE_IN_PROGRESS":
            operation = await draft.get(OPERATION, current.key)
            if operation is not None and operation.state.active:
                draft.put(OPERATION, operation.key, replace(operation, state=OperationState.CANCELLING))
            draft.put(STACK, current.key, replace(with_rights_of(current, call, role), on_failure="DELETE"))
            return
        started_stack = replace(
            with_rights_of(current, call, role),
            status="DELETE_IN_PROGRESS",
            reason="User Initiated",
            token=params.get("ClientRequestToken") or "",
            retained=tuple(params.get("RetainResources") or ()),
            forced=params.get("DeletionMode") == "FORCE_DELETE_STACK",
        )
        for key, change_set in await draft.find(CHANGE_SET, f"{current.key}/"):
            if change_set.execution != "EXECUTE_COMPLETE":  # which is described still (recorded)
                draft.remove(CHANGE_SET, key)
        await self._operations.begin_in(draft, started_stack)

    async def update_termination_protection(self, call: Call, params: Structure) -> Structure:
        stack = await standing_stack(self._engine, call, params["StackName"])
        is_protected = bool(params["EnableTerminationProtection"])
        await self._engine.resources.documents.update(
            STACK, stack.key, lambda current: replace(current, protected=is_protected)
        )
        return {"StackId": stack.arn}

    # ---- what changes have in common ---------------------------------------------------------------------------------

    async def _passed(self, call: Call, params: Structure) -> str | None:
        """The role that a caller gives, which it may pass; None: it gives none."""
        role: str | None = params.get("RoleARN")
        if role:
            await self._services.roles.check(call, role)
        return role

    async def prepare(
        self, call: Call, params: Structure, name: ResourceName, identity: str, stack: Stack | None
    ) -> Prepared:
        """Check what a caller wants of a stack; `stack` is None for one that does not exist yet.

        Raises:
            AwsError: It cannot be done.
            TemplateInvalid: The template cannot be used.
        """
        role = await self._passed(call, params)
        check_triggers(params)
        body = await self._body(call, params, stack)
        source = await offload(call.account, lambda: read_body(body))
        declared = read_parameters(section(source, "Parameters"))
        before = stack.settings if stack else StackSettings("")
        request = new_stack(call, params, name, identity, before)
        texts, resolved = await choose_parameters(
            declared, params.get("Parameters") or (), before.parameters, self._services.ask_for(request)
        )
        settings = StackSettings(
            template=self._operations.new_id(),
            parameters=texts,
            resolved=resolved,
            tags=tags_of(params, before),
            capabilities=capabilities_of(params, before),
            topics=topics_of(params, before),
            role=role or before.role,
            rollback=params.get("RollbackConfiguration") or before.rollback,
        )
        includes = is_including(body)
        if includes:
            values = known_values(source, name, identity, settings)
            source = await with_included(source, values, self._services, call)
        carried_out = await expanded(source, name, identity, settings, self._services.translator)

        def work() -> Prepared:
            program = program_of(carried_out, name, identity, settings, self._services.types)
            check_types(program, params)
            return Prepared(settings, TemplateText(body, processed(program, includes=includes)), program)

        return await offload(call.account, work)

    async def _body(self, call: Call, params: Structure, stack: Stack | None) -> str:
        if params.get("UsePreviousTemplate") and stack is not None:
            return await self._programs.body(stack, stack.settings.template)
        body = await template_body(self._services, call, params)
        if not body:
            raise invalid("Either Template URL or Template Body must be specified.")
        return body


def new_stack(
    call: Call, params: Structure, name: ResourceName, identity: str, settings: StackSettings
) -> Stack:
    """A stack as its creation begins with it."""
    minutes = params.get("TimeoutInMinutes")
    on_failure = "DO_NOTHING" if params.get("DisableRollback") else params.get("OnFailure") or "ROLLBACK"
    if params.get("DisableRollback") and params.get("OnFailure"):
        raise invalid("You can specify either DisableRollback or OnFailure, but not both.")
    return Stack(
        name=name,
        id=identity,
        caller=call.principal.name,
        session=session_of(call.principal),
        status="CREATE_IN_PROGRESS",
        reason="User Initiated",
        created_at=call.now,
        settings=settings,
        token=params.get("ClientRequestToken") or "",
        on_failure=on_failure,
        deadline=call.now + minutes * _MINUTE_MS if minutes else 0,
        protected=bool(params.get("EnableTerminationProtection")),
        policy=params.get("StackPolicyBody") or "",
    )

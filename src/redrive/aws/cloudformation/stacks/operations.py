"""Operations that change stacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.policies import policy_in
from redrive.aws.cloudformation.changes.programs import (
    Programs,
    Services,
    choose_parameters,
    known_values,
    processed_text,
    program_of,
    template_body,
    translate_template,
    with_included_parts,
)
from redrive.aws.cloudformation.documents.errors import error, invalid
from redrive.aws.cloudformation.documents.history import CHANGE_SET
from redrive.aws.cloudformation.documents.lookup import (
    current_stack_in,
    find_stack,
    require_stack,
    stack_name,
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
from redrive.model.durations import MINUTE_MS
from redrive.model.names import ResourceName

NO_CHANGE: Final = "No updates are to be performed."


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """A requested change, checked: the settings that it leads to, the text of the template, and its program."""

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
        plan = await self.prepare(call, params, name, identity, None)
        check_capabilities(plan.program.template, params, expands=bool(plan.text.processed))
        token = params.get("ClientRequestToken") or ""
        stack = new_stack(call, params, name, identity, plan.settings)

        async def decide(draft: Draft) -> Stack:
            key = await draft.get(STACK_NAME, name.key)
            current: Stack | None = None
            if key is not None:
                current = await draft.get(STACK, key)
            if current is not None and token and current.token == token:
                return current
            if current is not None and current.status == REVIEW:
                return await self._create_reviewed_in(draft, current, stack, plan)
            if current is not None:
                raise error("AlreadyExistsException", f"Stack [{name.name}] already exists")
            draft.put(STACK_NAME, name.key, stack.key)
            draft.put(TEMPLATE, template_key(stack, plan.settings.template), plan.text)
            await self._operations.begin_in(draft, stack)
            return stack

        return {"StackId": (await self._engine.resources.write(decide)).arn}

    async def _create_reviewed_in(
        self, draft: Draft, reviewed: Stack, stack: Stack, plan: ChangePlan
    ) -> Stack:
        """Create a stack under review directly; the change set that was to create it stays, and is outdated."""
        stack = replace(stack, id=reviewed.id)
        draft.put(TEMPLATE, template_key(stack, plan.settings.template), plan.text)
        await self._operations.begin_in(draft, stack)
        await self._outdate_change_sets(draft, stack)
        return stack

    # ---- changes -----------------------------------------------------------------------------------------------------

    async def update_stack(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        token = params.get("ClientRequestToken") or ""
        if token and stack.token == token:
            return {"StackId": stack.arn}
        check_updatable(stack)
        plan = await self.prepare(call, params, stack.name, stack.id, stack)
        check_capabilities(plan.program.template, params, expands=bool(plan.text.processed))
        policies = [
            await policy_in(self._services, call, params, member)
            for member in ("StackPolicy", "StackPolicyDuringUpdate")
        ]
        may_repeat = stack.status == "UPDATE_FAILED"  # a failed update is tried again as it was
        if not may_repeat and not await preview(self._engine, stack, plan.settings, plan.program):
            raise invalid(NO_CHANGE)
        on_failure = "DO_NOTHING" if params.get("DisableRollback") else "ROLLBACK"
        await self.begin_update(call, stack, plan.settings, plan.text, on_failure, token, policies)
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
        """Begin an update of a stack.

        - `policies`: the stack's policy from now on, and one for this update only; empty: no new one.

        Raises:
            AwsError: Another operation began meanwhile.
        """
        policy, policy_during = policies

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            check_updatable(current)
            key = template_key(stack, settings.template)
            await draft.overwrite(TEMPLATE, key, text)
            after = replace(
                with_rights_of(current, call),
                status="UPDATE_IN_PROGRESS",
                reason="User Initiated",
                wanted=settings,
                on_failure=on_failure,
                token=token,
                updated_at=self._engine.clock.now(),
                policy=policy or current.policy,
                policy_during=policy_during,
                change_set="",  # no change set led to this update (recorded)
            )
            await self._operations.begin_in(draft, after)
            await self._outdate_change_sets(draft, current)

        await self._engine.resources.write(decide)

    async def _outdate_change_sets(self, draft: Draft, stack: Stack) -> None:
        """Make earlier change sets obsolete: they were computed from the stack as it was."""
        for key, change_set in await draft.find(CHANGE_SET, f"{stack.key}/"):
            if change_set.execution == "AVAILABLE":
                draft.put(CHANGE_SET, key, replace(change_set, execution="OBSOLETE"))

    async def cancel_update_stack(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])

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
        rollbacks = {"UPDATE_ROLLBACK_FAILED": "UPDATE_ROLLBACK_IN_PROGRESS"}
        skipped = tuple(params.get("ResourcesToSkip") or ())
        await self._continue_change(call, params, rollbacks, skipped=skipped)
        return {}

    async def rollback_stack(self, call: Call, params: Structure) -> Structure:
        rollbacks = {"CREATE_FAILED": "ROLLBACK_IN_PROGRESS", "UPDATE_FAILED": "UPDATE_ROLLBACK_IN_PROGRESS"}
        return {"StackId": (await self._continue_change(call, params, rollbacks, skipped=())).arn}

    async def _continue_change(
        self, call: Call, params: Structure, next_statuses: Mapping[str, str], *, skipped: tuple[str, ...]
    ) -> Stack:
        """Continue a change that stopped, with the status that follows the stack's; raises AwsError if none does."""
        stack = await require_stack(self._engine, call, params["StackName"])
        role = await self._role_to_pass(call, params)

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            if current.status not in next_statuses:
                raise not_updatable(current)
            status = next_statuses[current.status]
            after = replace(
                with_rights_of(current, call, role),
                status=status,
                # The rollback of a creation sets the time of deletion (recorded).
                deleted_at=call.now if status == "ROLLBACK_IN_PROGRESS" else current.deleted_at,
                reason="User Initiated",
                skipped=skipped,
                token=params.get("ClientRequestToken") or "",
            )
            await self._operations.begin_in(draft, after, change=current.change)

        await self._engine.resources.write(decide)
        return stack

    # ---- deletion ----------------------------------------------------------------------------------------------------

    async def delete_stack(self, call: Call, params: Structure) -> Structure:
        stack = await find_stack(self._engine, call, params["StackName"])
        if stack is None or stack.status == "DELETE_COMPLETE":
            return {}
        role = await self._role_to_pass(call, params)
        await self._engine.resources.write(lambda draft: self._delete_in(draft, call, stack, role, params))
        return {}

    async def _delete_in(
        self, draft: Draft, call: Call, stack: Stack, role: str | None, params: Structure
    ) -> None:
        """Begin to delete a stack; one whose creation goes on is deleted when that has ended."""
        current = await current_stack_in(draft, stack)
        check_deletable(current, params)
        if current.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
            return
        if current.status == "CREATE_IN_PROGRESS":  # the creation ends, and then deletes the stack
            operation = await draft.get(OPERATION, current.key)
            if operation is not None and operation.state.active:
                draft.put(OPERATION, operation.key, replace(operation, state=OperationState.CANCELLING))
            draft.put(STACK, current.key, replace(with_rights_of(current, call, role), on_failure="DELETE"))
            return
        after = replace(
            with_rights_of(current, call, role),
            status="DELETE_IN_PROGRESS",
            reason="User Initiated",
            token=params.get("ClientRequestToken") or "",
            retained=tuple(params.get("RetainResources") or ()),
            forced=params.get("DeletionMode") == "FORCE_DELETE_STACK",
        )
        for key, change_set in await draft.find(CHANGE_SET, f"{current.key}/"):
            if change_set.execution != "EXECUTE_COMPLETE":  # that one can still be described (recorded)
                draft.remove(CHANGE_SET, key)
        await self._operations.begin_in(draft, after)

    async def update_termination_protection(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        is_protected = bool(params["EnableTerminationProtection"])
        await self._engine.resources.documents.update(
            STACK, stack.key, lambda current: replace(current, protected=is_protected)
        )
        return {"StackId": stack.arn}

    # ---- what changes have in common ---------------------------------------------------------------------------------

    async def _role_to_pass(self, call: Call, params: Structure) -> str | None:
        """The role in a request; None: it has none. Raises AwsError if the caller may not pass the role."""
        role: str | None = params.get("RoleARN")
        if role:
            await self._services.roles.check(call, role)
        return role

    async def prepare(
        self, call: Call, params: Structure, name: ResourceName, identity: str, stack: Stack | None
    ) -> ChangePlan:
        """Check a request to create or change a stack; `stack` is None for one that does not exist yet.

        Raises:
            AwsError: The request is invalid.
            TemplateInvalid: The template cannot be used.
        """
        role = await self._role_to_pass(call, params)
        check_triggers(params)
        body = await self._body(call, params, stack)
        source = await offload(call.account, lambda: read_body(body))
        definitions = read_parameters(section(source, "Parameters"))
        before = stack.settings if stack else StackSettings("")
        request = new_stack(call, params, name, identity, before)
        texts, resolved = await choose_parameters(
            definitions, params.get("Parameters") or (), before.parameters, self._services.ask_for(request)
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
            source = await with_included_parts(source, values, self._services, call)
        expanded_source = await translate_template(
            source, name, identity, settings, self._services.translator
        )

        def work() -> ChangePlan:
            program = program_of(expanded_source, name, identity, settings, self._services.types)
            check_types(program, params)
            return ChangePlan(
                settings, TemplateText(body, processed_text(program, includes=includes)), program
            )

        return await offload(call.account, work)

    async def _body(self, call: Call, params: Structure, stack: Stack | None) -> str:
        """The text of the template that a request names; raises AwsError if it names none."""
        if params.get("UsePreviousTemplate") and stack is not None:
            return await self._programs.body(stack, stack.settings.template)
        body = await template_body(self._services, call, params)
        if not body:
            raise invalid("Either Template URL or Template Body must be specified.")
        return body


def new_stack(
    call: Call, params: Structure, name: ResourceName, identity: str, settings: StackSettings
) -> Stack:
    """A stack at the beginning of its creation; raises AwsError if the request contradicts itself."""
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
        deadline=call.now + minutes * MINUTE_MS if minutes else 0,
        protected=bool(params.get("EnableTerminationProtection")),
        policy=params.get("StackPolicyBody") or "",
    )

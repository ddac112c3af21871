"""Change sets: changes that are reviewed before they are executed."""

from dataclasses import replace
from typing import Any, Final

from redrive.aws.cloudformation.changes.journal import put_events
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.programs import Programs
from redrive.aws.cloudformation.documents.errors import PAGES, error, invalid, no_stack
from redrive.aws.cloudformation.documents.history import CHANGE_SET, ChangeSet
from redrive.aws.cloudformation.documents.lookup import (
    current_stack_in,
    find_change_set,
    find_stack,
    require_stack,
    stack_name,
)
from redrive.aws.cloudformation.documents.records import (
    REVIEW,
    STACK,
    STACK_NAME,
    TEMPLATE,
    Stack,
    StackSettings,
    change_set_arn,
    check_name,
    check_updatable,
    is_in_progress,
    template_key,
    with_rights_of,
)
from redrive.aws.cloudformation.stacks.describing import parameter_descriptions
from redrive.aws.cloudformation.stacks.operations import ChangePlan, StackChanges, new_stack
from redrive.aws.cloudformation.stacks.preview import preview, without_values
from redrive.aws.cloudformation.stacks.requests import EXPAND, missing_capabilities
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

NO_CHANGES: Final = (
    "The submitted information didn't contain changes. Submit different information to create a change set."
)


class ChangeSetOperations:
    """Makes, shows, carries out and deletes change sets."""

    def __init__(self, engine: Engine, changes: StackChanges, operations: StackOperations) -> None:
        self._engine = engine
        self._changes = changes
        self._operations = operations
        self._programs = Programs(engine)

    async def create_change_set(self, call: Call, params: Structure) -> Structure:
        kind, name = params.get("ChangeSetType") or "UPDATE", params["ChangeSetName"]
        check_name("changeSetName", name)
        current = await find_stack(self._engine, call, params["StackName"])
        if current is not None and current.status == "DELETE_COMPLETE":
            if kind == "CREATE" and params["StackName"].startswith("arn:"):
                raise _stack_exists(params["StackName"], name)
            current = None
        if kind == "IMPORT":
            raise invalid("Importing resources is not offered by this server.")
        stack = await self._stack_to_change(call, params, kind, current)
        exists = current is not None and current.status != REVIEW
        plan = await self._changes.prepare(call, params, stack.name, stack.id, current if exists else None)
        missing = [
            capability
            for capability in missing_capabilities(plan.program.template, params.get("Capabilities") or ())
            if capability != EXPAND
        ]
        if missing:
            raise error(
                "InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(missing)}]"
            )
        change_set = await self._preview(call, params, kind, stack, plan)
        await self._engine.resources.write(
            lambda draft: self._create_in(draft, stack, change_set, plan, is_new=current is None)
        )
        return {"Id": _arn(stack, change_set), "StackId": stack.arn}

    async def _stack_to_change(
        self, call: Call, params: Structure, kind: str, current: Stack | None
    ) -> Stack:
        """The stack that a change set is for: an existing one, or a new one that is to be reviewed first."""
        name = stack_name(call, params["StackName"])
        if current is None:
            if kind != "CREATE":
                raise no_stack(params["StackName"])
            check_name("stackName", name.name)
            stack = new_stack(call, {}, name, self._operations.new_id(), StackSettings(""))
            return replace(stack, status=REVIEW, told_at=self._engine.clock.now())
        if kind == "CREATE" and current.status != REVIEW:
            raise _stack_exists(current.name.name, params["ChangeSetName"])
        if current.status != REVIEW:
            check_updatable(current)
        return current

    async def _preview(
        self, call: Call, params: Structure, kind: str, stack: Stack, plan: ChangePlan
    ) -> ChangeSet:
        """The change set of a plan with its changes; failed if there are none."""
        changes = await preview(self._engine, stack, plan.settings, plan.program)
        resource_changes = tuple(change for change in changes if change["Type"] == "Resource")
        change_set = ChangeSet(
            name=params["ChangeSetName"],
            id=self._operations.new_id(),
            stack=stack.key,
            kind=kind,
            created_at=call.now,
            settings=plan.settings,
            description=params.get("Description") or "",
            changes=resource_changes,
            on_failure=params.get("OnStackFailure") or "",
            nested=bool(params.get("IncludeNestedStacks")),
            token=params.get("ClientToken") or "",
        )
        if changes:  # also if they are of outputs or tags alone, which are not listed
            return change_set
        return replace(change_set, status="FAILED", execution="UNAVAILABLE", reason=NO_CHANGES)

    async def _create_in(
        self, draft: Draft, stack: Stack, change_set: ChangeSet, plan: ChangePlan, *, is_new: bool
    ) -> None:
        """Write a change set and its template, and a stack that is new; raises AwsError if a name is taken."""
        if is_new:
            if await draft.get(STACK_NAME, stack.name.key) is not None:
                raise error("AlreadyExistsException", f"Stack [{stack.name.name}] already exists")
            draft.put(STACK_NAME, stack.name.key, stack.key)
            draft.put(STACK, stack.key, stack)
            await put_events(draft, self._engine, stack, [self._operations.event(stack)])
        for _, other in await draft.find(CHANGE_SET, f"{stack.key}/"):
            if other.name == change_set.name and other.execution != "EXECUTE_COMPLETE":
                raise error("AlreadyExistsException", f"ChangeSet {other.name} already exists")
        draft.put(TEMPLATE, template_key(stack, plan.settings.template), plan.text)
        draft.put(CHANGE_SET, change_set.key, change_set)

    async def describe_change_set(self, call: Call, params: Structure) -> Structure:
        change_set, stack = await self._read(call, params)
        settings = change_set.settings
        values = await parameter_descriptions(self._programs, stack, settings)
        page, token = PAGES.cut("DescribeChangeSet", params, change_set.changes)
        if not params.get("IncludePropertyValues"):
            page = [without_values(change) for change in page]
        tags = [{"Key": key, "Value": value} for key, value in settings.tags.items()]
        description: dict[str, Any] = _summary(stack, change_set) | {
            **({"Parameters": values} if values else {}),
            **({"Tags": tags} if tags else {}),
            "NotificationARNs": list(settings.topics),
            "RollbackConfiguration": dict(settings.rollback),
            "Capabilities": list(settings.capabilities),
            "Changes": list(page),
            **token,
        }
        if change_set.on_failure:
            description["OnStackFailure"] = change_set.on_failure
        return description

    async def list_change_sets(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        change_sets = await self._engine.resources.documents.find(CHANGE_SET, f"{stack.key}/")
        unexecuted = [each for each in change_sets if each.execution != "EXECUTE_COMPLETE"]
        return PAGES.of("ListChangeSets", params, unexecuted, lambda each: _summary(stack, each))

    async def describe_change_set_hooks(self, call: Call, params: Structure) -> Structure:
        change_set, stack = await self._read(call, params)
        return {
            "ChangeSetId": _arn(stack, change_set),
            "ChangeSetName": change_set.name,
            "Hooks": [],
            "Status": "PLANNED",
            "StackId": stack.arn,
            "StackName": stack.name.name,
        }

    async def execute_change_set(self, call: Call, params: Structure) -> Structure:
        change_set, stack = await self._read(call, params)
        on_failure = change_set.on_failure or "ROLLBACK"
        if params.get("DisableRollback"):
            on_failure = "DO_NOTHING"
        token = params.get("ClientRequestToken") or ""

        async def decide(draft: Draft) -> None:
            current = await current_stack_in(draft, stack)
            stored = await draft.get(CHANGE_SET, change_set.key)
            if stored is None or stored.execution != "AVAILABLE":
                status = change_set.status if stored is None else stored.status
                text = f"ChangeSet [{_arn(stack, change_set)}] cannot be executed in its current status of [{status}]"
                raise error("InvalidChangeSetStatus", text)
            is_new = current.status == REVIEW
            if not is_new:
                check_updatable(current)
            after = replace(
                with_rights_of(current, call),
                status="CREATE_IN_PROGRESS" if is_new else "UPDATE_IN_PROGRESS",
                reason="User Initiated",
                settings=stored.settings if is_new else current.settings,
                wanted=None if is_new else stored.settings,
                on_failure=on_failure,
                token=token,
                change_set=_arn(stack, change_set),
                policy_during="",
                updated_at=self._engine.clock.now(),
            )
            await self._operations.begin_in(draft, after)
            for key, other in await draft.find(CHANGE_SET, f"{current.key}/"):
                if other.id == stored.id:
                    draft.put(CHANGE_SET, key, replace(stored, execution="EXECUTE_COMPLETE"))
                elif other.execution == "AVAILABLE":
                    draft.put(CHANGE_SET, key, replace(other, execution="OBSOLETE"))

        await self._engine.resources.write(decide)
        return {}

    async def delete_change_set(self, call: Call, params: Structure) -> Structure:
        name = params["ChangeSetName"]
        if not name.startswith("arn:") and params.get("StackName"):
            await require_stack(self._engine, call, params["StackName"])
        try:
            change_set, _ = await self._read(call, params)
        except AwsError as refusal:
            if refusal.code == "ChangeSetNotFoundException":
                return {}
            raise
        await self._engine.resources.documents.remove(CHANGE_SET, change_set.key)
        return {}

    async def _read(self, call: Call, params: Structure) -> tuple[ChangeSet, Stack]:
        """The change set that a request names, and its stack; raises AwsError."""
        change_set = await find_change_set(
            self._engine, call, params["ChangeSetName"], params.get("StackName")
        )
        stack = await self._engine.resources.documents.get(STACK, change_set.stack)
        if stack is None:
            raise no_stack(change_set.stack)
        return change_set, stack


def _stack_exists(stack: str, change_set: str) -> AwsError:
    return invalid(
        f"Stack [{stack}] already exists and cannot be created again with the changeSet [{change_set}]."
    )


def _arn(stack: Stack, change_set: ChangeSet) -> str:
    return change_set_arn(stack.name, change_set.name, change_set.id)


def _execution_status(stack: Stack, change_set: ChangeSet) -> str:
    """The status of its execution, which is complete when the change of the stack is (recorded)."""
    is_last = stack.change_set == _arn(stack, change_set)
    if change_set.execution == "EXECUTE_COMPLETE" and is_last and is_in_progress(stack):
        return "EXECUTE_IN_PROGRESS"
    return change_set.execution


def _summary(stack: Stack, change_set: ChangeSet) -> dict[str, Any]:
    """A change set as lists have it."""
    description = {
        "ChangeSetName": change_set.name,
        "ChangeSetId": _arn(stack, change_set),
        "StackId": stack.arn,
        "StackName": stack.name.name,
        "CreationTime": change_set.created_at,
        "ExecutionStatus": _execution_status(stack, change_set),
        "Status": change_set.status,
        "StatusReason": change_set.reason,
        "Description": change_set.description,
        "IncludeNestedStacks": change_set.nested,
    }
    return {name: value for name, value in description.items() if value != ""}

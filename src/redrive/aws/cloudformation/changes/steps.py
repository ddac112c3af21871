"""Steps: a resource is created, updated or replaced as its template says, or restored to what it was."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.changes.journal import event_of
from redrive.aws.cloudformation.changes.policies import allows, denial
from redrive.aws.cloudformation.changes.step_parts import CANCELLED, AttemptRefused, StepParts, leftover_of
from redrive.aws.cloudformation.changes.values import StackValues, evaluated_or_raw
from redrive.aws.cloudformation.documents.history import StackEvent
from redrive.aws.cloudformation.documents.records import Leftover, ResourceSnapshot, StackResource
from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid
from redrive.aws.cloudformation.template.sections import ResourceDefinition
from redrive.aws.cloudformation.types.calls import Ask, ResourceSpec, ResourceState, changed_properties
from redrive.aws.cloudformation.types.resource_type import ResourceType
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.offloading import offload

REPLACING: Final = "Requested update requires the creation of a new physical resource; hence creating one."
INITIATED: Final = "Resource creation Initiated"


def _typed_properties(definition: ResourceDefinition, values: StackValues) -> dict[str, Any]:
    return type_of(definition.type).schema.typed(values.properties(definition))


class Steps(StepParts):
    """The steps that lead to what a template says, and back."""

    # ---- making and changing -----------------------------------------------------------------------------------------

    async def bring_up(self, name: str, values: StackValues) -> None:
        """Create or update a resource as its template says; raises StepFailed if that failed."""
        definition, current = values.program.resources[name], self.resources.get(name)
        change = self._stack.change
        if current is not None and current.status == "DELETE_COMPLETE":
            is_new = True
        elif current is not None and current.change == change and current.status.endswith("_COMPLETE"):
            return  # done before an interruption
        else:  # what this change itself began to create is still new
            is_new = current is None or current.born == change
        earlier_imports = set(values.imported)
        try:
            properties = await offload(
                self._stack.name.account, lambda: _typed_properties(definition, values), patient=True
            )
        except (TemplateInvalid, NotYetKnown) as refusal:
            await self._raise_unusable(definition, values, current, str(refusal), is_new=is_new)
        imports = values.imported - earlier_imports
        after = self._as_defined(definition, values, properties)
        if is_new or current is None:
            is_resumed = (
                current is not None and current.status == "CREATE_IN_PROGRESS" and current.change == change
            )
            await self._create(after, current if is_resumed else None, imports, definition.creation_policy)
        else:
            await self._change(after, current, imports)

    def _as_defined(
        self, definition: ResourceDefinition, values: StackValues, properties: Mapping[str, Any]
    ) -> StackResource:
        """A new resource as its template defines it, without a name and a physical id yet."""
        return StackResource(
            logical_id=definition.logical_id,
            type=definition.type,
            name="",
            status="CREATE_IN_PROGRESS",
            updated_at=self._journal.now,
            properties=properties,
            policy=str(evaluated_or_raw(definition.deletion_policy, values)),
            replace_policy=str(evaluated_or_raw(definition.replace_policy, values)),
            depends_on=tuple(values.program.dependencies[definition.logical_id]),
            change=self._stack.change,
            born=self._stack.change,
            metadata=definition.metadata,
        )

    async def _raise_unusable(
        self,
        definition: ResourceDefinition,
        values: StackValues,
        current: StackResource | None,
        reason: str,
        *,
        is_new: bool,
    ) -> NoReturn:
        """Fail as the properties cannot be used; an existing resource stays as it is."""
        if current is None or is_new:
            failed = self._as_defined(definition, values, {})
            failed = replace(failed, name=current.name if current else "")
            await self._raise_failed(failed, "CREATE_FAILED", reason)
        before = current.before if current.change == self._stack.change else current.snapshot
        failed = replace(current, before=before, change=self._stack.change)
        await self._raise_failed(failed, "UPDATE_FAILED", reason)

    async def _create(
        self,
        after: StackResource,
        attempt: StackResource | None,
        imports: set[str],
        policy: Mapping[str, Any],
    ) -> None:
        """Create a resource; `attempt`: as an interrupted attempt of this step left it, None: it is the first."""
        kind = type_of(after.type)
        name = attempt.name if attempt else self._name(kind, after)
        after = replace(after, name=name, physical_id=attempt.physical_id if attempt else "")
        if attempt is None:
            await self._write(after, event_of(self._stack, after, after.updated_at), imports=imports)
        spec = self._spec(after, may_exist=attempt is not None)
        try:
            resource_state = await self._attempt(kind, kind.create, spec)
        except AttemptRefused as refusal:
            if refusal.is_uncreated:  # a rollback would remove what has the name already
                after = replace(after, name="")
            events = []
            if refusal.physical_id:
                after = replace(after, physical_id=refusal.physical_id)
                events = [event_of(self._stack, after, self._journal.now, reason=INITIATED)]
            await self._raise_failed(after, "CREATE_FAILED", refusal.reason, *events)
        created_at = self._journal.now
        after = replace(
            after,
            physical_id=resource_state.physical_id,
            attributes=resource_state.attributes,
            updated_at=created_at,
        )
        start = event_of(self._stack, after, created_at, reason=INITIATED)
        if reason := await self._await_signals(after, policy):
            await self._raise_failed(after, "CREATE_FAILED", reason, start)
        if self.is_over:
            await self._raise_failed(after, "CREATE_FAILED", CANCELLED, start)
        after = replace(after, status="CREATE_COMPLETE")
        await self._write(after, start, event_of(self._stack, after, created_at))

    async def _change(self, after: StackResource, current: StackResource, imports: set[str]) -> None:
        """Update or replace a resource whose definition differs, if the stack policy allows it; raises StepFailed."""
        change = self._stack.change
        # Where an earlier attempt of this step has changed the resource, it stored what was there before.
        stored_before = current.before if current.change == change else None
        before = current.snapshot if stored_before is None else stored_before
        is_resumed = stored_before is not None and current.status == "UPDATE_IN_PROGRESS"
        after = replace(
            after,
            name=before.name,
            physical_id=before.physical_id,
            attributes=before.attributes,
            born=current.born,
            before=before,
            leftovers=current.leftovers,
            status="UPDATE_IN_PROGRESS",
        )
        changed_names = changed_properties(before.properties, after.properties)
        if not changed_names and after.type == current.type:
            # Its metadata or policies may differ, which is written without an event.
            after = replace(after, status=before.status, updated_at=current.updated_at, change=change)
            if after != replace(current, before=before, change=change):
                await self._write(after, imports=imports)
            return
        kind = type_of(after.type)
        if after.type != current.type:
            await self._raise_failed(
                after,
                "UPDATE_FAILED",
                f"Update of resource type is not permitted. The new type {after.type} is not {current.type}.",
            )
        try:
            create_only_names = kind.create_only_names(changed_names, before.properties)
        except TemplateInvalid as refusal:
            await self._raise_failed(after, "UPDATE_FAILED", str(refusal))
        action = "Update:Replace" if create_only_names else "Update:Modify"
        policy = self._stack.policy_during or self._stack.policy
        if not allows(policy, action, after.logical_id, after.type):
            await self._raise_failed(after, "UPDATE_FAILED", denial(action, after.logical_id))
        if create_only_names:
            await self._replace(kind, after, before, current if is_resumed else None, imports)
        else:
            await self._update(kind, after, before, imports, is_resumed=is_resumed)

    async def _update(
        self,
        kind: ResourceType,
        after: StackResource,
        before: ResourceSnapshot,
        imports: set[str],
        *,
        is_resumed: bool,
    ) -> None:
        """Update a resource in place; what the service replaced by itself becomes a leftover."""
        if not is_resumed:
            await self._write(after, event_of(self._stack, after, after.updated_at), imports=imports)

        async def update(ask: Ask, spec: ResourceSpec) -> ResourceState:
            return await kind.update(ask, spec, before.properties)

        try:
            resource_state = await self._attempt(kind, update, self._spec(after, may_exist=is_resumed))
        except AttemptRefused as refusal:
            await self._raise_failed(after, "UPDATE_FAILED", refusal.reason)
        leftovers = after.leftovers
        if resource_state.physical_id != before.physical_id:  # a custom resource may do that
            leftovers = (*leftovers, leftover_of(after.type, before))
        await self._complete(replace(after, leftovers=leftovers), resource_state)

    async def _replace(
        self,
        kind: ResourceType,
        after: StackResource,
        before: ResourceSnapshot,
        attempt: StackResource | None,
        imports: set[str],
    ) -> None:
        """Create the resource that replaces one; `attempt`: an interrupted one as it was left, or None."""
        at = after.updated_at
        has_new_name = attempt is not None and attempt.name != before.name
        name = attempt.name if attempt is not None and has_new_name else self._name(kind, after)
        if kind.name_property in after.properties and name == before.name:
            text = "CloudFormation cannot update a stack when a custom-named resource requires replacing."
            text += f" Rename {name} and update the stack again."
            await self._raise_failed(after, "UPDATE_FAILED", text)
        events = [event_of(self._stack, after, at), event_of(self._stack, after, at, reason=REPLACING)]
        after = replace(after, name=name, physical_id="")
        await self._write(after, *([] if attempt else events), imports=imports)
        try:
            resource_state = await self._attempt(
                kind, kind.create, self._spec(after, may_exist=attempt is not None)
            )
        except AttemptRefused as refusal:
            if refusal.is_uncreated:
                after = replace(after, name=before.name)
            failed = replace(after, physical_id=before.physical_id)
            await self._raise_failed(failed, "UPDATE_FAILED", refusal.reason)
        leftovers = (*after.leftovers, leftover_of(after.type, before))
        after = replace(after, physical_id=resource_state.physical_id, leftovers=leftovers)
        start = event_of(self._stack, after, self._journal.now, reason=INITIATED)
        await self._complete(after, resource_state, start)

    async def _complete(
        self, after: StackResource, resource_state: ResourceState, *events: StackEvent
    ) -> None:
        """Write a resource as updated, with the state that its service told."""
        at = self._journal.now
        after = replace(
            after,
            status="UPDATE_COMPLETE",
            physical_id=resource_state.physical_id,
            attributes=resource_state.attributes,
            updated_at=at,
            reason="",
        )
        await self._write(after, *events, event_of(self._stack, after, at))

    # ---- putting back ------------------------------------------------------------------------------------------------

    async def restore(self, name: str) -> None:
        """Bring a resource back to what it was before the change; raises StepFailed if that failed."""
        current = self.resources[name]
        before = current.before
        if before is None or current.change != self._stack.change or name in self._stack.skipped:
            return
        has_same_id = current.physical_id in ("", before.physical_id)
        leftovers = tuple(each for each in current.leftovers if each.physical_id != before.physical_id)
        if current.name != before.name or not has_same_id:  # its replacement is to be deleted
            replacement_id = "" if has_same_id else current.physical_id
            replacement = Leftover(current.type, current.name, replacement_id, current.properties)
            leftovers = leftovers if replacement in leftovers else (*leftovers, replacement)
        after = replace(
            current,
            name=before.name,
            physical_id=before.physical_id,
            properties=before.properties,
            attributes=before.attributes,
            policy=before.policy,
            replace_policy=before.replace_policy,
            depends_on=before.depends_on,
            leftovers=leftovers,
            reason="",
            status="UPDATE_IN_PROGRESS",
            updated_at=self._journal.now,
        )
        if current.properties == before.properties and current.status in (
            "CREATE_COMPLETE",
            "UPDATE_COMPLETE",
        ):
            await self._write(replace(after, status=before.status))
            return
        # Only the event is written: until the step is done, the resource is as the change left it.
        await self._journal.write_resource(current, event_of(self._stack, after, self._journal.now))
        if current.name == before.name and has_same_id:
            await self._update_back(after, current)
        after = replace(after, status="UPDATE_COMPLETE", updated_at=self._journal.now)
        await self._write(after, event_of(self._stack, after, after.updated_at))

    async def _update_back(self, after: StackResource, current: StackResource) -> None:
        """Update a resource from its current state back to an earlier one (`after`)."""
        kind = type_of(after.type)

        async def update(ask: Ask, spec: ResourceSpec) -> ResourceState:
            return await kind.update(ask, spec, current.properties)

        try:
            await self._attempt(kind, update, self._spec(after, may_exist=True))
        except AttemptRefused as refusal:
            unchanged = replace(current, physical_id=after.physical_id)
            await self._raise_failed(unchanged, "UPDATE_FAILED", refusal.reason)

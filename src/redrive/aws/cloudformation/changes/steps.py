"""Steps: a resource is created, updated or replaced as its template says, or restored to what it was."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.changes.journal import event_of
from redrive.aws.cloudformation.changes.policies import allows, denied
from redrive.aws.cloudformation.changes.step_parts import CANCELLED, AttemptRefused, StepParts, leftover_of
from redrive.aws.cloudformation.changes.values import StackValues, known_value
from redrive.aws.cloudformation.documents.history import StackEvent
from redrive.aws.cloudformation.documents.records import Before, Leftover, StackResource
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
        """Make a resource, or change it, as its template says; raises StepFailed if it could not be done."""
        definition, current = values.program.resources[name], self.resources.get(name)
        change = self._stack.change
        done = current is not None and current.change == change and current.status.endswith("_COMPLETE")
        if done and current is not None and current.status != "DELETE_COMPLETE":
            return
        born_here = current is None or current.born == change or current.status == "DELETE_COMPLETE"
        imported = set(values.imported)
        try:
            typed = await offload(
                self._stack.name.account, lambda: _typed_properties(definition, values), patient=True
            )
        except (TemplateInvalid, NotYetKnown) as refusal:
            await self._refused(definition, values, current, str(refusal), born_here=born_here)
        used = values.imported - imported
        after = self._as_defined(definition, values, typed)
        if born_here or current is None:
            again = (
                current is not None and current.status == "CREATE_IN_PROGRESS" and current.change == change
            )
            await self._create(after, current if again else None, used, definition.creation_policy)
        else:
            await self._change(after, current, used)

    def _as_defined(
        self, definition: ResourceDefinition, values: StackValues, properties: Mapping[str, Any]
    ) -> StackResource:
        return StackResource(
            logical_id=definition.logical_id,
            type=definition.type,
            name="",
            status="CREATE_IN_PROGRESS",
            updated_at=self._journal.now,
            properties=properties,
            policy=str(known_value(definition.deletion_policy, values)),
            replace_policy=str(known_value(definition.replace_policy, values)),
            depends_on=tuple(values.program.dependencies[definition.logical_id]),
            change=self._stack.change,
            born=self._stack.change,
            metadata=definition.metadata,
        )

    async def _refused(
        self,
        definition: ResourceDefinition,
        values: StackValues,
        current: StackResource | None,
        reason: str,
        *,
        born_here: bool,
    ) -> NoReturn:
        """The properties cannot be used; what is there stays as it is."""
        if current is None or born_here:
            failed = self._as_defined(definition, values, {})
            await self._fail(replace(failed, name=current.name if current else ""), "CREATE_FAILED", reason)
        before = current.before if current.change == self._stack.change else current.as_it_is
        await self._fail(replace(current, before=before, change=self._stack.change), "UPDATE_FAILED", reason)

    async def _create(
        self, after: StackResource, begun: StackResource | None, used: set[str], policy: Mapping[str, Any]
    ) -> None:
        kind = type_of(after.type)
        name = begun.name if begun else self._name(kind, after)
        after = replace(after, name=name, physical_id=begun.physical_id if begun else "")
        if begun is None:
            await self._write(after, event_of(self._stack, after, after.updated_at), used=used)
        spec = self._spec(after, may_exist=begun is not None)
        try:
            resource_state = await self._attempt(kind, kind.create, spec)
        except AttemptRefused as refusal:
            if refusal.taken:  # not this stack's: nothing was created that could be removed
                after = replace(after, name="")
            events = []
            if refusal.physical_id:
                after = replace(after, physical_id=refusal.physical_id)
                events = [event_of(self._stack, after, self._journal.now, reason=INITIATED)]
            await self._fail(after, "CREATE_FAILED", refusal.reason, *events)
        made_at = self._journal.now
        after = replace(
            after,
            physical_id=resource_state.physical_id,
            attributes=resource_state.attributes,
            updated_at=made_at,
        )
        started = event_of(self._stack, after, made_at, reason=INITIATED)
        if reason := await self._await_signals(after, policy):
            await self._fail(after, "CREATE_FAILED", reason, started)
        if self.is_over:
            await self._fail(after, "CREATE_FAILED", CANCELLED, started)
        after = replace(after, status="CREATE_COMPLETE")
        await self._write(after, started, event_of(self._stack, after, made_at))

    async def _change(self, after: StackResource, current: StackResource, used: set[str]) -> None:
        change = self._stack.change
        touched = current.change == change and current.before is not None
        was = current.before if touched and current.before is not None else current.as_it_is
        begun = touched and current.status == "UPDATE_IN_PROGRESS"
        after = replace(
            after,
            name=was.name,
            physical_id=was.physical_id,
            attributes=was.attributes,
            born=current.born,
            before=was,
            leftovers=current.leftovers,
            status="UPDATE_IN_PROGRESS",
        )
        changed = changed_properties(was.properties, after.properties)
        if not changed and after.type == current.type:
            quiet = replace(after, status=was.status, updated_at=current.updated_at, change=change)
            if quiet != replace(current, before=was, change=change):
                await self._write(quiet, used=used)
            return
        kind = type_of(after.type)
        if after.type != current.type:
            await self._fail(
                after,
                "UPDATE_FAILED",
                f"Update of resource type is not permitted. The new type {after.type} is not {current.type}.",
            )
        try:
            replacing = kind.replacing(changed, was.properties)
        except TemplateInvalid as refusal:
            await self._fail(after, "UPDATE_FAILED", str(refusal))
        action = "Update:Replace" if replacing else "Update:Modify"
        policy = self._stack.policy_during or self._stack.policy
        if not allows(policy, action, after.logical_id, after.type):
            await self._fail(after, "UPDATE_FAILED", denied(action, after.logical_id))
        if replacing:
            await self._replace(kind, after, was, current if begun else None, used)
        else:
            await self._update(kind, after, was, used, begun=begun)

    async def _update(
        self, kind: ResourceType, after: StackResource, was: Before, used: set[str], *, begun: bool
    ) -> None:
        if not begun:
            await self._write(after, event_of(self._stack, after, after.updated_at), used=used)

        async def update(ask: Ask, spec: ResourceSpec) -> ResourceState:
            return await kind.update(ask, spec, was.properties)

        try:
            resource_state = await self._attempt(kind, update, self._spec(after, may_exist=begun))
        except AttemptRefused as refusal:
            await self._fail(after, "UPDATE_FAILED", refusal.reason)
        leftovers = after.leftovers
        if resource_state.physical_id != was.physical_id:  # a custom resource may do that
            leftovers = (*leftovers, leftover_of(after.type, was))
        await self._complete(replace(after, leftovers=leftovers), resource_state)

    async def _replace(
        self,
        kind: ResourceType,
        after: StackResource,
        was: Before,
        begun: StackResource | None,
        used: set[str],
    ) -> None:
        at = after.updated_at
        name = begun.name if begun and begun.name != was.name else self._name(kind, after)
        if kind.name_property in after.properties and name == was.name:
            text = "CloudFormation cannot update a stack when a custom-named resource requires replacing."
            await self._fail(after, "UPDATE_FAILED", f"{text} Rename {name} and update the stack again.")
        events = [event_of(self._stack, after, at), event_of(self._stack, after, at, reason=REPLACING)]
        after = replace(after, name=name, physical_id="")
        await self._write(after, *([] if begun else events), used=used)
        try:
            resource_state = await self._attempt(
                kind, kind.create, self._spec(after, may_exist=begun is not None)
            )
        except AttemptRefused as refusal:
            if refusal.taken:
                after = replace(after, name=was.name)
            await self._fail(replace(after, physical_id=was.physical_id), "UPDATE_FAILED", refusal.reason)
        leftovers = (*after.leftovers, leftover_of(after.type, was))
        started = replace(after, physical_id=resource_state.physical_id, leftovers=leftovers)
        await self._complete(
            started, resource_state, event_of(self._stack, started, self._journal.now, reason=INITIATED)
        )

    async def _complete(
        self, after: StackResource, resource_state: ResourceState, *events: StackEvent
    ) -> None:
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
        """Bring a resource back to what it was before the change; raises StepFailed if it could not be done."""
        current = self.resources[name]
        was = current.before
        if was is None or current.change != self._stack.change or name in self._stack.skipped:
            return
        leftovers = tuple(
            leftover for leftover in current.leftovers if leftover.physical_id != was.physical_id
        )
        if current.name != was.name or (current.physical_id and current.physical_id != was.physical_id):
            new_id = "" if current.physical_id == was.physical_id else current.physical_id
            new = Leftover(current.type, current.name, new_id, current.properties)
            leftovers = leftovers if new in leftovers else (*leftovers, new)
        back = replace(
            current,
            name=was.name,
            physical_id=was.physical_id,
            properties=was.properties,
            attributes=was.attributes,
            policy=was.policy,
            replace_policy=was.replace_policy,
            depends_on=was.depends_on,
            leftovers=leftovers,
            reason="",
            status="UPDATE_IN_PROGRESS",
            updated_at=self._journal.now,
        )
        if current.properties == was.properties and current.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            await self._write(replace(back, status=was.status))
            return
        await self._journal_only(event_of(self._stack, back, self._journal.now), back)
        if current.name == was.name and current.physical_id in ("", was.physical_id):
            await self._put_back(back, current)
        done = replace(back, status="UPDATE_COMPLETE", updated_at=self._journal.now)
        await self._write(done, event_of(self._stack, done, done.updated_at))

    async def _put_back(self, back: StackResource, current: StackResource) -> None:
        kind = type_of(back.type)

        async def update(ask: Ask, spec: ResourceSpec) -> ResourceState:
            return await kind.update(ask, spec, current.properties)

        try:
            await self._attempt(kind, update, self._spec(back, may_exist=True))
        except AttemptRefused as refusal:
            failed = replace(current, physical_id=back.physical_id)
            await self._fail(failed, "UPDATE_FAILED", refusal.reason)

    async def _journal_only(self, event: StackEvent, back: StackResource) -> None:
        """Tell of a step whose resource is written when it is done: until then it is as the change left it."""
        await self._journal.resource(self.resources[back.logical_id], event)

"""Steps that remove: a resource, and what it replaced."""

from dataclasses import replace

from redrive.aws.cloudformation.changes.journal import event_of
from redrive.aws.cloudformation.changes.step_parts import AttemptRefused, StepParts
from redrive.aws.cloudformation.documents.records import Leftover, StackResource
from redrive.aws.cloudformation.types.resource_type import Ask, ResourceSpec, ResourceState
from redrive.aws.cloudformation.types.table import type_of


class ResourceRemoval(StepParts):
    """The steps that remove the resources of a stack."""

    async def remove(self, name: str, *, forget: bool = False) -> None:
        """Remove a resource, and what it replaced.

        Args:
            name: Its logical id.
            forget: The stack goes on without it.

        Raises:
            StepFailed: It could not be removed.
        """
        current = self.resources[name]
        await self.clear_leftovers(name)
        current = self.resources[name]
        if current.status in {"DELETE_COMPLETE", "DELETE_SKIPPED"}:
            return
        if self._is_kept(current):
            await self._finish(replace(current, status="DELETE_SKIPPED"), forget=forget)
            return
        was_made = bool(current.physical_id) or current.status != "CREATE_FAILED"
        if current.name or current.physical_id:
            current = replace(current, status="DELETE_IN_PROGRESS", reason="", updated_at=self._journal.now)
            await self._write(current, event_of(self._stack, current, current.updated_at))
            reason = await self._delete(
                current, Leftover(current.type, current.name, current.physical_id, current.properties)
            )
            if reason and self._stack.forced:
                await self._finish(replace(current, status="DELETE_SKIPPED", reason=reason), forget=forget)
                return
            if reason and was_made:  # of what was not, nothing can be left (recorded)
                await self._fail(current, "DELETE_FAILED", reason)
        await self._finish(replace(current, status="DELETE_COMPLETE"), forget=forget)

    def _is_kept(self, current: StackResource) -> bool:
        if current.logical_id in self._stack.retained:
            return True
        if not current.physical_id:
            return False
        created_in_vain = current.born == self._stack.change and "ROLLBACK" in self._stack.status
        return current.policy == "Retain" or (
            current.policy == "RetainExceptOnCreate" and not created_in_vain
        )

    async def _finish(self, current: StackResource, *, forget: bool) -> None:
        current = replace(current, updated_at=self._journal.now)
        event = event_of(self._stack, current, current.updated_at, reason=current.reason)
        if forget:
            await self._journal.forget(current, event)
            del self.resources[current.logical_id]
        else:
            await self._write(current, event)

    async def clear_leftovers(self, name: str) -> None:
        """Remove what a resource replaced, as far as nobody wants it kept; what cannot be removed stays behind."""
        current = self.resources[name]
        if not current.leftovers:
            return
        events = []
        for left in current.leftovers:
            if left.policy == "Retain":
                continue
            old = replace(current, physical_id=left.physical_id, properties=left.properties)
            events.append(event_of(self._stack, old, self._journal.now, "DELETE_IN_PROGRESS"))
            reason = await self._delete(current, left)
            status = "DELETE_FAILED" if reason else "DELETE_COMPLETE"
            events.append(event_of(self._stack, old, self._journal.now, status, reason))
        await self._write(replace(current, leftovers=()), *events)

    async def _delete(self, current: StackResource, left: Leftover) -> str:
        """Remove a resource; the reason why it could not be, or an empty text."""
        kind = type_of(left.type)
        spec = replace(
            self._spec(current, again=True),
            name=left.name,
            physical_id=left.physical_id,
            properties=left.properties,
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

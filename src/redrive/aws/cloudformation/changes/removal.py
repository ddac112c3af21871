"""Steps that remove: a resource, and what it replaced."""

from dataclasses import replace

from redrive.aws.cloudformation.changes.journal import event_of
from redrive.aws.cloudformation.changes.step_parts import AttemptRefused, StepParts
from redrive.aws.cloudformation.records import Leftover, StackResource
from redrive.aws.cloudformation.types.resource_type import Ask, Made, Wanted
from redrive.aws.cloudformation.types.table import type_of


class Removal(StepParts):
    """The steps that remove the resources of a stack."""

    async def remove(self, name: str, *, forget: bool = False) -> None:
        """Remove a resource, and what it replaced.

        Args:
            name: Its logical id.
            forget: The stack goes on without it.

        Raises:
            StepFailed: It could not be removed.
        """
        now = self.resources[name]
        await self.clear_leftovers(name)
        now = self.resources[name]
        if now.status in {"DELETE_COMPLETE", "DELETE_SKIPPED"}:
            return
        if self._is_kept(now):
            await self._gone(replace(now, status="DELETE_SKIPPED"), forget=forget)
            return
        if now.name or now.physical_id:
            now = replace(now, status="DELETE_IN_PROGRESS", reason="", updated_at=self._journal.now)
            await self._write(now, event_of(self._stack, now, now.updated_at))
            reason = await self._delete(now, Leftover(now.type, now.name, now.physical_id, now.properties))
            if reason and self._stack.forced:
                await self._gone(replace(now, status="DELETE_SKIPPED", reason=reason), forget=forget)
                return
            if reason:
                await self._fail(now, "DELETE_FAILED", reason)
        await self._gone(replace(now, status="DELETE_COMPLETE"), forget=forget)

    def _is_kept(self, now: StackResource) -> bool:
        if now.logical_id in self._stack.retained:
            return True
        if not now.physical_id:
            return False
        created_in_vain = now.born == self._stack.change and "ROLLBACK" in self._stack.status
        return now.policy == "Retain" or (now.policy == "RetainExceptOnCreate" and not created_in_vain)

    async def _gone(self, now: StackResource, *, forget: bool) -> None:
        now = replace(now, updated_at=self._journal.now)
        event = event_of(self._stack, now, now.updated_at, reason=now.reason)
        if forget:
            await self._journal.forget(now, event)
            del self.resources[now.logical_id]
        else:
            await self._write(now, event)

    async def clear_leftovers(self, name: str) -> None:
        """Remove what a resource replaced, as far as nobody wants it kept; what cannot be removed stays behind."""
        now = self.resources[name]
        if not now.leftovers:
            return
        events = []
        for left in now.leftovers:
            if left.policy == "Retain":
                continue
            old = replace(now, physical_id=left.physical_id, properties=left.properties)
            events.append(event_of(self._stack, old, self._journal.now, "DELETE_IN_PROGRESS"))
            reason = await self._delete(now, left)
            status = "DELETE_FAILED" if reason else "DELETE_COMPLETE"
            events.append(event_of(self._stack, old, self._journal.now, status, reason))
        await self._write(replace(now, leftovers=()), *events)

    async def _delete(self, now: StackResource, left: Leftover) -> str:
        """Remove a resource; the reason why it could not be, or an empty text."""
        kind = type_of(left.type)
        wanted = replace(
            self._wanted(now, again=True),
            name=left.name,
            physical_id=left.physical_id,
            properties=left.properties,
        )

        async def delete(ask: Ask, wanted: Wanted) -> Made:
            found = wanted.physical_id or await kind.find(ask, wanted)
            if found:
                await kind.delete(ask, replace(wanted, physical_id=found))
            return Made(found)

        try:
            await self._attempt(kind, delete, wanted)
        except AttemptRefused as refusal:
            return refusal.reason
        return ""

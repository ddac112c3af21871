"""A change to a stack: phases that bring it from one status to the next, by steps of its resources.

The stack's status says which phase it is in, and the documents of its resources how far the phase has come; so a change
that was interrupted continues from what is stored.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.cloudformation.changes.journal import Journal
from redrive.aws.cloudformation.changes.order import OrderedSteps, reversed_order
from redrive.aws.cloudformation.changes.programs import Programs, Services
from redrive.aws.cloudformation.changes.step_parts import ResourceRemoval
from redrive.aws.cloudformation.changes.steps import Steps
from redrive.aws.cloudformation.changes.values import StackValues
from redrive.aws.cloudformation.documents.history import EXPORT, IMPORT, Export, export_key, import_key
from redrive.aws.cloudformation.documents.records import (
    RESOURCE,
    STACK,
    STACK_NAME,
    OperationState,
    Stack,
    StackOperation,
    StackOutput,
    StackResource,
)
from redrive.aws.cloudformation.documents.signals import Activity, StackSignals
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.kit.offloading import offload
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

CANCELLED: Final = "User Initiated"


class Change:
    """One change to a stack, carried on from wherever it is."""

    def __init__(
        self,
        engine: Engine,
        services: Services,
        signals: StackSignals,
        activity: Activity,
        operation: StackOperation,
        stack: Stack,
    ) -> None:
        self._engine = engine
        self._activity = activity
        self._programs = Programs(engine)
        self._journal = Journal(engine, operation, stack)
        self._resources: dict[str, StackResource] = {}
        # Two, as a failure ends the steps forward, which must not end those back.
        self._steps = Steps(engine, services, signals, self._journal, self._resources)
        self._rollback_steps = Steps(engine, services, signals, self._journal, self._resources)
        self._removal = ResourceRemoval(engine, services, signals, self._journal, self._resources)
        self._cancelled = False
        self._phases: Mapping[str, Callable[[], Awaitable[None]]] = {
            "CREATE_IN_PROGRESS": self._create,
            "ROLLBACK_IN_PROGRESS": self._roll_creation_back,
            "UPDATE_IN_PROGRESS": self._update,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": self._clean_up,
            "UPDATE_ROLLBACK_IN_PROGRESS": self._roll_update_back,
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": self._clean_up_rollback,
            "DELETE_IN_PROGRESS": self._delete,
        }

    @property
    def _stack(self) -> Stack:
        return self._journal.stack

    async def carry_on(self) -> None:
        """Go through all phases, until the stack has a final status."""
        resources = await self._engine.resources.documents.find(RESOURCE, f"{self._stack.key}/")
        self._resources |= {resource.logical_id: resource for resource in resources}
        self._journal.hidden_names = await self._programs.hidden_names(self._stack)
        while (phase := self._phases.get(self._stack.status)) is not None:
            await phase()

    # ---- creation ----------------------------------------------------------------------------------------------------

    async def _create(self) -> None:
        """Create all resources; if one fails, the status says how the change goes on."""
        failed_names, reason = await self._bring_up()
        if not reason:
            reason = await self._complete("CREATE_COMPLETE")
        if not reason:
            return
        on_failure = (await self._journal.read()).on_failure
        status, ending = {
            "DO_NOTHING": ("CREATE_FAILED", ""),
            "DELETE": ("DELETE_IN_PROGRESS", "Delete requested by user."),
        }.get(on_failure, ("ROLLBACK_IN_PROGRESS", "Rollback requested by user."))
        is_rollback = status == "ROLLBACK_IN_PROGRESS"  # which sets the time of deletion (recorded)
        now = self._journal.now
        await self._journal.write_status(
            status,
            f"{reason} {ending}" if failed_names or ending else reason,  # a list of names ends with a blank
            change=lambda stack: replace(stack, deleted_at=now) if is_rollback else stack,
        )

    async def _roll_creation_back(self) -> None:
        failed_names = await self._remove_all(list(self._resources))
        if failed_names:
            await self._journal.write_status("ROLLBACK_FAILED", _failed_to("delete", failed_names))
        else:
            await self._journal.write_status("ROLLBACK_COMPLETE", also=self._remove_imports)

    # ---- changes -----------------------------------------------------------------------------------------------------

    async def _update(self) -> None:
        """Create and update resources; if one fails, the status says how the change goes on."""
        failed_names, reason = await self._bring_up()
        if not reason:
            reason = await self._complete("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        if not reason:
            return
        stays = self._stack.on_failure == "DO_NOTHING" and not self._cancelled
        status = "UPDATE_FAILED" if stays else "UPDATE_ROLLBACK_IN_PROGRESS"
        await self._journal.write_status(status, f"{reason} " if failed_names else reason)

    async def _clean_up(self) -> None:
        """Delete resources that the template has no more, and what replaced ones left behind."""
        program = await self._programs.load(self._stack, self._stack.settings)
        remaining_names = [name for name in self._resources if name in program.resources]
        failed_names = await self._remove_all(
            [name for name in self._resources if name not in program.resources], forget=True
        )
        for name in remaining_names:
            await self._removal.clear_leftovers(name)
        text = "Update successful. One or more resources could not be deleted."
        await self._journal.write_status("UPDATE_COMPLETE", text if failed_names else "")

    async def _roll_update_back(self) -> None:
        steps = self._ordered_steps()
        await steps.run(self._dependencies(list(self._resources)), self._rollback_steps.restore)
        if steps.failed_names:
            await self._journal.write_status(
                "UPDATE_ROLLBACK_FAILED", _failed_to("update", steps.failed_names)
            )
            return
        await self._journal.write_status(
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", change=lambda stack: replace(stack, wanted=None)
        )

    async def _clean_up_rollback(self) -> None:
        """Delete resources that the failed update created, and what replaced ones left behind."""
        change = self._stack.change
        await self._remove_all(
            [name for name, resource in self._resources.items() if resource.born == change], forget=True
        )
        for name in list(self._resources):
            await self._removal.clear_leftovers(name)
        await self._journal.write_status(
            "UPDATE_ROLLBACK_COMPLETE", change=lambda stack: replace(stack, skipped=())
        )

    # ---- deletion ----------------------------------------------------------------------------------------------------

    async def _delete(self) -> None:
        """Delete all resources, and with the last one the stack's name and exports."""
        if reason := await self._export_in_use(new_names=set()):
            await self._journal.write_status("DELETE_FAILED", reason)
            return
        failed_names = await self._remove_all(list(self._resources))
        if failed_names:
            await self._journal.write_status("DELETE_FAILED", _failed_to("delete", failed_names))
            return
        now = self._journal.now

        async def forget(draft: Draft, stack: Stack) -> None:
            await self._remove_imports(draft, stack)
            await self._write_exports(draft, stack, ())
            if await draft.get(STACK_NAME, stack.name.key) == stack.key:
                draft.remove(STACK_NAME, stack.name.key)

        await self._journal.write_status(
            "DELETE_COMPLETE", change=lambda stack: replace(stack, deleted_at=now), also=forget
        )

    # ---- what phases are made of -------------------------------------------------------------------------------------

    def _ordered_steps(self) -> OrderedSteps:
        return OrderedSteps(self._activity, lambda: False)

    async def _bring_up(self) -> tuple[list[str], str]:
        """Create and update resources; returns the names of those that failed, and why not all was done, if so."""
        try:
            program = await self._programs.load(self._stack, self._stack.target_settings)
        except TemplateInvalid as refusal:
            return [], str(refusal)
        self._values = StackValues(program, self._resources, await self._programs.exports(self._stack.name))
        ordered_steps = OrderedSteps(self._activity, lambda: self._cancelled)

        async def step(name: str) -> None:
            self._cancelled = self._cancelled or await self._must_stop()
            if self._cancelled:
                return
            try:
                await self._steps.bring_up(name, self._values)
            except BaseException:
                self._steps.end()
                raise

        await ordered_steps.run(program.dependencies, step)
        verb = "create" if self._stack.status == "CREATE_IN_PROGRESS" else "update"
        if failed_names := ordered_steps.failed_names:
            return failed_names, _failed_to(verb, failed_names).rstrip()
        return [], CANCELLED if self._cancelled else ""

    async def _must_stop(self) -> bool:
        deadline = self._stack.deadline
        return bool(deadline and self._journal.now >= deadline) or await self._journal.is_cancelled()

    async def _complete(self, status: str) -> str:
        """Write the outputs with the stack's new status; returns why that is impossible, empty if it was done."""
        values = self._values
        try:
            outputs = await offload(
                self._stack.name.account, lambda: tuple(self._outputs(values)), patient=True
            )
            await self._check_exports(outputs)
        except TemplateInvalid as refusal:
            return str(refusal)
        if reason := await self._export_in_use({output.export for output in outputs if output.export}):
            return reason

        def with_outputs(stack: Stack) -> Stack:
            return replace(
                stack,
                settings=stack.target_settings,
                wanted=None,
                outputs=outputs,
                description=values.program.template.description,
                deadline=0,
            )

        async def publish(draft: Draft, stack: Stack) -> None:
            if (await self._journal.require_hold(draft)).state is OperationState.CANCELLING:
                raise TemplateInvalid(CANCELLED)
            await self._write_exports(draft, stack, outputs)
            await self._remove_imports(draft, stack, except_names=values.imported)

        try:
            await self._journal.write_status(status, change=with_outputs, also=publish)
        except TemplateInvalid as refusal:
            return str(refusal)
        return ""

    def _outputs(self, values: StackValues) -> list[StackOutput]:
        """The outputs of the stack with their values."""
        summaries = []
        for output in values.program.outputs:
            value, export = values.output(output)
            summaries.append(StackOutput(output.name, value, output.description, export))
        return summaries

    async def _check_exports(self, outputs: Sequence[StackOutput]) -> None:
        """Refuse names of exports that another stack has; raises TemplateInvalid."""
        for output in outputs:
            if not output.export:
                continue
            export = await self._engine.resources.documents.get(
                EXPORT, export_key(self._stack.name, output.export)
            )
            if export is not None and export.stack != self._stack.key:
                owner = await self._engine.resources.documents.get(STACK, export.stack)
                name = owner.name.name if owner else export.stack
                raise TemplateInvalid(
                    f"Export with name {output.export} is already exported by stack {name}."
                )

    async def _export_in_use(self, new_names: set[str]) -> str:
        """Says which export another stack imports that is not among the new names; empty: there is none."""
        for output in self._stack.outputs:
            if not output.export or output.export in new_names:
                continue
            key = export_key(self._stack.name, output.export)
            users = await self._engine.resources.documents.find(IMPORT, f"{key}/")
            importers = sorted({user.stack_name for user in users if user.stack != self._stack.key})
            if importers:
                return f"Export {output.export} cannot be deleted as it is in use by {', '.join(importers)}"
        return ""

    async def _write_exports(self, draft: Draft, stack: Stack, outputs: Sequence[StackOutput]) -> None:
        """Make these outputs all that the stack exports."""
        new_values = {output.export: output.value for output in outputs if output.export}
        for key, export in await draft.find(EXPORT, f"{stack.name.account}/{stack.name.region}/"):
            if export.stack == stack.key and export.name not in new_values:
                draft.remove(EXPORT, key)
        for name, value in new_values.items():
            key = export_key(stack.name, name)
            await draft.overwrite(EXPORT, key, Export(name, value, stack.key))

    async def _remove_imports(self, draft: Draft, stack: Stack, except_names: Collection[str] = ()) -> None:
        """Remove the records that the stack imports exports, except those of some names."""
        exports = await draft.find(EXPORT, f"{stack.name.account}/{stack.name.region}/")
        for _, export in exports:
            key = import_key(stack, export.name)
            if export.name not in except_names and await draft.get(IMPORT, key) is not None:
                draft.remove(IMPORT, key)

    async def _remove_all(self, names: Sequence[str], *, forget: bool = False) -> list[str]:
        """Remove resources, each before those that it depends on; returns the names of those that failed."""
        steps = self._ordered_steps()

        async def step(name: str) -> None:
            await self._removal.remove(name, forget=forget)

        await steps.run(reversed_order(self._dependencies(names)), step, keep_on=True)
        return steps.failed_names

    def _dependencies(self, names: Sequence[str]) -> dict[str, list[str]]:
        name_set = set(names)
        return {
            name: [other for other in self._resources[name].depends_on if other in name_set] for name in names
        }


def _failed_to(verb: str, names: Sequence[str]) -> str:
    return f"The following resource(s) failed to {verb}: [{', '.join(names)}]. "

"""AWS CloudFormation on an engine."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from typing import Any

from redrive.aws.cloudformation.changes.asking import Services
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.policies import StackPolicyOperations
from redrive.aws.cloudformation.documents.errors import translated
from redrive.aws.cloudformation.documents.finding import find_stack, place
from redrive.aws.cloudformation.documents.history import CHANGE_SET, EVENT, EXPORT, IMPORT, SIGNAL
from redrive.aws.cloudformation.documents.names import stack_arn
from redrive.aws.cloudformation.documents.records import OPERATION, RESOURCE, STACK, STACK_NAME, TEMPLATE
from redrive.aws.cloudformation.stacks.change_sets import ChangeSetOperations, find_change_set
from redrive.aws.cloudformation.stacks.describing import StackViews
from redrive.aws.cloudformation.stacks.drift import DriftOperations
from redrive.aws.cloudformation.stacks.exports import ExportOperations
from redrive.aws.cloudformation.stacks.operations import StackChanges
from redrive.aws.cloudformation.stacks.signals import SignalOperations
from redrive.aws.cloudformation.stacks.templates import TemplateOperations
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope, values_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError


class CloudFormation:
    """CloudFormation, whose stacks are made of the resources of the other services."""

    kinds: tuple[DocumentKind[Any], ...] = (
        *(STACK, STACK_NAME, RESOURCE, TEMPLATE, OPERATION),
        *(EVENT, CHANGE_SET, EXPORT, IMPORT, SIGNAL),
    )
    """All that callers make through this service."""

    def __init__(self, engine: Engine, services: Services, operations: StackOperations) -> None:
        """Speak for this engine.

        Args:
            engine: Where stacks are kept.
            services: Where their resources are made.
            operations: Carry changes to them out.
        """
        self._engine = engine
        changes = StackChanges(engine, services, operations)
        self.signals = SignalOperations(engine, operations.words)
        self.operations: Mapping[str, Verb] = operations_of(
            "cloudformation",
            changes,
            ChangeSetOperations(engine, changes, operations),
            StackViews(engine),
            TemplateOperations(engine, services),
            ExportOperations(engine),
            StackPolicyOperations(engine, services),
            DriftOperations(engine, services, operations.words),
            self.signals,
        )

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:  # noqa: ARG002 - see `Facade`
        """See `Facade.scopes`; of an ARN the last part alone leads to a stack, so it is looked up."""
        return [ResourceScope(arn) async for arn in _stacks(self._engine, call, params)] or [WHOLE_SERVICE]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)


async def _stacks(engine: Engine, call: Call, params: Structure) -> AsyncIterator[str]:
    if name := params.get("StackName"):
        stack = await find_stack(engine, call, name)
        unknown = name if name.startswith("arn:") else stack_arn(place(call, name), "*")
        yield unknown if stack is None else stack.arn
    keys = [f"{call.account}/{call.region}/{number}" for number in values_of(params, "StackDriftDetectionId")]
    if params.get("ChangeSetName", "").startswith("arn:"):
        with suppress(AwsError):  # there is no such change set, which the operation says better
            keys.append((await find_change_set(engine, call, params["ChangeSetName"], None)).stack)
    for key in keys:
        stack = await engine.resources.documents.get(STACK, key)
        if stack is not None:
            yield stack.arn

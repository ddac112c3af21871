"""AWS CloudFormation on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.aws.cloudformation.changes.asking import Services
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.errors import translated
from redrive.aws.cloudformation.history import CHANGE_SET, EVENT, EXPORT, IMPORT, SIGNAL
from redrive.aws.cloudformation.policies import StackPolicyOperations
from redrive.aws.cloudformation.records import OPERATION, RESOURCE, STACK, STACK_NAME, TEMPLATE
from redrive.aws.cloudformation.stacks.change_sets import ChangeSetOperations
from redrive.aws.cloudformation.stacks.describing import StackViews
from redrive.aws.cloudformation.stacks.drift import DriftOperations
from redrive.aws.cloudformation.stacks.exports import ExportOperations
from redrive.aws.cloudformation.stacks.operations import StackChanges
from redrive.aws.cloudformation.stacks.signals import SignalOperations
from redrive.aws.cloudformation.stacks.templates import TemplateOperations
from redrive.aws.kit.call import Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.wire.errors import AwsError
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

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)

"""AWS CloudFormation on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.cloudformation.change_sets import ChangeSetOperations
from redrive.protocols.aws.cloudformation.changing import StackChanges
from redrive.protocols.aws.cloudformation.describing import StackViews
from redrive.protocols.aws.cloudformation.drift import DriftOperations
from redrive.protocols.aws.cloudformation.errors import translated
from redrive.protocols.aws.cloudformation.exports import ExportOperations
from redrive.protocols.aws.cloudformation.history import CHANGE_SET, EVENT, EXPORT, IMPORT, SIGNAL
from redrive.protocols.aws.cloudformation.policies import StackPolicyOperations
from redrive.protocols.aws.cloudformation.records import OPERATION, RESOURCE, STACK, STACK_NAME, TEMPLATE
from redrive.protocols.aws.cloudformation.running.asking import Services
from redrive.protocols.aws.cloudformation.running.operations import StackOperations
from redrive.protocols.aws.cloudformation.signals import SignalOperations
from redrive.protocols.aws.cloudformation.templates import TemplateOperations
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


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

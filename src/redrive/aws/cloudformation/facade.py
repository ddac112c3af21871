"""AWS CloudFormation on an engine."""

from redrive.aws.cloudformation.changes.operations import SignalOperations, StackOperations
from redrive.aws.cloudformation.changes.policies import StackPolicyOperations
from redrive.aws.cloudformation.changes.programs import Services
from redrive.aws.cloudformation.service import SERVICE
from redrive.aws.cloudformation.stacks.change_sets import ChangeSetOperations
from redrive.aws.cloudformation.stacks.describing import ExportOperations, StackViews
from redrive.aws.cloudformation.stacks.drift import DriftOperations
from redrive.aws.cloudformation.stacks.operations import StackChanges
from redrive.aws.cloudformation.stacks.templates import TemplateOperations
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.engine.engine import Engine


class CloudFormation(OfferedService):
    """CloudFormation, whose stacks are made of the resources of the other services."""

    def __init__(self, engine: Engine, services: Services, operations: StackOperations) -> None:
        self._engine = engine
        changes = StackChanges(engine, services, operations)
        self.signals = SignalOperations(engine, operations.signals)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "cloudformation",
                changes,
                ChangeSetOperations(engine, changes, operations),
                StackViews(engine),
                TemplateOperations(engine, services),
                ExportOperations(engine),
                StackPolicyOperations(engine, services),
                DriftOperations(engine, services, operations.signals),
                self.signals,
            ),
        )

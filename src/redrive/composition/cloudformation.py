"""AWS CloudFormation: stacks of the resources of all the other services."""

from redrive.aws.cloudformation.changes.journal import StackTopicEndpoint
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.programs import Services
from redrive.aws.cloudformation.documents.history import TO_TOPIC
from redrive.aws.cloudformation.documents.records import PATH
from redrive.aws.cloudformation.facade import CloudFormation
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core) -> Extension:
    """CloudFormation; it calls all services, for nested stacks also itself."""
    simulated = isinstance(core.runtime.clock, SimulatedClock)
    alone = simulated or not core.settings.store_is_shared
    services = Services(
        InnerCalls(core.services, core.runtime, core.base_url),
        core.services,
        core.base_url,
        core.sessions.identities,
    )
    operations = StackOperations(
        core.engine, services, core.secret.key("answers to stacks"), alone=alone, simulated=simulated
    )
    facade = CloudFormation(core.engine, services, operations)
    return Extension(
        interface=Interface(services={"cloudformation": facade}, paths={PATH: facade.signals.answer}),
        delivery=DeliveryParts(
            endpoints={TO_TOPIC: StackTopicEndpoint(services, core.engine.resources.documents)}
        ),
        lifecycle=Lifecycle(start=(operations.start,), clock_driven=(operations,), stop=(operations.close,)),
    )

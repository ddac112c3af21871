"""AWS CloudFormation: stacks of the resources of all the other services."""

from collections.abc import Mapping

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.cloudformation.facade import CloudFormation
from redrive.protocols.aws.cloudformation.running.asking import Services
from redrive.protocols.aws.cloudformation.running.operations import StackOperations
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core, services: Mapping[str, Facade]) -> Extension:
    """Stacks; CloudFormation itself is added to the services that they call, since stacks may be nested.

    Args:
        core: What it is built on.
        services: All of Amazon's that this server offers.
    """
    called = dict(services)
    asked = Services(InnerCalls(called, core.runtime), called, core.base_url)
    operations = StackOperations(core.engine, asked, leaps=isinstance(core.runtime.clock, SimulatedClock))
    facade = CloudFormation(core.engine, asked, operations)
    called["cloudformation"] = facade
    return Extension(
        services={"cloudformation": facade},
        kinds=CloudFormation.kinds,
        start=(operations.start,),
        lives_by_the_clock=(operations,),
        stop=(operations.close,),
    )

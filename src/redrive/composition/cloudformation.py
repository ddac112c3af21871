"""AWS CloudFormation: stacks of the resources of all the other services; and the parameter store that they read."""

from collections.abc import Mapping

from redrive.aws.cloudformation.changes.asking import Services
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.cloudformation.changes.words import PATH
from redrive.aws.cloudformation.facade import CloudFormation
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Facade
from redrive.aws.ssm.facade import Ssm
from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core, services: Mapping[str, Facade]) -> Extension:
    """Stacks; CloudFormation itself is added to the services that they call, since stacks may be nested.

    Args:
        core: What it is built on.
        services: All of Amazon's that this server offers.
    """
    parameters = Ssm(core.engine)
    called = {**services, "ssm": parameters}
    leaps = isinstance(core.runtime.clock, SimulatedClock)
    alone = leaps or core.settings.store.startswith("sqlite")
    asked = Services(
        InnerCalls(called, core.runtime, core.base_url),
        called,
        core.base_url,
        core.sessions.identities.acting,
    )
    operations = StackOperations(
        core.engine, asked, core.secret.key("answers to stacks"), alone=alone, leaps=leaps
    )
    facade = CloudFormation(core.engine, asked, operations)
    called["cloudformation"] = facade
    return Extension(
        services={"cloudformation": facade, "ssm": parameters},
        paths={PATH: facade.signals.answer},
        kinds=[*CloudFormation.kinds, *Ssm.kinds],
        start=(operations.start,),
        lives_by_the_clock=(operations,),
        stop=(operations.close,),
    )

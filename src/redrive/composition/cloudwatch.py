"""Amazon CloudWatch: metrics, alarms and dashboards."""

from redrive.aws.cloudwatch.alarms.records import TO_ACTION
from redrive.aws.cloudwatch.facade import CloudWatch
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core) -> Extension:
    """CloudWatch: metrics and alarms; a reader gets all that was counted until then."""
    cloudwatch = CloudWatch(
        core.store,
        core.engine,
        core.telemetry.flush,
        core.services,
        simulated=isinstance(core.runtime.clock, SimulatedClock),
        open_functions=core.settings.auth == "off",
    )
    return Extension(
        interface=Interface(services={"cloudwatch": cloudwatch}),
        delivery=DeliveryParts(endpoints={TO_ACTION: cloudwatch.endpoint}),
        lifecycle=Lifecycle(
            start=(cloudwatch.evaluator.start,),
            clock_driven=(cloudwatch.evaluator,),
            stop=(cloudwatch.evaluator.close,),
        ),
    )

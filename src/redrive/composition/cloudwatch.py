"""Amazon CloudWatch: metrics, alarms and dashboards."""

from redrive.aws.cloudwatch.alarms.part import Alarms
from redrive.aws.cloudwatch.alarms.records import TO_ACTION
from redrive.aws.cloudwatch.facade import CloudWatch
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core) -> Extension:
    """Metrics and alarms; a reader gets all that was counted until then."""
    flush = core.telemetry.flush
    alarms = Alarms.of(
        core.engine,
        core.store,
        flush,
        core.services,
        leaps=isinstance(core.runtime.clock, SimulatedClock),
        open_functions=core.settings.auth == "off",
    )
    return Extension(
        interface=Interface(services={"cloudwatch": CloudWatch(core.store, core.engine, flush, alarms)}),
        delivery=DeliveryParts(endpoints={TO_ACTION: alarms.endpoint}),
        lifecycle=Lifecycle(
            start=(alarms.evaluator.start,),
            lives_by_the_clock=(alarms.evaluator,),
            stop=(alarms.evaluator.close,),
        ),
    )

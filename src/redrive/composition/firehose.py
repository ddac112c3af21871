"""Amazon Data Firehose: delivery streams that this server fills, and delivers to its buckets."""

from redrive.aws.firehose.facade import Firehose
from redrive.composition.core import Core, only_elsewhere
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.engine.ports import Endpoint
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core, elsewhere: Endpoint | None) -> Extension:
    """Delivery streams; those of other servers, if the settings name any, are filled by `elsewhere`."""
    simulated = isinstance(core.runtime.clock, SimulatedClock)
    firehose = Firehose(
        core.engine,
        core.calls,
        core.sessions.identities,
        core.telemetry.count,
        core.telemetry.logs,
        only_elsewhere(core, elsewhere),
        alone=simulated or not core.settings.store_is_shared,
    )
    return Extension(
        interface=Interface(services={"firehose": firehose}),
        delivery=DeliveryParts(endpoints={"firehose": firehose.endpoint}),
        lifecycle=Lifecycle(
            start=(firehose.deliveries.start,),
            lives_by_the_clock=(firehose.deliveries,),
            stop=(firehose.deliveries.close,),
        ),
    )

"""Amazon Data Firehose: delivery streams that this server fills, and delivers to its buckets."""

from redrive.aws.firehose.facade import Firehose
from redrive.composition.core import Core, remote_endpoints
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.engine.ports import Endpoint
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core, remote: Endpoint | None) -> Extension:
    """Delivery streams; `remote` fills those of other servers, if the settings name any."""
    simulated = isinstance(core.runtime.clock, SimulatedClock)
    firehose = Firehose(
        core.engine,
        core.calls,
        core.sessions.identities,
        core.telemetry.count,
        core.telemetry.logs,
        remote_endpoints(core, remote),
        sole_node=simulated or not core.settings.store_is_shared,
    )
    return Extension(
        interface=Interface(services={"firehose": firehose}),
        delivery=DeliveryParts(endpoints={"firehose": firehose.endpoint}),
        lifecycle=Lifecycle(
            start=(firehose.deliveries.start,),
            clock_driven=(firehose.deliveries,),
            stop=(firehose.deliveries.close,),
        ),
    )

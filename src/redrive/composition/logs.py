"""Amazon CloudWatch Logs."""

from redrive.aws.gateway.rounds import Rounds
from redrive.aws.logs.facade import Logs
from redrive.aws.logs.records import TO_DESTINATION
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core) -> Extension:
    """CloudWatch Logs; lines of this server pass the same filters as those of callers."""
    logs = Logs(
        core.engine,
        core.store,
        core.telemetry.flush,
        core.services,
        core.sessions.identities,
        Rounds(core.secret, core.runtime.rng),
        simulated=isinstance(core.runtime.clock, SimulatedClock),
        open_functions=core.settings.auth == "off",
    )
    core.telemetry.logs.write_down = logs.write_down
    return Extension(
        interface=Interface(services={"logs": logs}),
        delivery=DeliveryParts(endpoints={TO_DESTINATION: logs.endpoint}),
        lifecycle=Lifecycle(end_streams=(logs.tails.close,)),
    )

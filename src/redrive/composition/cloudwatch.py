"""Amazon CloudWatch: metrics, alarms and logs."""

from redrive.aws.cloudwatch.alarms.backlog import TO_ACTION
from redrive.aws.cloudwatch.alarms.part import Alarms
from redrive.aws.cloudwatch.facade import CloudWatch
from redrive.aws.gateway.rounds import Rounds
from redrive.aws.logs.facade import Logs
from redrive.aws.logs.subscribed import TO_DESTINATION
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core) -> Extension:
    """Metrics, alarms and logs; a reader gets all that was counted until then."""
    flush = core.telemetry.flush
    open_functions = core.settings.auth == "off"
    leaps = isinstance(core.runtime.clock, SimulatedClock)
    alarms = Alarms.of(
        core.engine,
        core.store,
        flush,
        core.services,
        leaps=leaps,
        open_functions=open_functions,
    )
    logs = Logs(
        core.engine,
        core.store,
        flush,
        core.services,
        core.sessions.identities,
        Rounds(core.secret, core.runtime.chance),
        leaps=leaps,
        open_functions=open_functions,
    )
    core.telemetry.logs.write_down = logs.write_down
    return Extension(
        interface=Interface(
            services={
                "cloudwatch": CloudWatch(core.store, core.engine.resources.documents, flush, alarms),
                "logs": logs,
            },
            kinds=[*CloudWatch.kinds, *Logs.kinds],
        ),
        delivery=DeliveryParts(
            profiles={each.name: each for each in (alarms.profile, logs.profile)},
            endpoints={TO_ACTION: alarms.endpoint, TO_DESTINATION: logs.endpoint},
        ),
        lifecycle=Lifecycle(
            start=(alarms.evaluator.start,),
            lives_by_the_clock=(alarms.evaluator,),
            end_streams=(logs.tails.close,),
            stop=(alarms.evaluator.close,),
        ),
    )

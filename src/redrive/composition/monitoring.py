"""Amazon CloudWatch: metrics and logs; and STS, which tells callers who they are."""

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.protocols.aws.cloudwatch.facade import CloudWatch
from redrive.protocols.aws.logs.facade import Logs


def extension(core: Core) -> Extension:
    """Metrics and logs; a reader gets all that was counted until then."""
    flush = core.telemetry.flush
    return Extension(
        services={
            "cloudwatch": CloudWatch(core.store, flush),
            "logs": Logs(core.store, core.engine.resources.documents, flush),
        },
        kinds=Logs.kinds,
    )

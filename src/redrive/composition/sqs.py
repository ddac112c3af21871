"""Amazon SQS, and LocalStack's way to look into its queues."""

from collections.abc import Mapping

from redrive.composition.core import Core
from redrive.composition.extension import Extension, Presenter
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.aws.sqs.peek import PATH, Peek


def extension(core: Core, presenters: Mapping[str, Presenter]) -> Extension:
    """Messages that came from other services look as those have it."""
    peek = Peek(core.engine, core.authentication, presenters)
    return Extension(
        services={"sqs": _sqs(core, presenters)},
        paths={PATH: peek.answer},
    )


def _sqs(core: Core, presenters: Mapping[str, Presenter]) -> Sqs:
    settings = core.settings
    return Sqs(
        core.engine,
        core.secret,
        presenters,
        fifo_quotas=settings.fifo_quotas,
        queue_urls=settings.queue_urls,
        waits=not settings.skip_queue_waits,
    )

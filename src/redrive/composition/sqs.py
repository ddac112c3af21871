"""Amazon SQS, and LocalStack's way to look into its queues."""

from collections.abc import Mapping

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.sqs.facade import Sqs
from redrive.aws.sqs.peek import PATH, Peek
from redrive.composition.core import Core
from redrive.composition.extension import Extension, Interface, Presenter


def extension(
    core: Core, presenters: Mapping[str, Presenter], encryption: Encryption | None = None
) -> Extension:
    """SQS; `presenters` give messages that other services sent their form, and `encryption` knows the keys of queues."""
    peek = Peek(core.engine, core.authentication, presenters, encryption)
    return Extension(
        interface=Interface(services={"sqs": _sqs(core, presenters, encryption)}, paths={PATH: peek.answer})
    )


def _sqs(core: Core, presenters: Mapping[str, Presenter], encryption: Encryption | None) -> Sqs:
    settings = core.settings
    return Sqs(
        core.engine,
        core.secret,
        presenters,
        encryption,
        fifo_quotas=settings.fifo_quotas,
        queue_urls=settings.queue_urls,
        waits=not settings.skip_queue_waits,
        consumers=core.consumers,
    )

"""Amazon SQS: its 23 operations."""

from collections.abc import Mapping

from redrive.access.secret import InstallationSecret
from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Presenters, Verb
from redrive.protocols.aws.encryption.encryption import Encryption
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.sqs.access import QueueAccess
from redrive.protocols.aws.sqs.errors import translated
from redrive.protocols.aws.sqs.handles import Handles
from redrive.protocols.aws.sqs.permissions import Permissions
from redrive.protocols.aws.sqs.queues import QueueOperations
from redrive.protocols.aws.sqs.quotas import Quotas
from redrive.protocols.aws.sqs.receiving import Receiving
from redrive.protocols.aws.sqs.sending import Sending
from redrive.protocols.aws.sqs.settling import Settling
from redrive.protocols.aws.sqs.tasks import Tasks
from redrive.protocols.aws.sqs.urls import QueueUrls
from redrive.protocols.aws.wire.errors import AwsError


class Sqs:
    """SQS on an engine."""

    def __init__(
        self,
        engine: Engine,
        secret: InstallationSecret,
        presenters: Presenters | None = None,
        encryption: Encryption | None = None,
        *,
        fifo_quotas: bool = False,
        queue_urls: str = "plain",
        waits: bool = True,
    ) -> None:
        """Speak for this engine.

        Args:
            engine: Whose queues.
            secret: Seals receipt handles.
            presenters: How messages look that came from other services.
            encryption: Knows the keys of queues; None: no queue has one.
            fifo_quotas: Enforce the documented throughput of FIFO queues.
            queue_urls: How queue URLs name the region; see `QueueUrls`.
            waits: Let 60 seconds pass before a queue is made again or purged again, as Amazon does.
        """
        handles = Handles(secret)
        quotas = Quotas(enforced=fifo_quotas)
        access = QueueAccess(engine.resources.queues, QueueUrls(queue_urls))
        self.operations: Mapping[str, Verb] = operations_of(
            "sqs",
            QueueOperations(engine, access, waits=waits),
            Permissions(engine, access),
            Tasks(engine),
            Sending(engine, access, quotas, encryption),
            Receiving(engine, access, quotas, handles, {} if presenters is None else presenters, encryption),
            Settling(engine, access, quotas, handles),
        )

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)

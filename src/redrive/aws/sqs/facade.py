"""Amazon SQS: its 23 operations."""

from redrive.access.secret import InstallationSecret
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kit.call import Presenters
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.aws.sqs.access import QueueAccess, QueueQuotas, QueueUrls
from redrive.aws.sqs.consumers import Consumers
from redrive.aws.sqs.handles import Handles
from redrive.aws.sqs.permissions import QueuePermissions
from redrive.aws.sqs.queues import TAGS, QueueOperations
from redrive.aws.sqs.receiving import Receiving
from redrive.aws.sqs.sending import Sending
from redrive.aws.sqs.service import SERVICE
from redrive.aws.sqs.settling import SettlingOperations
from redrive.aws.sqs.tasks import Tasks
from redrive.engine.engine import Engine


class Sqs(OfferedService):
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
        consumers: Consumers | None = None,
    ) -> None:
        """Build the facade over an engine.

        Args:
            engine: Whose queues.
            secret: Seals receipt handles.
            presenters: How messages look that came from other services.
            encryption: Knows the keys of queues; None: no queue has one.
            fifo_quotas: Enforce the documented throughput of FIFO queues.
            queue_urls: How queue URLs name the region; see `QueueUrls`.
            waits: Let 60 seconds pass before a queue is made again or purged again, as Amazon does.
            consumers: Told who receives; None: nobody is.
        """
        handles = Handles(secret)
        quotas = QueueQuotas(enforced=fifo_quotas)
        access = QueueAccess(engine.resources.queues, QueueUrls(queue_urls))
        queues = QueueOperations(engine, access, waits=waits)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "sqs",
                queues,
                TAGS.operations(queues),
                QueuePermissions(engine, access),
                Tasks(engine),
                Sending(engine, access, quotas, encryption),
                Receiving(
                    engine,
                    access,
                    quotas,
                    handles,
                    {} if presenters is None else presenters,
                    encryption,
                    consumers,
                ),
                SettlingOperations(engine, access, quotas, handles),
            ),
        )

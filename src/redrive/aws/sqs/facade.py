"""Amazon SQS: its 23 operations."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.access.secret import InstallationSecret
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kit.call import Call, Presenters, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import ResourceScope
from redrive.aws.sqs.access import QueueAccess
from redrive.aws.sqs.errors import translated
from redrive.aws.sqs.handles import Handles
from redrive.aws.sqs.permissions import QueuePermissions
from redrive.aws.sqs.queues import TAGS, QueueOperations
from redrive.aws.sqs.quotas import QueueQuotas
from redrive.aws.sqs.receiving import Receiving
from redrive.aws.sqs.sending import Sending
from redrive.aws.sqs.settling import SettlingOperations
from redrive.aws.sqs.tasks import Tasks
from redrive.aws.sqs.urls import QueueUrls
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError

#: Parameters that lead to a queue, about which `access` asks, its policy and the caller's own.
_OF_QUEUE: Final = frozenset({"QueueUrl", "SourceArn", "TaskHandle"})


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
        quotas = QueueQuotas(enforced=fifo_quotas)
        access = QueueAccess(engine.resources.queues, QueueUrls(queue_urls))
        queues = QueueOperations(engine, access, waits=waits)
        self.operations: Mapping[str, Verb] = operations_of(
            "sqs",
            queues,
            TAGS.operations(queues),
            QueuePermissions(engine, access),
            Tasks(engine),
            Sending(engine, access, quotas, encryption),
            Receiving(engine, access, quotas, handles, {} if presenters is None else presenters, encryption),
            SettlingOperations(engine, access, quotas, handles),
        )

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """See `Facade.scopes`."""
        if operation == "GetQueueUrl" or _OF_QUEUE & params.keys():
            return ()
        name = params.get("QueueName") or f"{params.get('QueueNamePrefix', '')}*"
        return [ResourceScope(f"arn:aws:sqs:{call.region}:{call.account}:{name}")]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)

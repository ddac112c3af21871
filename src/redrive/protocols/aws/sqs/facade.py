"""Amazon SQS: its 23 operations."""

from collections.abc import Mapping

from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Presenters, Verb
from redrive.protocols.aws.sqs.errors import translated
from redrive.protocols.aws.sqs.permissions import Permissions
from redrive.protocols.aws.sqs.queues import QueueOperations
from redrive.protocols.aws.sqs.quotas import Quotas
from redrive.protocols.aws.sqs.receiving import Receiving
from redrive.protocols.aws.sqs.sending import Sending
from redrive.protocols.aws.sqs.settling import Settling
from redrive.protocols.aws.sqs.tasks import Tasks
from redrive.protocols.aws.wire.errors import AwsError


class Sqs:
    """SQS on an engine."""

    def __init__(
        self, engine: Engine, presenters: Presenters | None = None, *, fifo_quotas: bool = False
    ) -> None:
        """Speak for this engine.

        Args:
            engine: Whose queues.
            presenters: How messages look that came from other services.
            fifo_quotas: Enforce the documented throughput of FIFO queues.
        """
        quotas = Quotas(enforced=fifo_quotas)
        queues, permissions, tasks = QueueOperations(engine), Permissions(engine), Tasks(engine)
        sending, receiving, settling = (
            Sending(engine, quotas),
            Receiving(engine, quotas, {} if presenters is None else presenters),
            Settling(engine, quotas),
        )
        self.operations: Mapping[str, Verb] = {
            "AddPermission": permissions.add_permission,
            "CancelMessageMoveTask": tasks.cancel_message_move_task,
            "ChangeMessageVisibility": settling.change_message_visibility,
            "ChangeMessageVisibilityBatch": settling.change_message_visibility_batch,
            "CreateQueue": queues.create_queue,
            "DeleteMessage": settling.delete_message,
            "DeleteMessageBatch": settling.delete_message_batch,
            "DeleteQueue": queues.delete_queue,
            "GetQueueAttributes": queues.get_queue_attributes,
            "GetQueueUrl": queues.get_queue_url,
            "ListDeadLetterSourceQueues": queues.list_dead_letter_source_queues,
            "ListMessageMoveTasks": tasks.list_message_move_tasks,
            "ListQueueTags": queues.list_queue_tags,
            "ListQueues": queues.list_queues,
            "PurgeQueue": queues.purge_queue,
            "ReceiveMessage": receiving.receive_message,
            "RemovePermission": permissions.remove_permission,
            "SendMessage": sending.send_message,
            "SendMessageBatch": sending.send_message_batch,
            "SetQueueAttributes": queues.set_queue_attributes,
            "StartMessageMoveTask": tasks.start_message_move_task,
            "TagQueue": queues.tag_queue,
            "UntagQueue": queues.untag_queue,
        }

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)

"""The documented throughput of FIFO queues, for those who want to meet it in a test before they meet it in a cloud.

Off unless asked for (`--fifo-quotas`): a server of one's own has no reason to refuse what it can carry. 300 calls a
second of each of SendMessage, ReceiveMessage and DeleteMessage, batched or not, so 3,000 messages in batches of ten
(the FIFO document); a queue with FifoThroughputLimit perMessageGroupId is in high-throughput mode and has no such
limit here. Each node counts by itself.
"""

from redrive.aws.sqs.errors import error
from redrive.model.queue import Queue

CALLS_PER_SECOND = 300


class QueueQuotas:
    """Counts calls by queue and method, second by second."""

    def __init__(self, *, enforced: bool) -> None:
        self._enforced = enforced
        self._second = 0
        self._calls: dict[tuple[int, str], int] = {}

    def take(self, queue: Queue, method: str, now: int) -> None:
        """Count one call.

        Raises:
            AwsError: `RequestThrottled`: this second's calls are used up.
        """
        if not self._enforced or not queue.ordered:
            return
        if queue.attributes.get("FifoThroughputLimit") == "perMessageGroupId":
            return
        second = now // 1000
        if second != self._second:
            self._second = second
            self._calls.clear()
        calls = self._calls.get((queue.id, method), 0) + 1
        if calls > CALLS_PER_SECOND:
            raise error("RequestThrottled", "Rate exceeded")
        self._calls[queue.id, method] = calls

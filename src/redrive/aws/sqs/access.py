"""Access to queues: the queue that a call names, and the permission of its caller."""

from collections.abc import Awaitable

from redrive.aws.kit.call import Call
from redrive.aws.sqs import names
from redrive.aws.sqs.errors import denied, error, no_such_queue
from redrive.aws.sqs.urls import QueueUrls
from redrive.engine.resources import Queues
from redrive.model.names import ResourceName
from redrive.model.queue import Queue

# What a policy cannot give to another account ("Limitations of Amazon SQS custom policies", developer guide).
_OWNER_ALONE = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueueTags",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)


class QueueAccess:
    """Finds the queue that a call names, for an action that its caller may do there."""

    def __init__(self, queues: Queues, urls: QueueUrls) -> None:
        self._queues = queues
        self.urls = urls

    def known(self, call: Call, url: str) -> Queue | None:
        """The queue of a URL, as nearly every call finds it: remembered, and open to its caller; None: ask `at`.

        For actions that a policy could give to another account.
        """
        queue = self._queues.known(self.urls.read(call, url))
        if queue is None or not call.is_open(queue.name.account, queue.attributes.get("Policy")):
            return None
        return queue

    def at(self, call: Call, url: str, action: str) -> Awaitable[Queue]:
        """The queue of a URL; no coroutine of its own, as every call of a queue's asks.

        Raises:
            AwsError: There is no such queue, or the caller may not.
        """
        return self.existing_queue(call, self.urls.read(call, url), action)

    async def existing_queue(self, call: Call, name: ResourceName, action: str) -> Queue:
        """The queue of a name.

        Raises:
            AwsError: There is no such queue, or the caller may not.
        """
        queue = self._queues.known(name) or await self._queues.get(name)
        if queue is None:
            raise no_such_queue()
        check(call, queue, action)
        return queue


def check_not_at_queue(call: Call, action: str) -> None:
    """Refuse an action of the service that was asked of a queue's URL, as Query requests can be.

    Raises:
        AwsError: `InvalidAction`.
    """
    if "x-amz-target" not in call.request.headers and call.request.path.count("/") > 1:
        text = f"The action {action} is not valid for this endpoint."
        raise error("UnknownOperationException", text)


def check(call: Call, queue: Queue, action: str) -> None:
    """Refuse an action on a queue that the caller has no permission for.

    Raises:
        AwsError: `AccessDenied`.
    """
    owner = queue.name.account
    policy = queue.attributes.get("Policy")
    permitted = action not in _OWNER_ALONE or call.account == owner
    if permitted and call.is_open(owner, policy):
        return  # nearly every call: no name is put together for it
    arn = names.arn_of(queue.name)
    decision = call.decide(f"sqs:{action}", arn, owner, policy)
    if not (permitted and decision.allowed):
        raise denied(call.principal.name, f"sqs:{action}", arn, decision)

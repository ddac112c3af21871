"""Access to queues: the queue that a call names, and the permission of its caller."""

from redrive.engine.resources import Queues
from redrive.model.queue import Queue, ResourceName
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.sqs import names
from redrive.protocols.aws.sqs.errors import denied, no_such_queue

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


async def queue_at(call: Call, queues: Queues, url: str, action: str) -> Queue:
    """The queue of a URL, for an action the caller may do there; the caller's region is the queue's.

    Raises:
        AwsError: There is no such queue, or the caller may not.
    """
    return await queue_named(call, queues, names.name_in_url(url, call.region), action)


async def queue_named(call: Call, queues: Queues, name: ResourceName, action: str) -> Queue:
    """The queue of a name, for an action the caller may do there.

    Raises:
        AwsError: There is no such queue, or the caller may not.
    """
    queue = queues.known(name) or await queues.get(name)
    if queue is None:
        raise no_such_queue()
    check(call, queue, action)
    return queue


def check(call: Call, queue: Queue, action: str) -> None:
    """Refuse an action on a queue that the caller has no permission for.

    Raises:
        AwsError: `AccessDenied`.
    """
    owner = queue.name.account
    arn = names.arn_of(queue.name)
    allowed = call.may(f"sqs:{action}", arn, owner, queue.attributes.get("Policy"))
    if not allowed or (action in _OWNER_ALONE and call.account != owner):
        raise denied(call.principal.name, f"sqs:{action}", arn)

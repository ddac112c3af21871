"""Policies of queues: whether a topic may send to one."""

from redrive.access.condition_keys import OF_TIME
from redrive.access.policy import (
    AccessRequest,
    RequestKeys,
    evaluate,
    request_keys,
    resource_keys,
    source_keys,
    time_keys,
)
from redrive.access.policy_document import stored_policy
from redrive.access.principals import service_principal
from redrive.aws.sns.documents import names
from redrive.engine.ports import Clock
from redrive.model.memo import remembered
from redrive.model.names import ResourceName


class QueuePolicies:
    """Asks queues' policies in the name of topics."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def let_in(self, policy: str, queue: ResourceName, topic: ResourceName) -> bool:
        """True if a queue's policy lets a topic send to it."""
        answer = _lasting_answer(policy, queue, topic)
        if answer is not None:
            return answer
        keys = request_keys(_keys(queue, topic), time_keys(self._clock.now()))
        return _allows(policy, queue, topic, keys)


# A policy sees the topic and its owner alone, so its answer holds until its text changes.
@remembered(4096, 2048, longer_max=128)
def _lasting_answer(policy: str, queue: ResourceName, topic: ResourceName) -> bool | None:
    """The answer; None where it changes with time."""
    if not OF_TIME.isdisjoint(stored_policy(policy).keys):
        return None
    return _allows(policy, queue, topic, _keys(queue, topic))


def _allows(policy: str, queue: ResourceName, topic: ResourceName, keys: RequestKeys) -> bool:
    request = AccessRequest(
        service_principal("sns", topic.region),
        "sqs:SendMessage",
        f"arn:aws:sqs:{queue.region}:{queue.account}:{queue.name}",
        keys,
    )
    return evaluate(stored_policy(policy), request, queue.account).allowed


def _keys(queue: ResourceName, topic: ResourceName) -> RequestKeys:
    """The condition keys of a delivery, but for those of time."""
    return request_keys(
        resource_keys(region=queue.region, account=queue.account),
        source_keys(arn=names.arn_of(topic), account=topic.account),
    )

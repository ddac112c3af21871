"""Facts as the engine tells them, with everything that a test does not care about filled in."""

from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered
from redrive.model import delivery as deliveries
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, Outcome, Transition
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Subscription, Topic

HERE = ResourceName("000000000000", "us-east-1")
TOPIC = Topic(1, HERE._replace(name="orders"), "sns")
DEAD_LETTERS = HERE._replace(name="dead")

ACCEPTED = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "OK", 12)
FAILED = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "busy", 12)


def queue(name: str, number: int = 7, *, dead_letter: ResourceName | None = None) -> Queue:
    target = None if dead_letter is None else DeadLetterTarget(dead_letter, 3)
    return Queue(number, HERE._replace(name=name), dead_letter=target)


def subscription(protocol: str = "sqs", *, confirmed: bool = True) -> Subscription:
    return Subscription(
        id="s",
        topic=TOPIC.name,
        queue_id=2,
        owner=HERE.account,
        protocol=protocol,
        endpoint="somewhere",
        confirmed=confirmed,
        dead_letter=DEAD_LETTERS,
    )


def delivery(at: int = 0, headers: bytes | None = None) -> Delivery:
    return Delivery(2, 1, at, 1, 9, at, at, at, bytes(16), None, None, None, headers, "hello")


def attempted(
    at: int,
    attempt: Attempt = ACCEPTED,
    outcome: Outcome = Outcome.DELIVERED,
    protocol: str = "sqs",
    *,
    confirmed: bool = True,
    replayed: bool = False,
) -> Attempted:
    whose = subscription(protocol, confirmed=confirmed)
    headers = deliveries.as_replayed(b"{}") if replayed else None
    return Attempted(TOPIC, whose, delivery(at, headers), attempt, Transition(outcome), at)


def dead_lettered(at: int, attempt: Attempt = ACCEPTED) -> DeadLettered:
    return DeadLettered(TOPIC, subscription(), delivery(at), attempt, at)


def accepted(at: int, *queues: Queue) -> Accepted:
    return Accepted(TOPIC, queues, len("hello"), lambda: [attempted(at) for _ in queues], at)

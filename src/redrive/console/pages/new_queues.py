"""New queues: one by itself, and one for what a queue or a subscription cannot deliver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from redrive.aws.sns.documents.names import subscription_arn
from redrive.aws.sqs.attributes import ATTEMPTS_MAX
from redrive.aws.sqs.names import FIFO_SUFFIX, arn_of
from redrive.aws.wire.errors import AwsError
from redrive.console.commands import aws_command
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Unusable, Visit
from redrive.console.words import many, receiver
from redrive.model.queue import Queue
from redrive.model.topic import Subscription

_SUGGESTED_MAX: Final = 50
_RECEIVES: Final = 5
_KEPT_SECONDS: Final = 14 * 86_400  # as long as a queue can: a weekend and a holiday


# ---- a queue by itself ---------------------------------------------------------------------------------------------


async def form(visit: Visit) -> Page:
    """A form for a queue."""
    return _form(visit, "")


async def make(visit: Visit) -> Page | Redirect:
    """Create a queue, and one for its dead letters if that was chosen, by the rules of SQS."""
    name, ordered = visit.parameter("name").strip(), bool(visit.parameter("fifo"))
    name = f"{name}{FIFO_SUFFIX}" if ordered and name and not name.endswith(FIFO_SUFFIX) else name
    if await visit.engine.resources.queues.get(visit.scope._replace(name=name)) is not None:
        return _form(visit, f"There is a queue {name} already.", REFUSED)
    dead = _dead_name(name) if visit.parameter("keeps") else ""
    attributes = {"FifoQueue": "true"} if name.endswith(FIFO_SUFFIX) else {}
    if dead:
        attributes["RedrivePolicy"] = _policy(visit, dead, visit.number("receives", _RECEIVES))
    try:
        if dead:
            await _make_dead(visit, dead)
        await visit.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})
    except AwsError as error:
        return _form(visit, error.message, REFUSED)
    sentence = f"{name} is created{f', with {dead} for its dead letters' if dead else ''}"
    return Redirect(visit.link("queues", name), sentence=sentence)


def _form(visit: Visit, notice: str, status: int = 200) -> Page:
    """The form for a queue with a dead-letter queue, filled with what was typed or the usual."""
    values = {
        "notice": notice,
        "name": visit.parameter("name"),
        "fifo": visit.parameter("fifo"),
        "keeps": visit.parameter("keeps") or not visit.form,
        "receives": visit.parameter("receives") or str(_RECEIVES),
        "receives_max": ATTEMPTS_MAX,
        "command": aws_command(
            visit, "sqs", "create-queue", "--queue-name", visit.parameter("name") or "orders"
        ),
        "back": visit.link("queues"),
    }
    return Page("new_queue.html", values, status)


def _dead_name(name: str) -> str:
    """The usual name of a queue for the dead letters of something, of the same kind."""
    return f"{name.removesuffix(FIFO_SUFFIX)}-dead{FIFO_SUFFIX if name.endswith(FIFO_SUFFIX) else ''}"


async def _make_dead(visit: Visit, name: str) -> bool:
    """Create a queue for dead letters, unless there is one of that name; whether it was created."""
    if await visit.engine.resources.queues.get(visit.scope._replace(name=name)) is not None:
        return False
    attributes = {"MessageRetentionPeriod": str(_KEPT_SECONDS)}
    attributes |= {"FifoQueue": "true"} if name.endswith(FIFO_SUFFIX) else {}
    await visit.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})
    return True


def _policy(visit: Visit, dead: str, receives: int = 0) -> str:
    """A redrive policy as its JSON text; one of a subscription has no number of receives."""
    number = {"maxReceiveCount": receives} if receives else {}
    arn = arn_of(visit.scope._replace(name=dead))
    return orjson.dumps({"deadLetterTargetArn": arn, **number}).decode()


# ---- a dead-letter queue for something -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LetterSource:
    """A queue or a subscription that gets a dead-letter queue."""

    of: Queue | Subscription
    link: str  # Its page

    @property
    def title(self) -> str:
        """The name as a person says it."""
        if isinstance(self.of, Queue):
            return self.of.name.name
        return f"{self.of.topic.name} → {receiver(self.of.redacted_endpoint)}"

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields of a form that name the source."""
        if isinstance(self.of, Queue):
            return {"queue": self.of.name.name}
        return {"topic": self.of.topic.name, "subscription": self.of.id}

    @property
    def dead(self) -> str:
        """The name of its dead-letter queue; empty: it has none."""
        if isinstance(self.of, Queue):
            return self.of.dead_letter.queue.name if self.of.dead_letter else ""
        return self.of.dead_letter.name if self.of.dead_letter else ""

    @property
    def receives(self) -> int:
        """The number of receives after which a message of a queue is dead; where there is none, the usual one."""
        if isinstance(self.of, Queue) and self.of.dead_letter is not None:
            return self.of.dead_letter.attempts_max
        return _RECEIVES

    def operation(self, visit: Visit, policy: str) -> tuple[str, str, Mapping[str, Any]]:
        """The call that gives it a redrive policy, or takes it away (empty): service, operation and parameters."""
        if isinstance(self.of, Queue):
            attributes = {"RedrivePolicy": policy}
            return "sqs", "SetQueueAttributes", {"QueueUrl": visit.url_of(self.of), "Attributes": attributes}
        params = {
            "SubscriptionArn": subscription_arn(self.of),
            "AttributeName": "RedrivePolicy",
            "AttributeValue": policy,
        }
        return "sns", "SetSubscriptionAttributes", params

    def command(self, visit: Visit, policy: str) -> str:
        """This `operation` as a command of the AWS CLI."""
        if isinstance(self.of, Queue):
            attributes = orjson.dumps({"RedrivePolicy": policy}).decode()
            where = ("--queue-url", visit.url_of(self.of))
            return aws_command(visit, "sqs", "set-queue-attributes", *where, "--attributes", attributes)
        words = ("sns", "set-subscription-attributes", "--subscription-arn", subscription_arn(self.of))
        return aws_command(visit, *words, "--attribute-name", "RedrivePolicy", "--attribute-value", policy)


async def dead_letter_form(visit: Visit) -> Page:
    """A form for the dead-letter queue of a queue or a subscription."""
    return await _dead_letter_form(visit, await _source(visit), "")


async def set_dead_letters(visit: Visit) -> Page | Redirect:
    """Give a queue or a subscription a dead-letter queue, created if there is none of that name; or take it away."""
    source = await _source(visit)
    if visit.parameter("do") == "remove":
        service, operation, params = source.operation(visit, "")
        await visit.call(service, operation, params)
        return Redirect(source.link, sentence=f"{source.title} no longer has a dead-letter queue")
    name = visit.parameter("dead").strip()
    receives = visit.number("receives", _RECEIVES) if isinstance(source.of, Queue) else 0
    if not name:
        return await _dead_letter_form(visit, source, "A dead-letter queue has a name.", REFUSED)
    try:
        is_new = await _make_dead(visit, name)
        service, operation, params = source.operation(visit, _policy(visit, name, receives))
        await visit.call(service, operation, params)
    except AwsError as error:
        return await _dead_letter_form(visit, source, error.message, REFUSED)
    after = f" after {receives} {many(receives, 'receive')}" if receives else ""
    sentence = f"Failed messages are kept in {name}{', which is new,' if is_new else ''} from now on{after}"
    fields = {**{key: [value] for key, value in source.fields.items()}, "do": ["remove"]}
    undo = visit.link("dead-letter-queue").removeprefix(visit.base), fields
    return Redirect(source.link, sentence=sentence, undo=None if source.dead else undo, after=name)


async def _source(visit: Visit) -> LetterSource:
    """The queue or subscription that a link or a form names.

    Raises:
        Missing: It is not there.
        Unusable: Neither is named.
    """
    resources, name = visit.engine.resources, visit.parameter("queue") or visit.parameter("topic")
    if not name:
        raise Unusable("A dead-letter queue is for a queue or a subscription: the link names neither.")
    if visit.parameter("queue"):
        queue = await resources.queues.get(visit.scope._replace(name=name))
        if queue is not None:
            return LetterSource(queue, visit.link("queues", name))
        raise Missing(f"There is no queue {name[:80]}.")
    subscription = await resources.subscriptions.get(
        visit.scope._replace(name=name), visit.parameter("subscription")
    )
    if subscription is None:
        raise Missing(f"There is no such subscription of {name[:80]}.")
    return LetterSource(subscription, visit.link("topics", name, subscription.id))


async def _dead_letter_form(visit: Visit, source: LetterSource, notice: str, status: int = 200) -> Page:
    """The form for a dead-letter queue of a queue or subscription (`source`)."""
    queues = await visit.engine.resources.queues.find(visit.scope, "", _SUGGESTED_MAX)
    usual = source.dead or _dead_name(source.fields.get("queue") or source.fields["topic"])
    dead = visit.parameter("dead") or usual
    receives = visit.parameter("receives") or str(source.receives)
    number = int(receives) if receives.isascii() and receives.isdigit() else _RECEIVES
    policy = _policy(visit, dead, number if "queue" in source.fields else 0)
    values = {
        "source": source,
        "notice": notice,
        "dead": dead,
        "receives": receives,
        "receives_max": ATTEMPTS_MAX,
        "queues": [each.name.name for each in queues],
        "command": source.command(visit, policy),
    }
    return Page("dead_letter_queue.html", values, status)

"""A test: a message that is pushed to one subscription alone, once, and the answer of its receiver."""

from typing import Final

from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.destinations import HTTP
from redrive.aws.sns.documents.topic_attributes import DIALECT
from redrive.aws.sns.notifications.notification import address, envelope
from redrive.console.visit import REFUSED, Missing, Page, Unusable, Visit
from redrive.console.words import failure_words
from redrive.engine.operations import EndpointState
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery
from redrive.model.names import id_text
from redrive.model.topic import Subscription, Topic

#: The header of every test, as copies of a rehearsal have theirs.
MARK: Final = {"x-redrive-test": "1"}
BODY_CHARS_MAX: Final = 256 * 1024
_SUBJECT: Final = "Test"
_SAMPLE: Final = '{"test": true}'


def takes_tests(topic: Topic, subscription: Subscription) -> bool:
    """True if a test can be sent to a subscription: to a web address of a topic of SNS that is confirmed."""
    return topic.dialect == DIALECT and subscription.protocol in HTTP and subscription.confirmed


async def form(visit: Visit) -> Page:
    """A form for the text of a test."""
    return await _page(visit, *await _receiver(visit))


async def push(visit: Visit) -> Page:
    """Push the test, and show the answer; raises Unusable if the subscription takes no tests."""
    topic, subscription = await _receiver(visit)
    if not takes_tests(topic, subscription):
        raise Unusable("A test goes to a web address that has confirmed its subscription.")
    body = visit.parameter("body")
    if not 1 <= len(body) <= BODY_CHARS_MAX:
        return await _page(visit, topic, subscription, f"A message has 1 to {BODY_CHARS_MAX:,} characters.")
    delivery = _delivery(visit, topic, subscription, body)
    attempt = await visit.engine.operations.push_once(subscription, delivery, MARK)
    if attempt is None:
        raise Unusable("Nothing is pushed to this subscription.")
    return await _page(visit, topic, subscription, attempt=attempt)


async def _receiver(visit: Visit) -> tuple[Topic, Subscription]:
    """The topic and the subscription that the address names; raises Missing."""
    topic = await visit.topic()
    subscription = await visit.engine.resources.subscriptions.get(topic.name, visit.args["subscription"])
    if subscription is None:
        raise Missing(f"There is no subscription {visit.args['subscription'][:80]} of {topic.name.name}.")
    return topic, subscription


def _delivery(visit: Visit, topic: Topic, subscription: Subscription, body: str) -> Delivery:
    """The test as it would wait for the subscription, if it stood in its backlog."""
    message_id, arn = visit.engine.runtime.message_id(), names.arn_of(topic.name)
    version = topic.attributes.get("SignatureVersion", "1")
    shared = envelope(id_text(message_id), arn, visit.now, version, _SUBJECT)
    return Delivery(
        queue_id=subscription.queue_id,
        seq=0,
        available_at=visit.now,
        attempts=1,
        token=None,
        enqueued_at=visit.now,
        sent_at=visit.now,
        first_claimed_at=visit.now,
        message_id=message_id,
        group_id=None,
        deduplication_id=None,
        origin=None,
        headers=address(shared, names.subscription_arn(subscription), raw=subscription.raw),
        body=body,
    )


async def _page(
    visit: Visit, topic: Topic, subscription: Subscription, notice: str = "", attempt: Attempt | None = None
) -> Page:
    """The form for a test message to a subscription, with the result of the attempt that was made."""
    condition = await visit.engine.operations.conditions.of(subscription)
    result = "" if attempt is None else _result(attempt)
    values = {
        "topic": topic,
        "subscription": subscription,
        "takes": takes_tests(topic, subscription),
        "on_hold": condition.condition is EndpointState.CIRCUIT_OPEN,
        "notice": notice,
        "body": visit.parameter("body") or _SAMPLE,
        "attempt": attempt,
        "result": result,
        "resume": visit.link("endpoints"),
        "back": visit.link("topics", topic.name.name, subscription.id),
    }
    did = f"A test to {subscription.redacted_endpoint}: {result}" if result else ""
    return Page("test_push.html", values, REFUSED if notice else 200, did=did)


def _result(attempt: Attempt) -> str:
    """The result of a test in words: `Taken: 204`, `Server error 503`."""
    if attempt.delivered:
        return f"Taken: {attempt.status}" if attempt.status else "Taken"
    return failure_words(f"{attempt.reason.value} {attempt.status or ''}".strip())

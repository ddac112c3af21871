"""SNS's part in delivering: where a delivery goes, how often it is tried, and what an endpoint gets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import orjson

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
from redrive.aws.sns.devices import events, platform
from redrive.aws.sns.devices.push import OWN_TEXT
from redrive.aws.sns.documents import destinations, names
from redrive.aws.sns.documents.delivery_policy import (
    CONTENT_TYPE_DEFAULT,
    RetryPolicy,
    SubscriptionDeliveryPolicy,
)
from redrive.aws.sns.documents.subscription_attributes import effective_delivery_policy
from redrive.aws.sns.notifications.notification import PublishedMessage, is_confirmation, opening
from redrive.aws.sns.notifications.notification_renderer import NotificationRenderer
from redrive.engine.ports import Clock, FollowUp, Plan, PushRequest, SubscriptionContext
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import (
    CLIENT_ERRORS_DELIVERED,
    USUAL,
    AnswerProfile,
    Attempt,
    AttemptResult,
    Reason,
)
from redrive.model.circuit import USUAL as USUAL_CIRCUIT
from redrive.model.delivery import Delivery
from redrive.model.memo import remembered
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

_RAW_ATTRIBUTES_MAX: Final = 10  # what SQS takes of one message
_PLATFORMS: Final = "platforms"


class SnsDeliveryProfile:
    """`redrive.engine.ports.DeliveryProfile` of topics made through SNS."""

    name: Final = "sns"

    def __init__(
        self,
        renderer: NotificationRenderer,
        clock: Clock,
        *,
        open_queues: bool,
        client_errors_delivered: bool = False,
    ) -> None:
        """Deliver as SNS does.

        Args:
            renderer: Renders deliveries.
            clock: Tells the time to policies that ask for it.
            open_queues: Whether a queue without a policy takes messages from topics of its own account. Amazon's
                does not: its policy has to let `sns.amazonaws.com` in. A queue with a policy is held to it always.
            client_errors_delivered: A webhook's 4xx counts as delivered for all subscriptions, not only for those that
                say so.
        """
        self._open_queues = open_queues
        self._client_errors_delivered = client_errors_delivered
        self._renderer = renderer
        self._queue_policies = QueuePolicies(clock)

    # ---- what only the subscription changes --------------------------------------------------------------

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """The settings for a subscription's deliveries; a failed confirmation is not dead-lettered."""
        over_http = subscription.protocol in destinations.HTTP
        return SubscriptionContext(
            topic,
            subscription,
            self,
            plan=self._plan(topic, subscription),
            headers=_addressing(subscription),
            queue=names.queue_in(subscription.endpoint) if subscription.protocol == "sqs" else None,
            dead_letter=subscription.dead_letter,
            is_confirmation=_is_confirmation,
            awaits_confirmation=not subscription.confirmed,
            identify=_published_id,
            content_type=_content_type(topic, subscription),
            render_at_once=self._render_at_once if over_http else None,
            render_together=self._render_together if over_http and not subscription.raw else None,
        )

    def _plan(self, topic: Topic, subscription: Subscription) -> Plan:
        """The plan for retries of a subscription: its delivery policy over HTTP, else its protocol's."""
        if subscription.protocol not in destinations.HTTP:
            return destinations.PROTOCOLS[subscription.protocol].plan
        client_errors_delivered = self._client_errors_delivered or subscription.client_errors_delivered
        answers = CLIENT_ERRORS_DELIVERED if client_errors_delivered else USUAL
        policy = effective_delivery_policy(topic, subscription)
        return _http_plan(policy, answers, breaks=subscription.rests)

    # ---- what a queue refuses ----------------------------------------------------------------------------

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """The client error with which a queue refuses a message; None: it takes it."""
        if queue is None:
            return _MISSING
        if not self._takes(queue, context.topic):
            return _DENIED
        if headers is not None and (refusal := _raw_refusal_of(headers)) is not None:
            return refusal
        # No character takes more than four bytes, and hardly any queue takes less than a topic's largest message.
        if 4 * len(body) > queue.body_bytes_max and len(body.encode()) > queue.body_bytes_max:
            return _TOO_LARGE
        return None

    def _takes(self, queue: Queue, topic: Topic) -> bool:
        """True if the queue lets the topic in, by its policy or (without one) as one of its account."""
        text = queue.attributes.get("Policy")
        if text is None:
            return self._open_queues and queue.name.account == topic.name.account
        return self._queue_policies.allows(text, queue.name, topic.name)

    # ---- what an endpoint gets ---------------------------------------------------------------------------

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The request of one attempt; only those to streams have several deliveries, in parts."""
        first, *others = [await self._render_one(context, delivery) for delivery in deliveries]
        if not others:
            return first
        return replace(first, body=b"", parts=[push_request.body for push_request in (first, *others)])

    async def _render_one(self, context: SubscriptionContext, delivery: Delivery) -> PushRequest:
        return await self._renderer.push_request(
            context.subscription,
            delivery,
            content_type=context.content_type,
            display_name=context.topic.attributes.get("DisplayName", ""),
        )

    def _render_at_once(
        self, context: SubscriptionContext, deliveries: Sequence[Delivery]
    ) -> PushRequest | None:
        (delivery,) = deliveries
        return self._renderer.notification_at_once(context.subscription, delivery, context.content_type)

    async def _render_together(
        self, context: SubscriptionContext, attempts: Sequence[Sequence[Delivery]]
    ) -> Sequence[PushRequest | None]:
        deliveries = [delivery for (delivery,) in attempts]
        return await self._renderer.notifications(context.subscription, deliveries, context.content_type)

    # ---- what follows ------------------------------------------------------------------------------------

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """The event of its application, if a push to a device has failed; no other messages."""
        return events.failure_follow_ups(fact) if fact.subscription.protocol == "application" else ()


def _content_type(topic: Topic, subscription: Subscription) -> str:
    content_type = None
    if subscription.protocol in destinations.HTTP:
        content_type = effective_delivery_policy(topic, subscription).content_type
    return content_type or CONTENT_TYPE_DEFAULT


def _is_confirmation(delivery: Delivery) -> bool:
    return is_confirmation(delivery.headers or b"")


def _published_id(delivery: Delivery) -> str:
    return str(orjson.loads(delivery.headers or b"{}").get("id", ""))


def _addressing(subscription: Subscription) -> Callable[[bytes], bytes]:
    """A function that makes a delivery's headers of an envelope; a device's have only its own platform's text."""
    arn = names.subscription_arn_in(subscription.topic, subscription.id)
    begin = opening(arn, raw=subscription.raw)

    def to_headers(envelope: bytes) -> bytes:
        platform_text = None
        # Platforms' texts are its last member: a search of all envelopes took a fiftieth of a publication to four queues.
        if envelope.endswith(b"}}") and _PLATFORMS_MARK in envelope:
            envelope, platform_text = _without_platforms(subscription, envelope)
        headers = begin + envelope[1:]  # one JSON object of the members of both
        if platform_text is None:
            return headers
        return b'%b,"%b":%b}' % (headers[:-1], OWN_TEXT.encode(), orjson.dumps(platform_text))

    return to_headers


# Few policies are shared by many subscriptions.
@lru_cache(maxsize=1024)
def _http_plan(policy: SubscriptionDeliveryPolicy, answers: AnswerProfile, *, breaks: bool) -> Plan:
    retry = policy.retry or RetryPolicy()
    return Plan(
        retry.schedule(),
        rate_max=policy.receives_per_second_max,
        answers=answers,
        circuit=USUAL_CIRCUIT if breaks else None,
    )


# ---- texts for mobile platforms ----------------------------------------------------------------------------------

_PLATFORMS_MARK: Final = b',"platforms":'


def with_platforms(envelope: bytes, texts: dict[str, str]) -> bytes:
    """An envelope with the texts that `MessageStructure=json` has for mobile platforms, where it has any."""
    platform_texts = {name: text for name, text in texts.items() if name in platform.PLATFORMS}
    if not platform_texts:
        return envelope
    return b"%b%b%b}" % (envelope[:-1], _PLATFORMS_MARK, orjson.dumps(platform_texts))


def _without_platforms(subscription: Subscription, envelope: bytes) -> tuple[bytes, str | None]:
    """An envelope without the texts for platforms, and of those the one for this subscription's platform, if any."""
    fields: dict[str, Any] = orjson.loads(envelope)
    texts: dict[str, str] = fields.pop(_PLATFORMS, {})
    platform_text = None
    if subscription.protocol == "application":
        platform_text = texts.get(subscription.endpoint.split("/")[1])
    return orjson.dumps(fields), platform_text


# ---- why a queue does not take it ----------------------------------------------------------------------------------


def _refusal(reason: Reason, status: int, code: str, message: str) -> Attempt:
    response = {"ErrorCode": code, "ErrorMessage": message, "sqsRequestId": "Unrecoverable"}
    return Attempt(AttemptResult.REFUSED, reason, status, orjson.dumps(response).decode())


_MISSING: Final = _refusal(
    Reason.MISSING,
    400,
    "AWS.SimpleQueueService.NonExistentQueue",
    "The specified queue does not exist or you do not have access to it.",
)
_DENIED: Final = _refusal(
    Reason.DENIED, 403, "AccessDenied", "Access to the resource is denied by its policy."
)
_TOO_LARGE: Final = _refusal(
    Reason.TOO_LARGE, 400, "InvalidParameterValue", "The message is longer than the queue's maximum."
)


def raw_refusal(attributes: int) -> Attempt | None:
    """The refusal of a message for raw delivery, whose attributes become SQS's; None unless it has more than ten.

    "SNS raw message delivery": with more, the delivery fails as a client-side error.
    """
    if attributes <= _RAW_ATTRIBUTES_MAX:
        return None
    text = f"Number of message attributes [{attributes}] exceeds the allowed maximum [{_RAW_ATTRIBUTES_MAX}]."
    return _refusal(Reason.TOO_LARGE, 400, "InvalidParameterValue", text)


def _raw_refusal_of(headers: bytes) -> Attempt | None:
    """The refusal of a stored delivery, by its headers: of one that is sent back, or that waited behind a replay."""
    if is_confirmation(headers):
        return None
    published = PublishedMessage.unpack(headers)
    return raw_refusal(len(published.attributes)) if published.raw else None


# ---- policies of queues: whether a topic may send to one -------------------------------------------------------------


class QueuePolicies:
    """Decides by queues' policies whether topics may send to them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def allows(self, policy: str, queue: ResourceName, topic: ResourceName) -> bool:
        """True if a queue's policy lets a topic send to it; an answer that cannot change with time is remembered."""
        answer = _lasting_answer(policy, queue, topic)
        if answer is not None:
            return answer
        keys = request_keys(_keys(queue, topic), time_keys(self._clock.now()))
        return _policy_allows(policy, queue, topic, keys)


# A policy sees the topic and its owner alone, so its answer holds until its text changes.
@remembered(entries_max=4096, chars_max=2048, longer_max=128)
def _lasting_answer(policy: str, queue: ResourceName, topic: ResourceName) -> bool | None:
    """The answer of a policy; None if it depends on the time."""
    if not OF_TIME.isdisjoint(stored_policy(policy).keys):
        return None
    return _policy_allows(policy, queue, topic, _keys(queue, topic))


def _policy_allows(policy: str, queue: ResourceName, topic: ResourceName, keys: RequestKeys) -> bool:
    """True if a queue's policy lets the topic send messages."""
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

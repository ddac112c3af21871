"""Delivery of events to event subscriptions: destination, schedule, schema, and follow-ups."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import orjson
from typing_extensions import override

from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid import dead_letters, names, outcomes, push_requests
from redrive.azure.eventgrid.published import PublishedEvent, delivered_as, render_event
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    DeliverySettings,
    delivery_settings,
    topic_settings,
)
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import (
    ONE_EACH,
    Batch,
    FollowUp,
    Plan,
    PushRequest,
    SubscriptionContext,
    whole_envelope,
)
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import AnswerProfile, Attempt, AttemptResult, Reason, statuses
from redrive.model.delivery import Delivery
from redrive.model.durations import MINUTE_MS, SECOND_MS
from redrive.model.names import ResourceName, bytes_of
from redrive.model.queue import DAY_MS, Queue
from redrive.model.retry import Phase, RetrySchedule, Stage
from redrive.model.retry_plans import EVENT_WEBHOOK
from redrive.model.topic import Publication, Subscription, Topic

QUEUE: Final = "queue"
PULL: Final = "pull"  # a namespace's queue, which callers receive from; the endpoint is its key in the engine
_QUEUE_ARN_PARTS: Final = 6
_SOFT_TIMEOUT_MS: Final = 30_000  # "waits 30 seconds for a response after delivering a message"
_LEASE_MS: Final = 60_000


class EventProfile:
    """`DeliveryProfile` of the event subscriptions of topics and domains."""

    name: str = names.DIALECT

    def __init__(self, tokens: WebhookTokens) -> None:
        self._tokens = tokens

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`; a queue has the answers of a webhook, and its refusals are retried."""
        settings = delivery_settings(subscription)
        if subscription.protocol == QUEUE:  # handed over one by one
            settings = replace(settings, batch=ONE_EACH)
        return SubscriptionContext(
            topic,
            subscription,
            self,
            plan=self._plan(topic, settings),
            headers=_headers(subscription, settings),
            queue=_queue_of(subscription),
            dead_letter=subscription.dead_letter,
            retries_refusals=subscription.protocol == QUEUE,
            awaits_confirmation=not subscription.confirmed,
            identify=event_id,
            render_at_once=self._render if subscription.protocol in push_requests.HTTP else None,
        )

    def _plan(self, topic: Topic, settings: DeliverySettings) -> Plan:  # noqa: ARG002 - a namespace's topic has a say
        return _plan(
            settings.destination_type, settings.attempts_max, settings.minutes_to_live, settings.batch
        )

    def refusal(
        self,
        context: SubscriptionContext,  # noqa: ARG002 - as DeliveryProfile
        queue: Queue | None,
        body: str,
        headers: bytes | None = None,  # noqa: ARG002 - as DeliveryProfile
    ) -> Attempt | None:
        """See `DeliveryProfile.refusal`; whoever may subscribe a queue may have it filled."""
        if queue is None:
            return _MISSING
        return _TOO_LARGE if bytes_of(body) > queue.body_bytes_max else None

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """See `DeliveryProfile.render`."""
        return self._render(context, deliveries)

    def _render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        settings = delivery_settings(context.subscription)
        authorization = self._tokens.authorization(settings.audience)
        return push_requests.push_request(context.subscription, settings, deliveries, authorization)

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """See `DeliveryProfile.follow_ups`.

        An event that is given up becomes a letter for its store. One that is delivered to another topic is published
        there.
        """
        if not fact.attempt.delivered:
            settings = delivery_settings(fact.subscription)
            return () if settings.dead_letter_container is None else (_letter(fact, settings),)
        return (_forward(fact),) if fact.subscription.protocol == names.TOPIC else ()


class NamespaceEventProfile(EventProfile):
    """`DeliveryProfile` of the event subscriptions of namespaces' topics."""

    name = names.NAMESPACES

    @override
    def _plan(self, topic: Topic, settings: DeliverySettings) -> Plan:
        return namespace_plan(topic, settings)


@lru_cache(maxsize=1024)
def _plan(destination_type: str, attempts_max: int, minutes_to_live: int, batch: Batch) -> Plan:
    """The plan for pushing to a destination of this type, by a retry policy."""
    schedule = replace(EVENT_WEBHOOK, attempts_max=attempts_max, expires_after_ms=minutes_to_live * MINUTE_MS)
    return Plan(
        schedule,
        lease_ms=_LEASE_MS,
        batch=batch,
        answers=outcomes.answers_of(destination_type),
        soft_timeout_ms=_SOFT_TIMEOUT_MS,
        late_answer_ms=push_requests.TIMEOUT_MS,
        circuit=outcomes.probation_of(destination_type),
    )


def _headers(subscription: Subscription, settings: DeliverySettings) -> Callable[[bytes], bytes]:
    """Envelopes as they are; a message in a queue of this server is told in which schema its receiver sees it."""
    if subscription.protocol != QUEUE:
        return whole_envelope
    return lambda envelope: delivered_as(envelope, settings.schema)


def event_id(delivery: Delivery) -> str:
    """The id that a publisher gave an event, where it gave it one."""
    event = PublishedEvent.unpack(delivery.headers).mapped or orjson.loads(delivery.body)
    return str(event.get("id", ""))


def _queue_of(subscription: Subscription) -> ResourceName | None:
    """The queue that takes the deliveries, or that they are pulled from; None: they are pushed elsewhere."""
    if subscription.protocol == PULL:
        return ResourceName.from_key(subscription.endpoint)
    if subscription.protocol != QUEUE:
        return None
    parts = subscription.endpoint.split(":")
    if len(parts) != _QUEUE_ARN_PARTS:
        return None
    return ResourceName(account=parts[4], region=parts[3], name=parts[5])


def _letter(fact: Attempted, settings: DeliverySettings) -> FollowUp:
    """The copy of an event that was given up, for the store of its dead letters."""
    delivery = fact.delivery
    published_event = PublishedEvent.unpack(delivery.headers)
    letter = dead_letters.letter_of(fact, settings)
    publication = _publication(delivery, delivery.body, replace(published_event, letter=letter))
    store = names.dead_letter_store(fact.subscription.id)
    return FollowUp(fact.topic.name, publication, store, dead_letters.DELAY_MS)


def _forward(fact: Attempted) -> FollowUp:
    """An event published to the topic that was subscribed to it; such topics take CloudEvents alone."""
    delivery, endpoint = fact.delivery, fact.subscription.endpoint
    resource = ArmId.parse(endpoint)
    topic = None if resource is None else names.topic_name(resource)
    if topic is None:
        raise ValueError(f"{endpoint} is no topic, and took an event")
    text = render_event(delivery.body, PublishedEvent.unpack(delivery.headers), CLOUD_EVENT_SCHEMA)
    published_event = PublishedEvent(CLOUD_EVENT_SCHEMA, endpoint, fact.at)
    return FollowUp(topic, _publication(delivery, text, published_event))


def _publication(delivery: Delivery, body: str, published_event: PublishedEvent) -> Publication:
    """A publication of a delivery's message again, with this body and these headers."""
    return Publication(
        id=delivery.message_id,
        body=body,
        bodies={},
        attributes={},
        envelope=published_event.envelope(),
        bytes_published=bytes_of(body),
    )


_MISSING: Final = Attempt(AttemptResult.REFUSED, Reason.MISSING, 404, "The queue does not exist.")
_TOO_LARGE: Final = Attempt(
    AttemptResult.REFUSED, Reason.TOO_LARGE, 413, "The event is longer than the queue's maximum."
)


# Push delivery of events of a namespace's topic.
#
# The published moments are counted from the first attempt: "0, 10s, 30s, 1m, 5m, 10m, 15m, 20m", so these are the waits
# between them:
#
#     attempt   1    2     3     4     5      6      7 to 10
#     wait      -    10 s  20 s  30 s  4 min  5 min  5 min each
#     at        0    10 s  30 s  1 min 5 min  10 min 15 min …
#
# What is refused for good is 400, 401, 403, 404, 413 and 414. The page that has this list ("Message push delivery and
# retry with namespace topics") counts time-outs and failing connections among it as well, and in its next table says
# that 408 is tried again; here they are tried again, since the event is lost otherwise.

ATTEMPTS_MAX: Final = 10
_WAITS_MS: Final = (10 * SECOND_MS, 20 * SECOND_MS, 30 * SECOND_MS, 4 * MINUTE_MS)
_SCHEDULE: Final = RetrySchedule(
    (
        *(Stage(Phase.BACKOFF, 1, wait_ms, wait_ms) for wait_ms in _WAITS_MS),
        Stage(Phase.POST_BACKOFF, ATTEMPTS_MAX - 1 - len(_WAITS_MS), 5 * MINUTE_MS, 5 * MINUTE_MS),
    ),
    earlier_permille=0,
    later_permille=25,
)
_DELIVERED: Final = statuses(range(200, 205))
_REFUSED: Final = statuses(400, 401, 403, 404, 413, 414)
_ANSWERS: Final = AnswerProfile(
    _DELIVERED, _REFUSED, statuses(range(100, 600), besides=_DELIVERED | _REFUSED), {408: 2 * MINUTE_MS}
)


def namespace_plan(topic: Topic, settings: DeliverySettings) -> Plan:
    """The plan for pushing to a subscription; an event lives no longer than its topic keeps it."""
    kept_ms = (topic_settings(topic).retention_days or 1) * DAY_MS
    to_live_ms = min(settings.minutes_to_live * MINUTE_MS, kept_ms)
    return _namespace_plan(settings.destination_type, settings.attempts_max, to_live_ms, settings.batch)


@lru_cache(maxsize=1024)
def _namespace_plan(destination_type: str, attempts_max: int, to_live_ms: int, batch: Batch) -> Plan:
    """The plan for pushing events of a namespace to a destination of this type."""
    return Plan(
        replace(_SCHEDULE, attempts_max=attempts_max, expires_after_ms=to_live_ms),
        lease_ms=_LEASE_MS,
        batch=batch,
        answers=_ANSWERS,
        soft_timeout_ms=_SOFT_TIMEOUT_MS,
        late_answer_ms=push_requests.TIMEOUT_MS,
        circuit=outcomes.probation_of(destination_type),
    )

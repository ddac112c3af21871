"""Lambda's part in delivering: when an event is tried again, and where its end leads."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import orjson

from redrive.aws.lambda_.documents import backlogs
from redrive.aws.lambda_.documents.backlogs import (
    AGE_SECONDS,
    INVOCATIONS,
    RESERVED,
    RETRIES,
    TIMEOUT_SECONDS,
    BacklogTarget,
)
from redrive.aws.lambda_.invocations import events
from redrive.aws.lambda_.invocations.events import InvocationEvent
from redrive.aws.wire.arn import parse_arn
from redrive.engine.ports import AttemptNote, FollowUp, Plan, PushRequest, SubscriptionContext, whole_envelope
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.retry_plans import FUNCTION_BUSY, FUNCTION_ERROR, MANAGED_ENDPOINT
from redrive.model.topic import Subscription, Topic

RETRIES_USUAL: Final = 2
AGE_SECONDS_USUAL: Final = 21_600
#: Events of a version or an alias that one node runs at once: each takes a process of some 20 MB.
AT_ONCE_MAX: Final = 32
#: What an attempt takes besides the function's own time: ten seconds to start its process, and time to settle.
_LEASE_BESIDES_MS: Final = 60_000
#: Attempts at which the function was not run: they do not count among its retries.
_UNCOUNTED: Final = frozenset({Reason.THROTTLED, Reason.UNMADE})
_TIMEOUT_MS: Final = 15_000

#: Headers of requests to `backlogs.TO_FUNCTION` and `backlogs.TO_TARGET`.
REQUEST: Final = "request"
INVOKED_AS: Final = "arn"
TRACE: Final = "trace"
INVOKED_BEFORE: Final = "invoked"
ATTRIBUTES: Final = "attributes"
ACCOUNT: Final = "account"
REGION: Final = "region"
OBJECT: Final = "object"
FUNCTION: Final = "function"
DIED: Final = "died"

Notes = Callable[[int, bytes], Awaitable[Sequence[AttemptNote]]]


class LambdaDeliveryProfile:
    """`DeliveryProfile` of events, and of what their ends lead to."""

    name: Final = backlogs.DIALECT

    def __init__(self, notes: Notes) -> None:
        self._notes = notes  # What is remembered of a message's attempts, by its backlog's number and its id

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """The settings for deliveries of events or records, which have no dead-letter queue: see `follow_ups`."""
        is_of_events = subscription.id == INVOCATIONS
        return SubscriptionContext(
            topic,
            subscription,
            self,
            plan=_plan(subscription) if is_of_events else _TARGET_PLAN,
            headers=whole_envelope,
            identify=_request_id if is_of_events else _own_request_id,
            render_at_once=_render_at_once if is_of_events else None,
        )

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """Not asked: nothing here goes to a queue by itself."""
        raise NotImplementedError

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The request for an invocation, or for a letter or a record to a target."""
        (delivery,) = deliveries
        if context.subscription.id == INVOCATIONS:
            return _invocation(context, delivery, await self._invoked_before(delivery))
        envelope = orjson.loads(delivery.headers or b"{}")
        headers = {
            ACCOUNT: context.topic.name.account,
            REGION: context.topic.name.region.partition(":")[0],
            FUNCTION: backlogs.function_of(context.topic.name),
            ATTRIBUTES: orjson.dumps(envelope["attributes"]).decode(),
        }
        if "note" in envelope:
            died = (envelope["origin"], delivery.message_id.hex(), envelope["note"])
            headers[DIED] = orjson.dumps(died).decode()
        if envelope.get("object"):
            headers[OBJECT] = envelope["object"]
        if envelope["trace"]:
            headers[TRACE] = envelope["trace"]
        return _parcel(context, delivery, headers)

    async def _invoked_before(self, delivery: Delivery) -> int:
        """The number of times that the function was run for an event before this attempt."""
        before = delivery.attempts - 1
        if not before:
            return 0
        notes = await self._notes(delivery.queue_id, delivery.message_id)
        return before - sum(note.reason in _UNCOUNTED for note in notes)

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """The messages after an event's end: a letter to the dead-letter target, a record to the destination."""
        if fact.subscription.id != INVOCATIONS:
            return ()
        targets = fact.subscription.attributes
        follow_ups = []
        if not fact.attempt.delivered and BacklogTarget.DEAD_LETTER in targets:
            follow_ups.append(FollowUp(fact.topic.name, events.letter(fact), BacklogTarget.DEAD_LETTER))
        destination = events.target_of(fact)
        if destination in targets:
            service = parse_arn(targets[destination]).service
            follow_ups.append(FollowUp(fact.topic.name, events.record(fact, service), destination))
        return follow_ups


def _render_at_once(context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest | None:
    """The request of an event's first attempt: before another, earlier ones have to be looked up."""
    (delivery,) = deliveries
    return None if delivery.attempts > 1 else _invocation(context, delivery, 0)


def _invocation(context: SubscriptionContext, delivery: Delivery, invoked_before: int) -> PushRequest:
    """The request to invoke a function for an event, which `invoked_before` times was tried before."""
    event = InvocationEvent.unpack(delivery.headers, context.subscription.endpoint)
    headers = {
        ACCOUNT: context.topic.name.account,
        REQUEST: event.request_id,
        INVOKED_AS: event.arn,
        INVOKED_BEFORE: str(invoked_before),
    }
    if event.trace:
        headers[TRACE] = event.trace
    return _parcel(context, delivery, headers)


def _parcel(context: SubscriptionContext, delivery: Delivery, headers: Mapping[str, str]) -> PushRequest:
    endpoint, body = context.subscription.endpoint, delivery.body.encode()
    return PushRequest(endpoint, body, "application/json", headers, _TIMEOUT_MS)


def _plan(subscription: Subscription) -> Plan:
    """The plan for retries of events, by the attributes of the function's subscription."""
    attributes = subscription.attributes
    age_ms = int(attributes.get(AGE_SECONDS, AGE_SECONDS_USUAL)) * 1000
    retries = int(attributes.get(RETRIES, RETRIES_USUAL))
    reserved = int(attributes.get(RESERVED, AT_ONCE_MAX))
    return Plan(
        replace(FUNCTION_ERROR, attempts_max=1 + retries, expires_after_ms=age_ms),
        throttled_schedule=FUNCTION_BUSY,
        uncounted=_UNCOUNTED,
        age_ms_max=age_ms,
        concurrency_max=max(1, min(reserved, AT_ONCE_MAX)),
        lease_ms=int(attributes[TIMEOUT_SECONDS]) * 1000 + _LEASE_BESIDES_MS,
    )


#: A target that is in trouble is tried for 23 days, as SNS tries a queue; Lambda drops what is not taken at once.
_TARGET_PLAN: Final = Plan(MANAGED_ENDPOINT, concurrency_max=8, lease_ms=60_000)


def _request_id(delivery: Delivery) -> str:
    return InvocationEvent.unpack(delivery.headers).request_id


def _own_request_id(delivery: Delivery) -> str:
    attributes = orjson.loads(delivery.headers or b"{}").get("attributes", {})
    return str(attributes.get("RequestID", ("", ""))[1])

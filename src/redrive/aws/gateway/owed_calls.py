"""Calls that are owed: to services of this server, from backlogs that the engine drains like any other.

Each account's region has an engine topic for each kind of calls, which no caller can name; its one subscription is the
backlog.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import (
    DeliveryProfile,
    FollowUp,
    Plan,
    PushRequest,
    SubscriptionContext,
    whole_envelope,
)
from redrive.engine.ports.facts import Attempted
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.retry_plans import MANAGED_ENDPOINT
from redrive.model.topic import Subscription, Topic

#: A service that is in trouble is tried for a day: alarms and log events that are older are of no use.
_PLAN: Final = Plan(replace(MANAGED_ENDPOINT, expires_after_ms=DAY_MS), concurrency_max=8, lease_ms=60_000)
_TIMEOUT_MS: Final = 15_000
_ACCOUNT: Final = "account"
_REGION: Final = "region"


async def backlog_in(
    draft: Draft, engine: Engine, account: str, region: str, dialect: str, backlog: str, protocol: str
) -> tuple[Topic, Subscription]:
    """The topic and the subscription of a backlog, which the first call of an account's region makes.

    Args:
        draft: What is written with the call that enters the backlog.
        engine: What drains the backlog.
        account: The account that the calls are made for.
        region: Where they are made.
        dialect: The profile of the deliveries.
        backlog: The name of the backlog.
        protocol: The endpoint that makes the calls.
    """
    resources = engine.resources
    name = ResourceName(account, f"{region}:{dialect}", backlog)
    topic = await resources.topics.get_in(draft, name)
    if topic is None:
        topic = await resources.topics.create_in(draft, Topic(0, name, dialect))
    subscription = await resources.subscriptions.get_in(draft, name, backlog)
    if subscription is None:
        backlog_subscription = Subscription(backlog, name, 0, account, protocol, "")
        subscription = await resources.subscriptions.create_in(draft, backlog_subscription)
    return topic, subscription


def account_and_region_of(push_request: PushRequest) -> tuple[str, str]:
    """The account and the region that a call is made for."""
    return push_request.headers[_ACCOUNT], push_request.headers[_REGION]


class OwedCallProfile:
    """`DeliveryProfile` of calls that are owed."""

    def __init__(self, dialect: str) -> None:
        self.name: Final = dialect

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """The settings for deliveries of a subscription, here the same for all."""
        return SubscriptionContext(topic, subscription, self, plan=_PLAN, headers=whole_envelope)

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """Not asked: nothing here goes to a queue by itself."""
        raise NotImplementedError

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The request that carries an owed call, with the account and the region that it is made in."""
        (delivery,) = deliveries
        account, region = context.topic.name.account, context.topic.name.region.partition(":")[0]
        headers = {_ACCOUNT: account, _REGION: region}
        return PushRequest("", delivery.body.encode(), "application/json", headers, _TIMEOUT_MS)

    def follow_ups(self, _fact: Attempted) -> Sequence[FollowUp]:
        """No messages: whoever owes a call says elsewhere how it went."""
        return ()


def owed_profiles(dialect: str) -> Callable[[object], Mapping[str, DeliveryProfile]]:
    """The profile of a dialect of owed calls, as outlines of services have it."""
    return lambda _: {dialect: OwedCallProfile(dialect)}


async def make_call(
    call: Awaitable[object], service: str, text: Callable[[AwsError], str]
) -> tuple[str | None, Attempt]:
    """Make a call; returns the reason of a failure (None: there is none), and the attempt. `text` words a refusal."""
    try:
        await call
    except StoreUnavailable as error:
        return str(error), _failure(Reason.SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except KeyError:
        missing = f"This server does not offer {service}"
        return missing, _failure(Reason.MISSING, HTTPStatus.NOT_FOUND, missing)
    except AwsError as error:
        reason = Reason.CLIENT_ERROR if error.sender else Reason.SERVER_ERROR
        return text(error), _failure(reason, error.status, text(error))
    return None, Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "")


def _failure(reason: Reason, status: int, text: str) -> Attempt:
    is_temporary = reason is Reason.SERVER_ERROR
    return Attempt(
        AttemptResult.FAILED if is_temporary else AttemptResult.REFUSED, reason, status, text[:1024]
    )

"""Subscriptions and their attributes: subscribe, find, change, unsubscribe."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.confirmations import Confirmations
from redrive.aws.sns.documents import (
    destinations,
    limits,
    names,
    replays,
    subscription_attributes,
    subscription_state,
    topic_attributes,
)
from redrive.aws.sns.documents.errors import (
    PAGES,
    AttributeRefused,
    attribute_error,
    attributes_error,
    denied,
    invalid,
    missing,
    no_such,
)
from redrive.aws.sns.documents.topic_policy import check_owner, is_unsigned, topic_at
from redrive.aws.sns.notifications.notification import SUBSCRIBE, UNSUBSCRIBE, UnsubscribeTokens
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.operations import Operations
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound
from redrive.model.names import id_text
from redrive.model.topic import Subscription, Topic

logger = logging.getLogger(__name__)

_ELSEWHERE: Final = "elsewhere:"
_SUBSCRIBER_CHARS: Final = 32


class SubscriptionOperations:
    """Makes, finds, changes and removes subscriptions."""

    def __init__(
        self, engine: Engine, confirmations: Confirmations, tokens: UnsubscribeTokens, filters_max: int
    ) -> None:
        """Operations on subscriptions; a topic may have `filters_max` filters."""
        self._engine = engine
        self._confirmations = confirmations
        self._tokens = tokens
        self._filters_max = filters_max

    # ---- subscribe -----------------------------------------------------------------------------------------

    async def subscribe(self, call: Call, params: Structure) -> Structure:
        keys = {"sns:protocol": params["Protocol"], "sns:endpoint": params.get("Endpoint") or ""}
        topics = self._engine.resources.topics
        topic = await topic_at(call, topics, params["TopicArn"], "Subscribe", keys=keys)
        attributes: Mapping[str, str] = params.get("Attributes") or {}
        new_subscription = _new_subscription(
            call, topic, params, attributes, id_text(self._engine.runtime.message_id())
        )
        subscription = await self._engine.resources.write(
            lambda draft: self._subscribe_in(draft, call, topic, new_subscription, attributes)
        )
        _warn_unless_set_up(self._engine.operations, subscription)
        if not subscription.confirmed and not params.get("ReturnSubscriptionArn"):
            return {"SubscriptionArn": "pending confirmation"}
        return {"SubscriptionArn": names.subscription_arn(subscription)}

    async def _subscribe_in(
        self,
        draft: Draft,
        call: Call,
        topic: Topic,
        new_subscription: Subscription,
        attributes: Mapping[str, str],
    ) -> Subscription:
        """The subscriber's existing subscription, or else the new one; an endpoint that has not agreed is asked."""
        subscriptions = self._engine.resources.subscriptions
        subscription = await subscriptions.of_subscriber_in(
            draft, new_subscription.topic, new_subscription.subscriber or ""
        )
        if subscription is None:  # one of the time when ids were derived is not found by its subscriber
            subscription = await subscriptions.get_in(
                draft, new_subscription.topic, _derived_id(topic, new_subscription)
            )
        if subscription is not None and not subscription_state.is_visible(subscription, call.now):
            await subscriptions.delete_in(draft, subscription)
            subscription = None
        if subscription is None:
            await limits.check_subscriptions(subscriptions, topic, new_subscription, self._filters_max)
            subscription = await subscriptions.create_in(draft, new_subscription)
        elif subscription_attributes.differ(subscription, new_subscription, attributes):
            raise invalid("Attributes Reason: Subscription already exists with different attributes")
        if not subscription.confirmed:
            await self._confirmations.ask_in(draft, topic, subscription, SUBSCRIBE, call.now)
        operations = self._engine.operations
        if (
            replays.POLICY in subscription.attributes
            and await operations.replays.of_in(draft, subscription) is None
        ):
            await replays.follow_in(operations, draft, subscription)
        return subscription

    # ---- unsubscribe -----------------------------------------------------------------------------------------

    async def unsubscribe(self, call: Call, params: Structure) -> Structure:
        arn: str | None = params.get("SubscriptionArn")
        if arn is None:
            raise missing("SubscriptionArn")
        name = names.subscription_in(arn)
        # Whoever has no token is told the same of any ARN, whether there is such a subscription or not.
        if is_unsigned(call) and not self._tokens.proves(arn, params.get("Token") or ""):
            raise denied(call.principal.name, "Unsubscribe", arn)
        subscription = await self._engine.resources.subscriptions.get_stored(name.topic, name.id)
        if subscription is None or not subscription_state.is_visible(subscription, call.now):
            if not is_unsigned(call) and name.topic.account != call.account:
                raise denied(call.principal.name, "Unsubscribe", arn)
            return {}
        if not is_unsigned(call):
            check_owner(call, subscription, "Unsubscribe")
        if not subscription.confirmed:
            raise invalid(
                "SubscriptionArn Reason: Cannot unsubscribe a subscription that is pending confirmation"
            )
        await self._engine.resources.write(lambda draft: self._unsubscribe_in(draft, call, subscription))
        return {}

    async def _unsubscribe_in(self, draft: Draft, call: Call, subscription: Subscription) -> None:
        """End a subscription; after an unsigned request by a link, its endpoint is notified and can restore it."""
        topics, subscriptions = self._engine.resources.topics, self._engine.resources.subscriptions
        may_leave = destinations.PROTOCOLS[subscription.protocol].asks and not subscription_state.is_locked(
            subscription
        )
        if is_unsigned(call) and not may_leave:
            raise denied(call.principal.name, "Unsubscribe", names.subscription_arn(subscription))
        topic = await topics.get_in(draft, subscription.topic)
        if topic is None:
            return  # it went with all its subscriptions
        if is_unsigned(call):
            leaving_subscription = await subscriptions.update_in(
                draft, subscription, lambda current: subscription_state.begin_leaving(current, call.now)
            )
            await self._confirmations.ask_in(draft, topic, leaving_subscription, UNSUBSCRIBE, call.now)
        else:
            await subscriptions.delete_in(draft, subscription)
        await topics.update_in(draft, topic.name, _count_deletion)

    # ---- look and change ---------------------------------------------------------------------------------------

    async def list_subscriptions(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_ListSubscriptions.html; those to topics of others last."""
        operation, limit = "ListSubscriptions", PAGES.size + 1
        directory, after = self._engine.resources.subscriptions, PAGES.after(operation, params)
        subscriptions: list[Subscription] = []
        after_elsewhere = after.removeprefix(_ELSEWHERE)
        if not after.startswith(_ELSEWHERE):  # the page begins among those to the account's own topics
            subscriptions = await directory.of_account(call.account, call.region, after, limit)
            after_elsewhere = ""
        if len(subscriptions) < limit:
            subscriptions += await directory.elsewhere(
                call.account, call.region, after_elsewhere, limit - len(subscriptions)
            )
        page, token = PAGES.cut(
            operation, params, subscriptions, lambda subscription: _page_key(call, subscription)
        )
        return {"Subscriptions": _as_structures(call, page, call.account), **token}

    async def list_subscriptions_by_topic(self, call: Call, params: Structure) -> Structure:
        topic = await topic_at(
            call, self._engine.resources.topics, params["TopicArn"], "ListSubscriptionsByTopic"
        )
        operation = "ListSubscriptionsByTopic"
        after = PAGES.after(operation, params)
        subscriptions = await self._engine.resources.subscriptions.of(topic.name, after, PAGES.size + 1)
        page, token = PAGES.cut(operation, params, subscriptions, lambda subscription: subscription.key)
        return {"Subscriptions": _as_structures(call, page), **token}

    async def get_subscription_attributes(self, call: Call, params: Structure) -> Structure:
        topic, subscription = await self._read_subscription(call, params, "GetSubscriptionAttributes")
        status = await replays.status(self._engine.operations, subscription)
        return {"Attributes": subscription_attributes.attribute_texts(topic, subscription) | status}

    async def set_subscription_attributes(self, call: Call, params: Structure) -> Structure:
        topic, subscription = await self._read_subscription(call, params, "SetSubscriptionAttributes")
        name, value = params["AttributeName"], params.get("AttributeValue") or ""

        def with_attribute(current: Subscription) -> Subscription:
            return subscription_attributes.with_attribute(current, topic, name, value)

        if name == subscription_attributes.FILTER_POLICY and value and subscription.filter_text is None:
            await limits.check_filters(self._engine.resources.subscriptions, topic, self._filters_max)

        async def write(draft: Draft) -> None:
            subscriptions = self._engine.resources.subscriptions
            current = await subscriptions.update_in(draft, subscription, with_attribute)
            if name == replays.POLICY:
                await replays.follow_in(self._engine.operations, draft, current)

        try:
            await self._engine.resources.write(write)
        except AttributeRefused as refusal:
            raise attribute_error(refusal) from None
        except NotFound:
            raise no_such("Subscription") from None
        return {}

    async def _read_subscription(
        self, call: Call, params: Structure, action: str
    ) -> tuple[Topic, Subscription]:
        name = names.subscription_in(params["SubscriptionArn"])
        if name.topic.region != call.region:
            raise invalid("SubscriptionArn")
        topic = await self._engine.resources.topics.get(name.topic)
        subscription = await self._engine.resources.subscriptions.get(name.topic, name.id)
        if topic is None or subscription is None or not subscription_state.is_visible(subscription, call.now):
            raise no_such("Subscription")
        check_owner(call, subscription, action)
        return topic, subscription


def _warn_unless_set_up(operations: Operations, subscription: Subscription) -> None:
    """Warn of a subscription that this server is not set up to push to; SNS's answer has no field for it."""
    protocol = subscription.protocol
    if protocol == "sqs" or operations.conditions.is_set_up(protocol):
        return
    logger.warning(
        "subscription.not_set_up topic=%s subscription=%s: this server is not set up for %s; set %s",
        subscription.topic.key,
        subscription.id,
        protocol,
        destinations.PROTOCOLS[protocol].set_up_by or "it up",
    )


def _new_subscription(
    call: Call, topic: Topic, params: Structure, attributes: Mapping[str, str], subscription_id: str
) -> Subscription:
    """The subscription that Subscribe asks for, not stored yet."""
    protocol: str = params["Protocol"]
    endpoint: str = params.get("Endpoint") or ""
    destinations.check_endpoint(topic, protocol, endpoint)
    subscription = Subscription(
        id=subscription_id,
        topic=topic.name,
        queue_id=0,
        owner=call.account,
        protocol=protocol,
        endpoint=endpoint,
        confirmed=False,
        attributes=subscription_state.subscriber_attributes(call),
        subscriber=_subscriber(protocol, endpoint),
    )
    if destinations.agrees(protocol, endpoint, call.account):
        subscription = subscription_state.confirm(subscription, is_signed=True, is_locked=False)
    try:
        return subscription_attributes.with_attributes(subscription, topic, attributes)
    except AttributeRefused as refusal:
        raise attributes_error(refusal) from None


def _subscriber(protocol: str, endpoint: str) -> str:
    """The identity of a topic's subscriber: two calls that subscribe it at once make one subscription."""
    return hashlib.sha256(f"{protocol}\n{endpoint}".encode()).hexdigest()[:_SUBSCRIBER_CHARS]


def _derived_id(topic: Topic, subscription: Subscription) -> str:
    """The id that its subscription has if it is of the time when ids were derived from these."""
    identity = f"{topic.id}\n{subscription.protocol}\n{subscription.endpoint}"
    return id_text(hashlib.sha256(identity.encode()).digest()[:16])


def _page_key(call: Call, subscription: Subscription) -> str:
    """The key that pages of an account's subscriptions are ordered by: those to its own topics come first."""
    return (
        subscription.key if subscription.topic.account == call.account else f"{_ELSEWHERE}{subscription.key}"
    )


def _as_structures(call: Call, page: Sequence[Subscription], owner: str | None = None) -> Sequence[Structure]:
    """A page as lists show it; with an owner, only that account's subscriptions."""
    return [
        {
            "SubscriptionArn": _listed_arn(subscription, call.now),
            "Owner": subscription.owner,
            "Protocol": subscription.protocol,
            "Endpoint": subscription.endpoint_shown,
            "TopicArn": names.arn_of(subscription.topic),
        }
        for subscription in page
        if (
            subscription_state.is_visible(subscription, call.now)
            or subscription_state.is_leaving(subscription, call.now)
        )
        and owner in (None, subscription.owner)
    ]


def _listed_arn(subscription: Subscription, now: int) -> str:
    """The ARN, or the word that lists have in its place; clients such as Ansible's look for both words."""
    if subscription.confirmed:
        return names.subscription_arn(subscription)
    return "Deleted" if subscription_state.is_leaving(subscription, now) else "PendingConfirmation"


def _count_deletion(topic: Topic) -> Topic:
    before = int(topic.attributes.get(topic_attributes.DELETED, "0"))
    return replace(topic, attributes={**topic.attributes, topic_attributes.DELETED: str(before + 1)})

"""Confirmations: an endpoint is asked whether it agrees, and answers with the token it was sent.

A token is good for two days; a subscription that was not confirmed within three is forgotten, and so is one whose
endpoint was told of its end and did not object. Each new question clears away what is over of older ones, so
nothing has to come by and look.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import names, replays, subscription_state
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.sns.documents.topic_policy import is_unsigned
from redrive.aws.sns.notifications.notification import Confirmation
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents, Draft
from redrive.model.document import Document
from redrive.model.names import ResourceName, id_text
from redrive.model.queue import DAY_MS
from redrive.model.topic import Subscription, Topic

TOKEN_MS: Final = 2 * DAY_MS
TOKEN_CHARS: Final = 288
_BEGINNING: Final = "2336412f37"  # of every token that AWS's reference shows
_TIME_CHARS: Final = 12
_CLEARED_MAX: Final = 10  # questions cleared away for each one asked
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{TOKEN_CHARS}}}")


@dataclass(frozen=True, slots=True)
class ConfirmationRequest(Document):
    """A question to an endpoint: whether it agrees."""

    restored: ClassVar = {"topic": ResourceName._make}

    # What it answers with; questions are kept in the order of their tokens, which is that of their times.
    token: str
    topic: ResourceName  # Topic of the subscription in question
    subscription: str  # Its id
    asked_at: int  # ms


QUESTION: Final = DocumentKind.of("sns_confirmation", ConfirmationRequest)


async def latest_token(documents: Documents, subscription_arn: str) -> str | None:
    """The token that an endpoint was sent last, whether or not it arrived; None: nothing is asked of it."""
    tokens = [
        request.token
        for _, request in await documents.entries(QUESTION)
        if names.subscription_arn_in(request.topic, request.subscription) == subscription_arn
    ]
    return max(tokens, default=None)  # each begins with the time when it was made


class Confirmations:
    """Asks endpoints whether they agree, and carries out `ConfirmSubscription`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def ask_in(
        self, draft: Draft, topic: Topic, subscription: Subscription, kind: str, now: int
    ) -> None:
        """Send an endpoint a token, as a delivery of the subscription's own, when the draft is written.

        Args:
            draft: What makes or changes the subscription.
            topic: Whose subscription.
            subscription: Whose endpoint.
            kind: `SubscriptionConfirmation` or `UnsubscribeConfirmation`.
            now: ms.
        """
        await self._forget_old_in(draft, now)
        question = ConfirmationRequest(self._token(now), topic.name, subscription.id, now)
        draft.put(QUESTION, question.token, question)
        confirmation = Confirmation(
            kind=kind,
            id=id_text(self._engine.runtime.message_id()),
            topic=names.arn_of(topic.name),
            subscription=names.subscription_arn(subscription),
            token=question.token,
            sent_at=now,
            version=topic.attributes.get("SignatureVersion", "1"),
        )
        headers = confirmation.pack()
        self._engine.messages.publish_alone_in(draft, topic, subscription, body="", headers=headers)

    def _token(self, now: int) -> str:
        random_chars = TOKEN_CHARS - len(_BEGINNING) - _TIME_CHARS
        return (
            f"{_BEGINNING}{now:0{_TIME_CHARS}x}{self._engine.runtime.rng.randbytes(random_chars // 2).hex()}"
        )

    async def _forget_old_in(self, draft: Draft, now: int) -> None:
        """Forget the oldest questions that are over, each with its subscription if that was not confirmed."""
        subscriptions = self._engine.resources.subscriptions
        for token, question in await draft.find(QUESTION, "", _CLEARED_MAX):
            if now < question.asked_at + subscription_state.PENDING_MS:
                return
            subscription = await subscriptions.get_in(draft, question.topic, question.subscription)
            if subscription is not None and subscription_state.is_over(subscription, now):
                await subscriptions.delete_in(draft, subscription)
            draft.remove(QUESTION, token)

    async def confirm_subscription(self, call: Call, params: Structure) -> Structure:
        region = _topic_region(call, params["TopicArn"])
        subscription = await self._subscription(call, params["Token"], region)
        is_locked = (params.get("AuthenticateOnUnsubscribe") or "").lower() == "true"
        is_signed = not is_unsigned(call)

        async def write(draft: Draft) -> None:
            current = await self._engine.resources.subscriptions.update_in(
                draft,
                subscription,
                lambda stored: subscription_state.confirm(stored, is_signed=is_signed, is_locked=is_locked),
            )
            if replays.POLICY in current.attributes and not subscription.confirmed:
                await replays.follow_in(self._engine.operations, draft, current)

        await self._engine.resources.write(write)
        return {"SubscriptionArn": names.subscription_arn(subscription)}

    async def _subscription(self, call: Call, token: str, region: str) -> Subscription:
        """The subscription that a token confirms. Of the topic's ARN in the call only the region counts (recorded)."""
        if not _TOKEN.fullmatch(token):
            raise invalid("Token") if is_unsigned(call) else error("InvalidParameter", "Invalid token")
        question = await self._engine.resources.documents.get(QUESTION, token)
        if question is None or call.now >= question.asked_at + TOKEN_MS:
            raise invalid("Token")
        if question.topic.region != region:
            raise invalid("Topic")
        subscriptions = self._engine.resources.subscriptions
        subscription = await subscriptions.get_stored(question.topic, question.subscription)
        if subscription is None:
            raise invalid("Token")
        return subscription


def _topic_region(call: Call, arn: str) -> str:
    """The region of a topic's ARN, which signed callers have to call in; raises AwsError."""
    try:
        parsed = names.sns_arn(arn, "Topic")
    except AwsError:
        raise invalid("Topic") from None
    if not is_unsigned(call) and parsed.region != call.region:
        raise invalid("Topic")
    return parsed.region

"""Handshakes: an endpoint is asked whether it wants events, before it gets any.

Two questions, each of the schema that the endpoint is to get
(https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema and
…/end-point-validation-cloud-events-schema):

* A SubscriptionValidation event is posted. The endpoint answers 200 with the code that it was sent, or 200 alone, and
  somebody opens the event's `validationUrl` within ten minutes.
* For CloudEvents an OPTIONS request asks for leave (https://github.com/cloudevents/spec, http-webhook). The endpoint
  answers with WebHook-Allowed-Origin, or calls back within ten minutes.

An endpoint that does not answer in time is asked once more, five seconds later.

A webhook whose event subscription is deleted is posted a SubscriptionDeletion event.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import ClassVar, Final
from urllib.parse import parse_qs

import orjson

from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid import names, settings
from redrive.azure.recognise import VALIDATION
from redrive.azure.wire.answers import AzureError, invalid, json_answer, not_found
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock, DocumentKind, Endpoint, PushRequest
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt, Reason
from redrive.model.document import Document
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName, id_text
from redrive.model.topic import Subscription, without_secrets

logger = logging.getLogger(__name__)

ANSWER_MS: Final = 30_000
SECOND_TRY_MS: Final = 5_000
MANUAL_ANSWER_MS: Final = 10 * 60 * 1000
ORIGIN: Final = "eventgrid.azure.net"
_ALLOWED_ORIGIN: Final = "webhook-allowed-origin"
_WEB_HOOK: Final = "WebHook"
_HTTP: Final = frozenset({"http", "https"})  # and not a queue of this server
_JSON: Final = "application/json; charset=utf-8"
_QUERY_CHARS_MAX: Final = 1024  # the validation URL is open to everybody
_REMOVED_MAX: Final = 10  # expired questions removed with each new question


@dataclass(frozen=True, slots=True)
class HandshakeRequest(Document):
    """The validation question that an endpoint was asked."""

    restored: ClassVar = {"topic": ResourceName._make}

    # The id in the validation URL; questions are kept in the order of their ids, which is that of their
    # times.
    id: str
    topic: ResourceName  # The topic of the event subscription
    subscription: str  # The event subscription's id within the topic
    endpoint: str  # The endpoint asked; its agreement does not hold for another one
    ends_at: int  # End of the time to answer (ms)
    agreed: bool = False  # The validation URL was opened, perhaps before the event subscription was written


QUESTION: Final = DocumentKind.of("eventgrid_handshake", HandshakeRequest)


class Handshakes:
    """Asks endpoints, and serves the validation URLs for manual answers (`redrive.azure.gateway.Service`)."""

    def __init__(
        self, engine: Engine, endpoints: Mapping[str, Endpoint], tokens: WebhookTokens, clock: Clock
    ) -> None:
        self._engine = engine
        # The endpoints' clock, real also where deliveries live on a simulated one: endpoints get real time before the
        # second try.
        self._clock = clock
        self._endpoints = endpoints
        self._tokens = tokens  # Issues the bearer tokens of protected webhooks
        self._deletion_posts: set[asyncio.Task[None]] = set()  # The loop itself does not keep running tasks

    async def ask(self, subscription: Subscription, base_url: str, now: int) -> HandshakeRequest:
        """Ask an endpoint about an event subscription that is not written yet; its answer may be left for later.

        URLs for a manual answer begin with `base_url`.

        Raises:
            AzureError: The endpoint refuses.
        """
        question = self._question(subscription, now)
        await self._engine.resources.write(partial(self._keep_in, question, now))
        url = f"{base_url}{VALIDATION}{subscription.id}/validate?id={question.id}"
        delivery = settings.delivery_settings(subscription)
        cloud_events = delivery.schema == settings.CLOUD_EVENT_SCHEMA
        data = {"validationCode": question.id, "validationUrl": url}
        push_request = (
            _permission_request(subscription, url)
            if cloud_events
            else self._event(subscription, "SubscriptionValidation", "SubscriptionValidationEvent", data, now)
        )
        attempt = await self._push(subscription, push_request)
        if attempt.reason is Reason.TIMED_OUT:
            await self._clock.sleep_until(self._clock.now() + SECOND_TRY_MS)
            attempt = await self._push(subscription, push_request)
        try:
            has_agreed = _allows_origin(attempt) if cloud_events else _has_code(attempt, question.id)
        except ValueError as refusal:
            logger.warning(
                "handshake.failed subscription=%s reason=%s status=%d: %s",
                delivery.id,
                attempt.reason,
                attempt.status,
                _log_detail(attempt),
            )
            await self._engine.resources.documents.remove(QUESTION, question.id)
            raise _refusal(subscription.endpoint, str(refusal)) from None
        return replace(question, agreed=has_agreed)

    async def agreed_in(self, draft: Draft, question: HandshakeRequest) -> bool:
        """True if the endpoint validated, by its answer, which removes the request, or manually meanwhile."""
        current = await draft.get(QUESTION, question.id)
        if question.agreed:
            draft.remove(QUESTION, question.id)
            return True
        return current is not None and current.agreed

    def post_deletion(self, subscription: Subscription, now: int) -> None:
        """Post a SubscriptionDeletion event to a webhook, once and without waiting for it.

        Webhooks of CloudEvents get none: their specification has no such event.
        """
        delivery = settings.delivery_settings(subscription)
        is_webhook = delivery.destination_type == _WEB_HOOK and subscription.protocol in _HTTP
        if not is_webhook or delivery.schema == settings.CLOUD_EVENT_SCHEMA:
            return
        task = asyncio.get_running_loop().create_task(self._post_deletion(subscription, now))
        self._deletion_posts.add(task)
        task.add_done_callback(self._deletion_posts.discard)

    async def _post_deletion(self, subscription: Subscription, now: int) -> None:
        """Push the event once; its result is only logged."""
        delivery = settings.delivery_settings(subscription)
        data = {"eventSubscriptionId": delivery.id}
        push_request = self._event(
            subscription, "SubscriptionDeletion", "SubscriptionDeletedEvent", data, now
        )
        attempt = await self._push(subscription, push_request)
        logger.debug("handshake.farewell subscription=%s: %s", delivery.id, _log_detail(attempt))

    async def _push(self, subscription: Subscription, push_request: PushRequest) -> Attempt:
        audience = settings.delivery_settings(subscription).audience
        headers = {**push_request.headers, **self._tokens.authorization(audience)}
        return await self._endpoints[subscription.protocol].push(replace(push_request, headers=headers))

    def handles(self, path: str, host: str) -> bool:  # noqa: ARG002 - as Service
        """See `Service.handles`."""
        return path.startswith(VALIDATION)

    async def answer(self, request: Request) -> Response:
        """Record the manual answer of a client that opened the validation URL."""
        now = self._engine.clock.now()
        subscription_id = _id_in(request.query)
        question: HandshakeRequest | None = None
        if names.is_name(subscription_id):
            question = await self._engine.resources.documents.get(QUESTION, subscription_id)
        if question is None or now >= question.ends_at or request.method not in ("GET", "POST"):
            raise not_found("This URL agrees to nothing, or does not any more.", "NotFound")
        await self._engine.resources.write(partial(self._agree_in, question))
        return json_answer("Webhook successfully validated as a subscription endpoint")

    async def _agree_in(self, question: HandshakeRequest, draft: Draft) -> None:
        """Confirm the event subscription, now or, if it is not there yet, when it is written."""
        current = await draft.get(QUESTION, question.id)
        if current is not None:
            draft.change(QUESTION, question.id, current, lambda request: replace(request, agreed=True))
        subscriptions = self._engine.resources.subscriptions
        subscription = await subscriptions.get_in(draft, question.topic, question.subscription)
        if subscription is not None:
            await subscriptions.update_in(draft, subscription, lambda current: _confirm(current, question))

    def _question(self, subscription: Subscription, now: int) -> HandshakeRequest:
        """A question whose id begins with the time, so that the oldest are found first, and cannot be guessed."""
        random_part = id_text(self._engine.runtime.message_id())
        ends_at = now + MANUAL_ANSWER_MS
        return HandshakeRequest(
            f"{now:012x}-{random_part}", subscription.topic, subscription.id, subscription.endpoint, ends_at
        )

    async def _keep_in(self, question: HandshakeRequest, now: int, draft: Draft) -> None:
        """Keep a question, and remove the oldest ones whose time is over."""
        for key, old in await draft.find(QUESTION, "", _REMOVED_MAX):
            if now < old.ends_at:
                break
            if not old.agreed:
                draft.afterwards(partial(_log_unanswered, old))
            draft.remove(QUESTION, key)
        draft.put(QUESTION, question.id, question)

    def _event(
        self, subscription: Subscription, kind: str, event_type: str, data: Mapping[str, str], now: int
    ) -> PushRequest:
        """The request with an event of the handshake's own, to be posted."""
        delivery = settings.delivery_settings(subscription)
        event = {
            "id": id_text(self._engine.runtime.message_id()),
            "topic": delivery.id.partition("/providers/Microsoft.EventGrid/eventSubscriptions")[0],
            "subject": "",
            "eventType": f"Microsoft.EventGrid.{event_type}",
            "eventTime": datetime.fromtimestamp(now / 1000, UTC).isoformat().replace("+00:00", "Z"),
            "data": data,
            "metadataVersion": "1",
            "dataVersion": "2",
        }
        headers = {
            **_own_headers(delivery),
            "aeg-event-type": kind,
            "aeg-subscription-name": delivery.name.upper(),
            "aeg-delivery-count": "0",
            "aeg-data-version": "2",
            "aeg-metadata-version": "1",
        }
        return PushRequest(subscription.endpoint, orjson.dumps([event]), _JSON, headers, ANSWER_MS)


def _id_in(query: str) -> str:
    """The id in the query of a validation URL, or an empty text."""
    return parse_qs(query).get("id", [""])[-1] if len(query) <= _QUERY_CHARS_MAX else ""


def _own_headers(delivery: settings.DeliverySettings) -> dict[str, str]:
    """The headers that the event subscription has for all its deliveries, whatever the event."""
    return {each.name: each.value for each in delivery.attributes if each.value is not None}


def _permission_request(subscription: Subscription, url: str) -> PushRequest:
    """The OPTIONS request by which a webhook of CloudEvents is asked for permission."""
    delivery = settings.delivery_settings(subscription)
    headers = {
        **_own_headers(delivery),
        "WebHook-Request-Origin": ORIGIN,
        "WebHook-Request-Callback": url,
        "WebHook-Request-Rate": "*",
    }
    origin_header = (_ALLOWED_ORIGIN,)
    return PushRequest(
        subscription.endpoint, b"", _JSON, headers, ANSWER_MS, method="OPTIONS", headers_kept=origin_header
    )


def _has_code(attempt: Attempt, code: str) -> bool:
    """True if the answer to an event has its code; False: a manual answer may follow.

    Raises:
        ValueError: The answer is a refusal; its reason.
    """
    if attempt.status != HTTPStatus.OK:
        raise ValueError(f"Http POST request failed with {_caller_detail(attempt)}")
    try:
        body = orjson.loads(attempt.response)
    except ValueError:
        return False
    answered_code = body.get("validationResponse") if isinstance(body, dict) else None
    if answered_code is not None and answered_code != code:
        raise ValueError("Http POST request was answered with another code than it had")
    return answered_code is not None


def _allows_origin(attempt: Attempt) -> bool:
    """True if the answer to OPTIONS allows this server's origin; False: the endpoint may call back.

    Raises:
        ValueError: The answer is a refusal; its reason.
    """
    if not HTTPStatus.OK <= attempt.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ValueError(f"Http OPTIONS request failed with {_caller_detail(attempt)}")
    allowed_origins = dict(attempt.identifiers).get(_ALLOWED_ORIGIN)
    origins = {each.strip() for each in (allowed_origins or "").lower().split(",")}
    if allowed_origins is not None and origins.isdisjoint(("*", ORIGIN)):
        raise ValueError(f"Http OPTIONS request was answered with {_ALLOWED_ORIGIN}: {allowed_origins}")
    return allowed_origins is not None


def _caller_detail(attempt: Attempt) -> str:
    """The text for the caller: the same for every unreachable endpoint, so that it cannot be used to scan ports."""
    return (
        f"response code {attempt.status}"
        if attempt.status
        else "no answer: the endpoint could not be reached"
    )


def _log_detail(attempt: Attempt) -> str:
    """The text for the log, with the reason of the failure."""
    return f"response code {attempt.status}" if attempt.status else f"{attempt.reason}: {attempt.response}"


def _confirm(current: Subscription, question: HandshakeRequest) -> Subscription:
    """The subscription confirmed, unless it has another endpoint by now."""
    if current.endpoint != question.endpoint:
        return current
    return replace(current, confirmed=True, attributes={**current.attributes, settings.STATE: "Succeeded"})


def _log_unanswered(question: HandshakeRequest) -> None:
    """Log that nobody opened the link of a question."""
    logger.warning(
        "handshake.unanswered topic=%s subscription=%s: its link was not opened in time",
        question.topic.key,
        question.subscription,
    )


def _refusal(endpoint: str, why: str) -> AzureError:
    """The refusal of an event subscription whose webhook failed the handshake, in Azure's words."""
    endpoint_text = without_secrets(endpoint)
    return invalid(
        f"Webhook validation handshake failed for {endpoint_text}. {why}. "
        f"The attempt to validate the provided endpoint {endpoint_text} failed. "
        "For more details, visit https://aka.ms/esvalidation",
        "Url validation",
    )

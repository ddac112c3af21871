"""Handshakes: an endpoint is asked whether it wants events, before it gets any.

Two questions, each of the schema that the endpoint is to get
(https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema and
…/end-point-validation-cloud-events-schema):

* A SubscriptionValidation event is posted. The endpoint answers 200 with the code that it was sent, or 200 alone, and
  somebody opens the event's `validationUrl` within ten minutes.
* For CloudEvents an OPTIONS request asks for leave (https://github.com/cloudevents/spec, http-webhook). The endpoint
  answers with WebHook-Allowed-Origin, or calls back within ten minutes.

Who does not answer in time is asked once more, five seconds later.

And a farewell: a webhook whose event subscription is deleted is posted a SubscriptionDeletion event.
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

from redrive.engine.engine import Engine
from redrive.engine.ports import Clock, DocumentKind, Endpoint, PushRequest
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt, Reason
from redrive.model.document import Document
from redrive.model.ids import id_text
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, without_secrets
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.webhook_tokens import WebhookTokens
from redrive.protocols.azure.wire.answers import json_answer
from redrive.protocols.azure.wire.errors import AzureError, invalid, not_found
from redrive.protocols.http import Request, Response

logger = logging.getLogger(__name__)

ANSWER_MS: Final = 30_000
AGAIN_MS: Final = 5_000
ACTION_MS: Final = 10 * 60 * 1000
ORIGIN: Final = "eventgrid.azure.net"
PATH: Final = "/eventsubscriptions/"  # of the URLs that agree
_ALLOWED_ORIGIN: Final = "webhook-allowed-origin"
_WEB_HOOK: Final = "WebHook"
_HTTP: Final = frozenset({"http", "https"})  # and not a queue of this server
_JSON: Final = "application/json; charset=utf-8"
_QUERY_CHARS_MAX: Final = 1024  # of what anybody may send
_CLEARED_MAX: Final = 10  # questions cleared away for each one asked


@dataclass(frozen=True, slots=True)
class Question(Document):
    """The validation question that an endpoint was asked.

    Attributes:
        id: What the URL that agrees says; questions are kept in the order of their ids, which is that of their times.
        topic: Of the event subscription in question.
        subscription: Its id within the topic.
        endpoint: Who is asked: a later one has not agreed.
        ends_at: Until when it may be answered (ms).
        agreed: Somebody opened the URL, perhaps before the event subscription was written.
    """

    restored: ClassVar = {"topic": ResourceName._make}

    id: str
    topic: ResourceName
    subscription: str
    endpoint: str
    ends_at: int
    agreed: bool = False


QUESTION: Final[DocumentKind[Question]] = DocumentKind(
    "eventgrid_handshake", Question.to_document, Question.from_document
)


class Handshakes:
    """Asks endpoints, and takes what is answered by hand (`redrive.protocols.azure.gateway.Service`)."""

    def __init__(
        self, engine: Engine, endpoints: Mapping[str, Endpoint], tokens: WebhookTokens, clock: Clock
    ) -> None:
        """Ask through these endpoints.

        Args:
            engine: Where event subscriptions are.
            endpoints: By protocol.
            tokens: Where a webhook wants one.
            clock: Endpoints' own: a question is asked anew by it, also where deliveries live on a simulated one.
        """
        self._engine = engine
        self._clock = clock
        self._endpoints = endpoints
        self._tokens = tokens
        self._farewells: set[asyncio.Task[None]] = set()

    async def ask(self, asked: Subscription, base_url: str, now: int) -> Question:
        """Ask an endpoint; the question, which it agreed to, or which may be answered by hand.

        Args:
            asked: The event subscription, not written yet.
            base_url: What the URL that agrees begins with.
            now: ms.

        Raises:
            AzureError: It does not agree.
        """
        await self._clear(now)
        question = self._question(asked, now)
        await self._engine.resources.documents.create(QUESTION, question.id, question)
        url = f"{base_url}{PATH}{asked.id}/validate?id={question.id}"
        delivery = settings.delivery_settings(asked)
        cloud_events = delivery.schema == settings.CLOUD_EVENT_SCHEMA
        data = {"validationCode": question.id, "validationUrl": url}
        push_request = (
            _leave(asked, url)
            if cloud_events
            else self._event(asked, "SubscriptionValidation", "SubscriptionValidationEvent", data, now)
        )
        attempt = await self._push(asked, push_request)
        if attempt.reason is Reason.TIMED_OUT:
            await self._clock.sleep_until(self._clock.now() + AGAIN_MS)
            attempt = await self._push(asked, push_request)
        try:
            agreed = _gives_leave(attempt) if cloud_events else _agrees(attempt, question.id)
        except ValueError as refusal:
            logger.warning(
                "handshake.failed subscription=%s reason=%s status=%d: %s",
                delivery.id,
                attempt.reason,
                attempt.status,
                _detail(attempt),
            )
            await self._engine.resources.documents.remove(QUESTION, question.id)
            raise _refused(asked.endpoint, str(refusal)) from None
        return replace(question, agreed=agreed)

    async def agreed_in(self, draft: Draft, question: Question) -> bool:
        """True if the endpoint agreed, by its answer, which leaves no question, or by hand meanwhile."""
        stored = await draft.get(QUESTION, question.id)
        if question.agreed:
            draft.remove(QUESTION, question.id)
            return True
        return stored is not None and stored.agreed

    def farewell(self, gone: Subscription, now: int) -> None:
        """Tell a webhook, once and without waiting for it, that its event subscription is no more.

        Those of CloudEvents are not told: their specification has no such thing.
        """
        delivery = settings.delivery_settings(gone)
        is_webhook = delivery.destination_type == _WEB_HOOK and gone.protocol in _HTTP
        if not is_webhook or delivery.schema == settings.CLOUD_EVENT_SCHEMA:
            return
        task = asyncio.get_running_loop().create_task(self._take_leave(gone, now))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _take_leave(self, gone: Subscription, now: int) -> None:
        delivery = settings.delivery_settings(gone)
        data = {"eventSubscriptionId": delivery.id}
        push_request = self._event(gone, "SubscriptionDeletion", "SubscriptionDeletedEvent", data, now)
        attempt = await self._push(gone, push_request)
        logger.debug("handshake.farewell subscription=%s: %s", delivery.id, _detail(attempt))

    async def _push(self, subscription: Subscription, push_request: PushRequest) -> Attempt:
        audience = settings.delivery_settings(subscription).audience
        headers = {**push_request.headers, **await self._tokens.authorization(audience)}
        return await self._endpoints[subscription.protocol].push(replace(push_request, headers=headers))

    def handles(self, path: str, host: str) -> bool:  # noqa: ARG002 - as Service
        """See `Service.handles`."""
        return path.startswith(PATH)

    async def answer(self, request: Request) -> Response:
        """Take an answer by hand: somebody opened the URL."""
        now = self._engine.clock.now()
        asked = _id_in(request.query)
        question: Question | None = None
        if names.is_name(asked):
            question = await self._engine.resources.documents.get(QUESTION, asked)
        if question is None or now >= question.ends_at or request.method not in ("GET", "POST"):
            raise not_found("This URL agrees to nothing, or does not any more.", "NotFound")
        await self._engine.resources.write(partial(self._agree_in, question))
        return json_answer("Webhook successfully validated as a subscription endpoint")

    async def _agree_in(self, question: Question, draft: Draft) -> None:
        """Let the event subscription have events, now or, if it is not there yet, when it is written."""
        stored = await draft.get(QUESTION, question.id)
        if stored is not None:
            draft.change(QUESTION, question.id, stored, lambda asked: replace(asked, agreed=True))
        subscriptions = self._engine.resources.subscriptions
        waiting = await subscriptions.get_in(draft, question.topic, question.subscription)
        if waiting is not None:
            await subscriptions.update_in(draft, waiting, lambda current: _confirmed(current, question))

    def _question(self, asked: Subscription, now: int) -> Question:
        random_part = id_text(self._engine.runtime.message_id())
        ends_at = now + ACTION_MS
        return Question(f"{now:012x}-{random_part}", asked.topic, asked.id, asked.endpoint, ends_at)

    async def _clear(self, now: int) -> None:
        """Forget the oldest questions as far as nobody can answer them."""
        for question in await self._engine.resources.documents.find(QUESTION, "", limit=_CLEARED_MAX):
            if now < question.ends_at:
                return
            if not question.agreed:
                logger.warning(
                    "handshake.unanswered topic=%s subscription=%s: nobody opened its link in time",
                    question.topic.key,
                    question.subscription,
                )
            await self._engine.resources.documents.remove(QUESTION, question.id)

    def _event(
        self, asked: Subscription, kind: str, event_type: str, data: Mapping[str, str], now: int
    ) -> PushRequest:
        delivery = settings.delivery_settings(asked)
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
            **{
                attribute.name: attribute.value
                for attribute in delivery.attributes
                if attribute.value is not None
            },
            "aeg-event-type": kind,
            "aeg-subscription-name": delivery.name.upper(),
            "aeg-delivery-count": "0",
            "aeg-data-version": "2",
            "aeg-metadata-version": "1",
        }
        return PushRequest(asked.endpoint, orjson.dumps([event]), _JSON, headers, ANSWER_MS)


def _id_in(query: str) -> str:
    """The id in the query of a URL that agrees, or nothing."""
    return parse_qs(query).get("id", [""])[-1] if len(query) <= _QUERY_CHARS_MAX else ""


def _leave(asked: Subscription, url: str) -> PushRequest:
    delivery = settings.delivery_settings(asked)
    headers = {
        **{
            attribute.name: attribute.value
            for attribute in delivery.attributes
            if attribute.value is not None
        },
        "WebHook-Request-Origin": ORIGIN,
        "WebHook-Request-Callback": url,
        "WebHook-Request-Rate": "*",
    }
    kept = (_ALLOWED_ORIGIN,)
    return PushRequest(asked.endpoint, b"", _JSON, headers, ANSWER_MS, method="OPTIONS", headers_kept=kept)


def _agrees(attempt: Attempt, code: str) -> bool:
    """True if the answer to an event has its code; False: it may come by hand.

    Raises:
        ValueError: The answer agrees to nothing; why.
    """
    if attempt.status != HTTPStatus.OK:
        raise ValueError(f"Http POST request failed with {_told(attempt)}")
    try:
        said = orjson.loads(attempt.response)
    except ValueError:
        return False
    answered = said.get("validationResponse") if isinstance(said, dict) else None
    if answered is not None and answered != code:
        raise ValueError("Http POST request was answered with another code than it had")
    return answered is not None


def _gives_leave(attempt: Attempt) -> bool:
    """True if the answer to OPTIONS allows our origin; False: it may call back.

    Raises:
        ValueError: It does not allow it; why.
    """
    if not HTTPStatus.OK <= attempt.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ValueError(f"Http OPTIONS request failed with {_told(attempt)}")
    allowed = dict(attempt.identifiers).get(_ALLOWED_ORIGIN)
    if allowed is not None and not {each.strip() for each in allowed.lower().split(",")} & {"*", ORIGIN}:
        raise ValueError(f"Http OPTIONS request was answered with {_ALLOWED_ORIGIN}: {allowed}")
    return allowed is not None


def _told(attempt: Attempt) -> str:
    """The text for the caller: the same wherever nothing answered, so that nobody can scan ports through the server."""
    return (
        f"response code {attempt.status}"
        if attempt.status
        else "no answer: the endpoint could not be reached"
    )


def _detail(attempt: Attempt) -> str:
    """The text for the log."""
    return f"response code {attempt.status}" if attempt.status else f"{attempt.reason}: {attempt.response}"


def _confirmed(current: Subscription, question: Question) -> Subscription:
    """Succeeded, unless the event subscription goes elsewhere by now."""
    if current.endpoint != question.endpoint:
        return current
    return replace(current, confirmed=True, attributes={**current.attributes, settings.STATE: "Succeeded"})


def _refused(endpoint: str, why: str) -> AzureError:
    place = without_secrets(endpoint)
    return invalid(
        f"Webhook validation handshake failed for {place}. {why}. "
        f"The attempt to validate the provided endpoint {place} failed. "
        "For more details, visit https://aka.ms/esvalidation",
        "Url validation",
    )

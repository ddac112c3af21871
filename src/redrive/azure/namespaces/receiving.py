"""Receive: events of a subscription with the locks they are held under."""

from typing import Any, Final

import orjson

from redrive.azure.namespaces.call import PullCall
from redrive.azure.namespaces.lock_tokens import LockTokens
from redrive.azure.wire.answers import json_answer
from redrive.engine.messages import Cancellation, Messages
from redrive.model.delivery import Delivery
from redrive.model.http import Response

EVENTS_MAX: Final = 100
WAIT_SECONDS_MIN: Final = 10
WAIT_SECONDS_MAX: Final = 120
WAIT_SECONDS_DEFAULT: Final = 60


class NamespaceReceiving:
    """Receives events."""

    def __init__(self, messages: Messages, tokens: LockTokens) -> None:
        self._messages = messages
        self._tokens = tokens

    async def receive(self, call: PullCall) -> Response:
        """Answer as soon as there is an event, or with none when the wait is over.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/receive-cloud-events.
        """
        limit = call.number("maxEvents", 1, EVENTS_MAX, 1)
        wait = call.number("maxWaitTime", WAIT_SECONDS_MIN, WAIT_SECONDS_MAX, WAIT_SECONDS_DEFAULT)
        cancellation = Cancellation()
        call.request.on_gone = cancellation.happen
        deliveries = await self._messages.receive(
            call.queue, limit, wait_ms=wait * 1000, cancellation=cancellation
        )
        if deliveries:
            call.count("SuccessfulReceivedEvents", len(deliveries))
        return json_answer({"value": [self._received_event(delivery) for delivery in deliveries]})

    def _received_event(self, delivery: Delivery) -> dict[str, Any]:
        return {
            "brokerProperties": {
                "lockToken": self._tokens.write(delivery),
                "deliveryCount": delivery.attempts,
            },
            "event": orjson.Fragment(delivery.body),
        }

"""Acknowledge, release, reject, renew: the operations on events in flight, and the calls that they get.

Each call takes several lock tokens, and lists those that succeeded and those that failed. The call as a whole succeeds
also where every token failed.
"""

import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import orjson

from redrive.access.secret import InstallationSecret, PurposeSealer
from redrive.azure.wire.answers import AzureError, invalid, json_answer
from redrive.azure.wire.routes import whole_number
from redrive.engine.messages import Cancellation, Messages
from redrive.engine.ports import AttemptNote, Settled
from redrive.model.attempt import Reason
from redrive.model.delivery import Delivery
from redrive.model.http import Request, Response
from redrive.model.queue import Queue
from redrive.model.topic import Topic


@dataclass(frozen=True, slots=True)
class NamespaceCall:
    """A call to a topic."""

    request: Request  # The HTTP request, unchanged
    topic: Topic  # The topic of the path
    query: Mapping[str, str]  # The query's parameters, by name in lower case
    now: int  # Time of the call (ms)
    # Adds to a metric of the topic, or of the event subscription, by the dimensions given.
    count: "MetricAdder"

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a parameter of the query that is a whole number.

        Raises:
            AzureError: The parameter is not a whole number, or out of its range.
        """
        text = self.query.get(name.lower())
        if text is None:
            return default
        number = whole_number(text, least, most)
        if number is None:
            raise refused(f"The query parameter '{name}' must be a number between {least} and {most}.")
        return number


@dataclass(frozen=True, slots=True)
class PullCall(NamespaceCall):
    """A call to an event subscription in queue mode."""

    queue: Queue  # The queue that holds the subscription's events


class MetricAdder(Protocol):
    """Adds to a metric."""

    def __call__(self, name: str, value: float, dimensions: tuple[tuple[str, str], ...] = ()) -> None:
        """Add a value."""
        ...


def refused(message: str) -> AzureError:
    """The error 400 of a malformed call."""
    return invalid(message, "BadRequest")


# Lock tokens: a claim as a text for the receiver; sealed, as SQS's receipt handles are.

_LAYOUT: Final = struct.Struct(">QQQQI")


class LockToken(NamedTuple):
    """The fields of a lock token."""

    text: str  # The token as the receiver has it
    seq: int  # The delivery's sequence number
    token: int  # The claim token
    first_received_at: int  # Time of the first receipt (ms): a lock can be renewed for an hour from then
    deliveries: int  # Number of receipts, this one included


class LockTokens:
    """Writes and reads lock tokens."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._sealer = PurposeSealer(secret, "lock tokens")

    def write(self, delivery: Delivery) -> str:
        """The token of a delivery just claimed."""
        return self._sealer.seal(
            _LAYOUT.pack(
                delivery.queue_id,
                delivery.seq,
                delivery.token or 0,
                delivery.first_claimed_at or 0,
                delivery.attempts,
            )
        )

    def read(self, text: str, queue: Queue) -> LockToken | None:
        """Return the claim in a token; None: not a token of this queue."""
        content = self._sealer.unseal(text)
        if content is None:
            return None
        queue_id, seq, token, first_received_at, deliveries = _LAYOUT.unpack(content)
        if queue_id != queue.id:
            return None
        return LockToken(text, seq, token, first_received_at, deliveries)


RELEASE_DELAYS_SECONDS: Final = (0, 10, 60, 600, 3600)
RENEWABLE_MS: Final = 60 * 60 * 1000  # after the first receipt; the last renewal still gives a whole lock

_BAD: Final = {"code": "BadToken", "message": "The lock token is not one of this event subscription."}
_LOST: Final = {"code": "TokenLost", "message": "Token has expired."}
_TOO_OLD: Final = {
    "code": "BadToken",
    "message": "The lock cannot be renewed any more: the event was first received more than an hour ago.",
}

Settle = Callable[[Queue, Sequence[LockToken]], Awaitable[Sequence[Settled]]]


class NamespaceSettling:
    """Settles events and renews their locks."""

    def __init__(self, messages: Messages, tokens: LockTokens) -> None:
        self._messages = messages
        self._tokens = tokens

    async def acknowledge(self, call: PullCall) -> Response:
        """Delete events that were processed.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/acknowledge-cloud-events.
        """

        async def settle(queue: Queue, locks: Sequence[LockToken]) -> Sequence[Settled]:
            return await self._messages.delete(
                queue, [(each.seq, each.token) for each in locks], strict_lease=True
            )

        return await self._settle_each(call, settle, "AcknowledgedEvents")

    async def release(self, call: PullCall) -> Response:
        """Offer events again, at once or after a delay.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/release-cloud-events.
        """
        delay = call.query.get("releasedelayinseconds", "0")
        if delay not in map(str, RELEASE_DELAYS_SECONDS):
            allowed = ", ".join(map(str, RELEASE_DELAYS_SECONDS))
            raise refused(f"The query parameter 'releaseDelayInSeconds' must be one of {allowed}.")

        async def settle(queue: Queue, locks: Sequence[LockToken]) -> Sequence[Settled]:
            claims = [(each.seq, each.token) for each in locks]
            return await self._messages.release(queue, claims, int(delay) * 1000, strict_lease=True)

        return await self._settle_each(call, settle, "ReleasedEvents")

    async def reject(self, call: PullCall) -> Response:
        """Dead-letter events that will never be processed; without a dead-letter destination they are dropped.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/reject-cloud-events.
        """

        async def settle(queue: Queue, locks: Sequence[LockToken]) -> Sequence[Settled]:
            claims = [(each.seq, each.token, _rejection_note(each, call.now)) for each in locks]
            return await self._messages.reject(queue, claims, strict_lease=True)

        return await self._settle_each(call, settle)

    async def renew(self, call: PullCall) -> Response:
        """Renew locks for the whole lock duration.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/renew-cloud-event-locks.
        """

        async def settle(queue: Queue, locks: Sequence[LockToken]) -> Sequence[Settled]:
            claims = [(each.seq, each.token, queue.lease_ms) for each in locks]
            return await self._messages.extend(queue, claims, strict_lease=True)

        return await self._settle_each(call, settle, first_received_after=call.now - RENEWABLE_MS)

    async def _settle_each(
        self, call: PullCall, settle: Settle, metric_suffix: str = "", *, first_received_after: int = -1
    ) -> Response:
        """Settle the valid tokens of a call, and answer with the tokens that succeeded and failed.

        Names of metrics end in `metric_suffix`; empty: there are none. Tokens of events that were first received at
        `first_received_after` (ms) or before fail.
        """
        failures: list[dict[str, Any]] = []
        locks: list[LockToken] = []
        for text in _tokens(call):
            lock = self._tokens.read(text, call.queue)
            if lock is None:
                failures.append({"lockToken": text, "error": _BAD})
            elif lock.first_received_at <= first_received_after:
                failures.append({"lockToken": text, "error": _TOO_OLD})
            else:
                locks.append(lock)
        succeeded = []
        for lock, outcome in zip(locks, await settle(call.queue, locks), strict=True):
            if outcome.done:
                succeeded.append(lock.text)
            else:
                failures.append({"lockToken": lock.text, "error": _LOST})
        if metric_suffix:
            _count(call, metric_suffix, succeeded, failures)
        return json_answer({"failedLockTokens": failures, "succeededLockTokens": succeeded})


def _count(
    call: PullCall, metric_suffix: str, succeeded: Sequence[str], failures: Sequence[Mapping[str, Any]]
) -> None:
    if succeeded:
        call.count(f"Successful{metric_suffix}", len(succeeded))
    for code, number in Counter(each["error"]["code"] for each in failures).items():
        call.count(f"Failed{metric_suffix}", number, (("Error", code), ("ErrorType", "ClientError")))


def _tokens(call: PullCall) -> list[str]:
    """The lock tokens in a call's body; raises AzureError if there is none."""
    try:
        document = orjson.loads(call.request.body)
    except ValueError:
        document = None
    tokens = document.get("lockTokens") if isinstance(document, dict) else None
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise refused(
            "The body must be a JSON object whose 'lockTokens' are a list with at least one string."
        )
    return tokens


def _rejection_note(lock: LockToken, now: int) -> AttemptNote:
    return AttemptNote(lock.deliveries, now, 0, Reason.REJECTED, 0, "")


# Receive: events of a subscription with the locks they are held under.

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
        """An event as a receive shows it, with the lock token of its claim."""
        return {
            "brokerProperties": {
                "lockToken": self._tokens.write(delivery),
                "deliveryCount": delivery.attempts,
            },
            "event": orjson.Fragment(delivery.body),
        }

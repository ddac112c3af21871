"""Attempts as spans, in one trace for each message.

The trace of a message has the message's own id: whoever knows it, from the publisher's answer or from a dead letter,
finds all attempts at all its deliveries in a tracing system by looking that trace up. Where the publisher chose an id
that is no UUID, as Event Grid's do, the trace's is UUID version 5 of it.
"""

from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from typing_extensions import override

from redrive.engine.ports.facts import Accepted, Attempted, Listener, Undelivered
from redrive.model.attempt import Attempt
from redrive.model.delivery import Outcome

_NS_OF_MS: Final = 1_000_000
_NO_PARENT: Final = Context()


class TraceIds(RandomIdGenerator):
    """Ids of traces and spans: random ones, but for the trace that is chosen.

    Attributes:
        chosen: The id of the trace that begins next; None: a random one.
    """

    def __init__(self) -> None:
        self.chosen: int | None = None

    @override
    def generate_trace_id(self) -> int:
        """The chosen id, once."""
        chosen, self.chosen = self.chosen, None
        return super().generate_trace_id() if chosen is None else chosen


class AttemptSpans(Listener):
    """Writes a span for each attempt, and one for each delivery that was given up."""

    def __init__(self, tracer: Tracer, ids: TraceIds) -> None:
        self._tracer = tracer
        self._ids = ids

    @override
    def attempted(self, fact: Attempted) -> None:
        self._write(f"deliver {fact.topic.name.name}", fact, fact.attempt)

    @override
    def accepted(self, fact: Accepted) -> None:
        for attempted in fact.attempts():
            self.attempted(attempted)

    @override
    def undelivered(self, fact: Undelivered) -> None:
        if not fact.confirmation:
            name = "dead-letter" if fact.outcome is Outcome.DEAD_LETTERED else fact.outcome.value
            self._write(f"{name} {fact.last.topic.name.name}", fact.last, fact.handed)

    def _write(self, name: str, fact: Attempted, attempt: Attempt | None) -> None:
        """Write what ended just now; without an attempt there was no dead-letter queue to hand the delivery to."""
        duration_ms = 0 if attempt is None else attempt.duration_ms
        self._ids.chosen = trace_id(fact.message_id)
        span = self._tracer.start_span(
            name,
            _NO_PARENT,
            SpanKind.PRODUCER,
            _attributes(fact, attempt),
            start_time=(fact.at - duration_ms) * _NS_OF_MS,
        )
        self._ids.chosen = None  # also of a span that is not sampled
        if attempt is None or not attempt.delivered:
            reason = fact.attempt.reason if attempt is None else attempt.reason
            span.set_status(Status(StatusCode.ERROR, reason.value))
        span.end(fact.at * _NS_OF_MS)


def trace_id(message_id: str) -> int:
    """The id of a message's trace."""
    try:
        return UUID(message_id).int
    except ValueError:
        return uuid5(NAMESPACE_OID, message_id).int


def _attributes(fact: Attempted, attempt: Attempt | None) -> dict[str, str | int]:
    topic, subscription = fact.topic.name, fact.subscription
    attributes: dict[str, str | int] = {
        "messaging.system": "redrive",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic.name,
        "messaging.message.id": fact.message_id,
        "redrive.account": topic.account,
        "redrive.region": topic.region,
        "redrive.subscription": subscription.id,
        "redrive.protocol": subscription.protocol,
        "redrive.attempt": fact.delivery.attempts,
        "redrive.outcome": fact.transition.outcome.value,
    }
    if attempt is not None:
        attributes["redrive.reason"] = attempt.reason.value
        if attempt.status:
            attributes["http.response.status_code"] = attempt.status
    return attributes

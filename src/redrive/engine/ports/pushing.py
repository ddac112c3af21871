"""Pushing: the request, the endpoint that takes it, and the plan that says how often and how fast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from redrive.model.attempt import USUAL, AnswerProfile, Attempt, Reason
from redrive.model.circuit import CircuitPolicy
from redrive.model.delivery import Schedule


@dataclass(frozen=True, slots=True)
class PushRequest:
    """The request that is handed to an endpoint.

    Attributes:
        endpoint: Where to, in the form the endpoint's kind wants (a URL, an address).
        body: The text, encoded.
        content_type: Of the body.
        headers: Fields beside the body.
        timeout_ms: How long an answer may take.
        method: The verb, where the endpoint's kind has verbs.
        headers_kept: Names, in lower case, of headers of the answer that become the attempt's identifiers.
        answer_bytes_max: How much of the answer is read; only its beginning is ever shown.
        parts: The bodies of several deliveries, where the endpoint's kind takes each by itself; `body` is empty then.
    """

    endpoint: str
    body: bytes
    content_type: str
    headers: Mapping[str, str]
    timeout_ms: int
    method: str = "POST"
    headers_kept: Sequence[str] = ()
    answer_bytes_max: int = 4096
    parts: Sequence[bytes] = ()


class Endpoint(Protocol):
    """Pushes deliveries of one protocol."""

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand a request over; every way this can go wrong is an Attempt, never an exception."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class NeedsSetUp(Protocol):
    """An endpoint that stands also where this server has not been set up for it, to say so of each delivery."""

    @property
    def set_up(self) -> bool:
        """True if this server is set up for it."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries that go in one attempt: those that are due together; none is waited for.

    Attributes:
        deliveries_max: The largest number.
        bytes_target: The largest sum of their bodies (bytes); a single larger body goes alone.
    """

    deliveries_max: int = 1
    bytes_target: int = 0


ONE_EACH: Final = Batch()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for pushing the deliveries of a subscription.

    Attributes:
        schedule: When a failed delivery is tried again.
        throttled_schedule: The same when the endpoint asked for a slower pace; it counts the attempts that ended so, as
            far as they are remembered (`Store.notes`). None: `schedule`.
        uncounted: The reasons of attempts that do not count in `schedule`: they go by `throttled_schedule`, as an
            endpoint's wish for a slower pace does. Empty: those wishes go by it, and every attempt counts in `schedule`.
        age_ms_max: How old a delivery may be when a further attempt falls due; one that would be older ends at once.
            None: it is looked at only by then (`Schedule.expired`).
        rate_max: Deliveries a second; None: as fast as the endpoint takes them.
        concurrency_max: Attempts under way at once.
        lease_ms: How long an attempt may take before another node may repeat it.
        batch: How many deliveries an attempt takes along.
        answers: The meaning of the endpoint's status codes.
        late_ms: How long after its start a push still counts that was not answered by its soft time-out, though further
            attempts have begun; None: until the next attempt.
        patience_ms: The soft time-out. After it an attempt counts as failed, though its endpoint may answer late: a
            success before the next attempt begins makes that unnecessary. None: the endpoint's own time-out alone.
        circuit: When the circuit breaker opens; None: never.
    """

    schedule: Schedule
    throttled_schedule: Schedule | None = None
    uncounted: frozenset[Reason] = frozenset()
    age_ms_max: int | None = None
    rate_max: int | None = None
    concurrency_max: int = 32
    lease_ms: int = 30_000
    batch: Batch = ONE_EACH
    answers: AnswerProfile = USUAL
    patience_ms: int | None = None
    late_ms: int | None = None
    circuit: CircuitPolicy | None = None

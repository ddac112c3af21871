"""An attempt: one try to hand a delivery to its endpoint, and what came of it."""

import enum
from dataclasses import dataclass, field
from typing import Final


class AttemptResult(enum.Enum):
    """The result of an attempt, as its maker saw it."""

    DELIVERED = "delivered"  # the consumer has it
    FAILED = "failed"  # not now: the consumer's side is in trouble, another attempt may succeed
    REFUSED = "refused"  # not ever: no further attempt can succeed


class Reason(enum.StrEnum):
    """The reason that an attempt ended as it did."""

    ACCEPTED = "accepted"
    CLIENT_ERROR = "client_error"  # the endpoint says that the request cannot succeed
    SERVER_ERROR = "server_error"  # the endpoint says that it is in trouble
    THROTTLED = "throttled"  # the endpoint asks for a slower pace
    TIMED_OUT = "timed_out"  # no answer within the time given
    CONNECTION = "connection"  # refused, reset, or closed before an answer
    NAME_NOT_RESOLVED = "name_not_resolved"
    TLS = "tls"  # no trusted connection could be made
    REDIRECTED = "redirected"  # redirects are not followed
    MISSING = "missing"  # the endpoint does not exist any more
    DENIED = "denied"  # the endpoint's owner does not let us
    WITHHELD = "withheld"  # the topic's owner does not let it out
    FORBIDDEN_ADDRESS = "forbidden_address"  # the server's settings do not let us
    TOO_LARGE = "too_large"
    DISABLED = "disabled"  # the endpoint is switched off by its owner
    FULL = "full"  # the endpoint has no room left
    REJECTED = "rejected"  # the consumer says that it will never take it
    UNMADE = "unmade"  # this server could not even say what to push: a fault of its own
    EXPIRED = "expired"  # its time was over before it was tried (again)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one try.

    Attributes:
        result: What to do about it.
        reason: Why.
        status: The endpoint's status code, or the nearest one of its kind; 0 where there was no answer.
        response: What the endpoint said, shortened to 1,024 characters.
        duration_ms: How long it took.
        identifiers: Names the endpoint gave the request and the message, for the log.
        parts: What came of each part of a request, where the endpoint says so of each; empty: the same of all.
        answer: The whole of what the endpoint said, where its profile sends that on; nobody keeps it.
    """

    result: AttemptResult
    reason: Reason
    status: int
    response: str
    duration_ms: int
    identifiers: tuple[tuple[str, str], ...] = ()
    parts: tuple["Attempt", ...] = ()
    answer: bytes = field(default=b"", repr=False)

    @property
    def delivered(self) -> bool:
        """True if the endpoint has the message."""
        return self.result is AttemptResult.DELIVERED


NO_ENDPOINT: Final = Attempt(
    AttemptResult.REFUSED, Reason.MISSING, 0, "this server is not set up for this kind of endpoint", 0
)

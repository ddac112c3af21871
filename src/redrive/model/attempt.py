"""An attempt: one try to hand a delivery to its endpoint, and what came of it."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final


class AttemptResult(enum.Enum):
    """The result of an attempt, as the code that made it saw it."""

    DELIVERED = "delivered"  # the consumer has it
    FAILED = "failed"  # not now: the consumer's side is in trouble, another attempt may succeed
    REFUSED = "refused"  # not ever: no further attempt can succeed


class Reason(enum.StrEnum):
    """The reason for the end of an attempt."""

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
    UNMADE = "unmade"  # this server could not even say what to push: its own fault
    EXPIRED = "expired"  # its time was over before it was tried (again)


# Frozen, it would take three times as long to make, and each push makes one.
@dataclass(slots=True, unsafe_hash=True)
class Attempt:
    """The result of one try."""

    result: AttemptResult  # Next step that follows from it
    reason: Reason  # Why
    status: int  # The endpoint's status code, or the nearest one of its kind; 0 if there was no answer
    response: str  # Answer of the endpoint, shortened to 1,024 characters
    duration_ms: int = 0  # How long it took; 0: nothing was sent
    # Names the endpoint gave the request and the message, for the log.
    identifiers: tuple[tuple[str, str], ...] = ()
    # What came of each part of a request, where the endpoint says so of each; empty: the same of all.
    parts: tuple["Attempt", ...] = ()
    # The whole of what the endpoint said, where its profile sends that on; nobody keeps it.
    answer: bytes = field(default=b"", repr=False)

    @property
    def delivered(self) -> bool:
        """True if the endpoint has the message."""
        return self.result is AttemptResult.DELIVERED


NO_ENDPOINT: Final = Attempt(
    AttemptResult.REFUSED, Reason.MISSING, 0, "this server is not set up for this kind of endpoint"
)


# Meanings of an endpoint's status codes, where a subscription has its own.

_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)  # few there are, and each is itself alone: so it can be a key
class AnswerProfile:
    """A reading of status codes; attempts without an answer stay as they are."""

    delivered: frozenset[int] = _NONE  # The endpoint has the message
    refused: frozenset[int] = _NONE  # No further attempt can succeed
    failed: frozenset[int] = _NONE  # Another attempt may
    # How long the next attempt waits at least after some of them, whatever the schedule says.
    floors_ms: Mapping[int, int] = field(default_factory=dict)

    def judge(self, attempt: Attempt) -> Attempt:
        """The attempt with its outcome as this profile has it; a status that it does not name keeps its own."""
        status = attempt.status
        if status in self.delivered:
            result = AttemptResult.DELIVERED
        elif status in self.refused:
            result = AttemptResult.REFUSED
        elif status in self.failed:
            result = AttemptResult.FAILED
        else:
            return attempt
        return attempt if attempt.result is result else replace(attempt, result=result)

    def floor_ms(self, attempt: Attempt) -> int:
        """The shortest wait before the next attempt (ms)."""
        return self.floors_ms.get(attempt.status, 0)


def statuses(*parts: int | range, besides: Iterable[int] = ()) -> frozenset[int]:
    """A set of status codes, written as codes and ranges of them."""
    codes = {code for part in parts for code in ([part] if isinstance(part, int) else part)}
    return frozenset(codes - set(besides))


USUAL: Final = AnswerProfile()

# A client error counts as delivered: what the other of the two published readings of SNS says.
CLIENT_ERRORS_DELIVERED: Final = AnswerProfile(delivered=statuses(range(400, 500), besides=(429,)))

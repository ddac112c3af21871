"""The meanings that answers have for a delivery, shared by every kind of endpoint, and that of no answer at all.

What may pass (an outage, credentials that the operator may mend, a full disk) has failed and is tried again; what is
wrong with the request itself is refused. Each kind adds a table of its own from its statuses or errors to these.
"""

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from socket import gaierror
from typing import Final, NamedTuple

from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason

RESPONSE_CHARS_MAX: Final = 1024


@dataclass(slots=True)  # not frozen, as PushRequest
class Verdict:
    """An attempt whose duration is not known yet; its fields are those of Attempt."""

    result: AttemptResult
    reason: Reason
    status: int = 0
    response: str = ""
    identifiers: tuple[tuple[str, str], ...] = ()
    parts: tuple["Verdict", ...] = ()

    def after(self, duration_ms: int) -> Attempt:
        """The attempt, given how long it took."""
        parts = tuple(part.after(duration_ms) for part in self.parts) if self.parts else ()
        response, duration_ms = self.response[:RESPONSE_CHARS_MAX], max(0, duration_ms)
        return Attempt(self.result, self.reason, self.status, response, duration_ms, self.identifiers, parts)


class Meaning(NamedTuple):
    """The part of a verdict that a table of statuses or errors gives."""

    result: AttemptResult
    reason: Reason

    def verdict(
        self, status: int = 0, response: str = "", identifiers: tuple[tuple[str, str], ...] = ()
    ) -> Verdict:
        """The verdict with what the endpoint said."""
        return Verdict(self.result, self.reason, status, response, identifiers)


ACCEPTED: Final = Meaning(AttemptResult.DELIVERED, Reason.ACCEPTED)
INVALID: Final = Meaning(AttemptResult.REFUSED, Reason.CLIENT_ERROR)
TOO_LARGE: Final = Meaning(AttemptResult.REFUSED, Reason.TOO_LARGE)
MISSING: Final = Meaning(AttemptResult.REFUSED, Reason.MISSING)
NOT_ALLOWED: Final = Meaning(AttemptResult.REFUSED, Reason.DENIED)
REDIRECTED: Final = Meaning(AttemptResult.REFUSED, Reason.REDIRECTED)
FORBIDDEN: Final = Meaning(AttemptResult.REFUSED, Reason.FORBIDDEN_ADDRESS)
NOT_AUTHENTICATED: Final = Meaning(AttemptResult.FAILED, Reason.DENIED)  # by credentials that may be mended
IN_TROUBLE: Final = Meaning(AttemptResult.FAILED, Reason.SERVER_ERROR)
THROTTLED: Final = Meaning(AttemptResult.FAILED, Reason.THROTTLED)
DISABLED: Final = Meaning(AttemptResult.FAILED, Reason.DISABLED)
FULL: Final = Meaning(AttemptResult.FAILED, Reason.FULL)
TIMED_OUT: Final = Meaning(AttemptResult.FAILED, Reason.TIMED_OUT)
TLS: Final = Meaning(AttemptResult.FAILED, Reason.TLS)
NAME_NOT_RESOLVED: Final = Meaning(AttemptResult.FAILED, Reason.NAME_NOT_RESOLVED)
NO_CONNECTION: Final = Meaning(AttemptResult.FAILED, Reason.CONNECTION)

_BY_CLASS: Final[Mapping[int, Meaning]] = {2: ACCEPTED, 3: REDIRECTED, 4: INVALID}
_NO_EXCEPTIONS: Final[Mapping[int, Meaning]] = {}


def of_status(
    status: int,
    response: str,
    exceptions: Mapping[int, Meaning] = _NO_EXCEPTIONS,
    identifiers: tuple[tuple[str, str], ...] = (),
) -> Verdict:
    """The meaning of an HTTP status: of the 4xx only 429 is worth a retry, and redirects are not followed.

    Args:
        status: The status.
        response: What came with it.
        exceptions: Statuses that mean something else at this kind of endpoint.
        identifiers: See Attempt.
    """
    meaning = exceptions.get(status)
    if meaning is None:
        throttled = status == HTTPStatus.TOO_MANY_REQUESTS
        meaning = THROTTLED if throttled else _BY_CLASS.get(status // 100, IN_TROUBLE)
    return meaning.verdict(status, response, identifiers)


def of_failure(error: BaseException, unusable: Meaning = INVALID) -> Verdict:
    """The meaning of an attempt that ended without an answer, from the exception that ended it.

    All of it may pass, so all of it is retried; only a request that cannot be made is not.

    Args:
        error: Raised by the event loop.
        unusable: The meaning of a ValueError: the request cannot be made as it is.
    """
    text = str(error) or type(error).__name__
    match error:
        case TimeoutError():
            return TIMED_OUT.verdict(response="No answer in the time given")
        case ssl.SSLError():  # a certificate's error is a ValueError too
            return TLS.verdict(response=text)
        case gaierror():
            return NAME_NOT_RESOLVED.verdict(response=text)
        case ValueError():
            return unusable.verdict(response=text)
        case _:
            return NO_CONNECTION.verdict(response=text)


# Statuses of storage services that mean something of their own: the same for blobs and queues, Azure's and S3's.

STORAGE_STATUSES: Final[Mapping[int, Meaning]] = {
    HTTPStatus.UNAUTHORIZED: NOT_AUTHENTICATED,
    HTTPStatus.FORBIDDEN: NOT_AUTHENTICATED,
    HTTPStatus.NOT_FOUND: MISSING,
    HTTPStatus.CONFLICT: DISABLED,  # being deleted, or kept from changing
    HTTPStatus.PRECONDITION_FAILED: DISABLED,  # it is leased
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
}


# The part of pushing that is the same for every kind of endpoint: an attempt is timed, whatever came of it.


class TimedEndpoint(ABC):
    """An endpoint (`redrive.engine.ports.Endpoint`) whose kind has only to say what an attempt came to.

    Args:
        now: Milliseconds, for durations.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand it over; every way this can go wrong is an Attempt, never an exception."""
        began = self._now()
        verdict = await self._verdict(push_request)
        return verdict.after(self._now() - began)

    async def close(self) -> None:  # noqa: B027 - nothing to do for kinds that keep no connections of their own
        """Let go of connections."""

    @abstractmethod
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Hand it over, within the request's time; nothing but cancellation is raised."""

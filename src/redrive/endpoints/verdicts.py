"""What an HTTP answer means for a delivery, and what it means that there was none."""

import ssl
from dataclasses import dataclass
from http import HTTPStatus
from socket import gaierror
from typing import Final

import aiohttp

from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Outcome

RESPONSE_CHARS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Verdict:
    """An attempt whose duration is not known yet; its fields are those of Attempt."""

    outcome: Outcome
    reason: Reason
    status: int = 0
    response: str = ""
    identifiers: tuple[tuple[str, str], ...] = ()

    def after(self, duration_ms: int) -> Attempt:
        """The attempt, with how long it took."""
        response = self.response[:RESPONSE_CHARS_MAX]
        duration_ms = max(0, duration_ms)
        return Attempt(self.outcome, self.reason, self.status, response, duration_ms, self.identifiers)


def of_status(status: int, response: str) -> Verdict:
    """What a status usually means: of the 4xx only 429 is worth a retry, and redirects are not followed."""
    match status // 100:
        case 2:
            return Verdict(Outcome.DELIVERED, Reason.ACCEPTED, status, response)
        case 3:
            return Verdict(Outcome.REFUSED, Reason.REDIRECTED, status, response)
        case 4 if status == HTTPStatus.TOO_MANY_REQUESTS:
            return Verdict(Outcome.FAILED, Reason.THROTTLED, status, response)
        case 4:
            return Verdict(Outcome.REFUSED, Reason.CLIENT_ERROR, status, response)
        case _:
            return Verdict(Outcome.FAILED, Reason.SERVER_ERROR, status, response)


def of_failure(error: Exception) -> Verdict:
    """What it means that there was no answer, from what aiohttp raised.

    All of it may pass, so all of it is retried; only a request that cannot be made is not.
    """
    said = str(error) or type(error).__name__
    match error:
        case TimeoutError():
            return Verdict(Outcome.FAILED, Reason.TIMED_OUT, response="No answer in the time given")
        case aiohttp.ClientSSLError():  # a certificate's error is a ValueError too, hence before those
            return Verdict(Outcome.FAILED, Reason.TLS, response=said)
        case aiohttp.ClientConnectorDNSError():
            return Verdict(Outcome.FAILED, Reason.NAME_NOT_RESOLVED, response=said)
        case ValueError():
            return forbidden(said)
        case _:
            return Verdict(Outcome.FAILED, Reason.CONNECTION, response=said)


def forbidden(response: str) -> Verdict:
    """The settings, or the URL itself, rule it out."""
    return Verdict(Outcome.REFUSED, Reason.FORBIDDEN_ADDRESS, response=response)


def of_socket_failure(error: BaseException) -> Verdict:
    """What it means that no answer came over a connection of our own; only what cannot be sent is not tried again."""
    said = str(error) or type(error).__name__
    match error:
        case TimeoutError():
            return Verdict(Outcome.FAILED, Reason.TIMED_OUT, response="No answer in the time given")
        case ssl.SSLError():  # a certificate's error is a ValueError too, hence before those
            return Verdict(Outcome.FAILED, Reason.TLS, response=said)
        case gaierror():
            return Verdict(Outcome.FAILED, Reason.NAME_NOT_RESOLVED, response=said)
        case ValueError():
            return Verdict(Outcome.REFUSED, Reason.CLIENT_ERROR, response=said)
        case _:
            return Verdict(Outcome.FAILED, Reason.CONNECTION, response=said)

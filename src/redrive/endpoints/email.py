"""Mail: requests handed to an SMTP relay."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Final

import aiosmtplib
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import (
    ACCEPTED,
    IN_TROUBLE,
    INVALID,
    NAME_NOT_RESOLVED,
    NOT_AUTHENTICATED,
    TOO_LARGE,
    TimedEndpoint,
    Verdict,
)
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult

_ACCEPTED: Final = 250
_LASTING: Final = 500  # replies from here on say: not ever (RFC 5321, 4.2.1)
_SIZE_EXCEEDED: Final = 552
_QUIT_SECONDS: Final = 1
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
# What the library reads as one mailbox; on much else it raises whatever it comes across (`IndexError` on an empty one).
_ADDRESS: Final = re.compile(rf"{_ATOM}(\.{_ATOM})*@{_ATOM}(\.{_ATOM})*")
_WRITING: Final = SMTP.clone(cte_type="7bit")  # not every relay takes eight bits


@dataclass(frozen=True, slots=True)
class Relay:
    """The mail server that takes what is sent."""

    host: str  # Its name
    port: int  # 587 for submission with a login, 25 between servers
    sender: str  # The address mail comes from
    user: str | None = None  # Whom to log in as; None for no login
    password: str | None = field(default=None, repr=False)
    # The connection has to be encrypted; without it, nothing is, and a login goes out readable.
    starttls: bool = False
    ca_file: Path | None = None  # Certificates in PEM that are trusted besides the system's
    # Open at once; Postfix takes 50 of one client. A mail more waits, within its own time-out.
    connections_max: int = 20


class EmailEndpoint(TimedEndpoint):
    """Hands each request to the relay, over its own connection.

    A request's endpoint is the address; its body is the text, always sent as plain text; of its headers, `Subject`
    and `Message-ID` become the mail's, and `From` is the name shown beside the sender's address.

    Args:
        now: Milliseconds since the epoch, for the Date and for durations.
        relay: Where mail is handed in.
    """

    def __init__(self, now: Callable[[], int], relay: Relay) -> None:
        super().__init__(now)
        self._relay = relay
        # aiosmtplib would ask the system for it, in a thread, for each mail
        self._ehlo_name = relay.sender.rpartition("@")[2]
        self._conversations = asyncio.Semaphore(relay.connections_max)
        self._trust = ssl.create_default_context()
        if relay.ca_file is not None:
            self._trust.load_verify_locations(relay.ca_file)

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Hand a mail to the relay, over a connection of its own."""
        client = self._client(push_request.timeout_ms / 1000)
        try:
            mail = self._mail_bytes(push_request, self._now())
            async with asyncio.timeout(push_request.timeout_ms / 1000), self._conversations:
                verdict = await self._hand_in(client, push_request.endpoint, mail)
            if verdict.result is AttemptResult.DELIVERED:  # the relay has it, whether or not QUIT succeeds
                with suppress(aiosmtplib.SMTPException, OSError):
                    await client.quit(timeout=_QUIT_SECONDS)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            return _of_failure(error)
        finally:
            client.close()
        return verdict

    async def _hand_in(self, client: aiosmtplib.SMTP, address: str, mail: bytes) -> Verdict:
        """Connect, with STARTTLS and a password where the relay has them, and hand in a mail."""
        try:
            await client.connect()
        except aiosmtplib.SMTPResponseException as error:
            return _of_greeting(error)
        _, reply = await client.sendmail(self._relay.sender, [address], mail)
        return ACCEPTED.verdict(_ACCEPTED, reply)

    def _client(self, timeout_seconds: float) -> aiosmtplib.SMTP:
        relay = self._relay
        return aiosmtplib.SMTP(
            hostname=relay.host,
            port=relay.port,
            username=relay.user,
            password=relay.password,
            start_tls=relay.starttls,
            tls_context=self._trust,
            timeout=timeout_seconds,
            local_hostname=self._ehlo_name,
        )

    def _mail_bytes(self, push_request: PushRequest, now: int) -> bytes:
        """The mail as it goes over the wire; raises ValueError if the address or a header cannot be written."""
        if not _ADDRESS.fullmatch(push_request.endpoint):
            raise ValueError(f"{push_request.endpoint!r} is not a mail address")
        mail = EmailMessage(policy=_WRITING)
        mail["From"] = Address(push_request.headers.get("From", ""), addr_spec=self._relay.sender)
        mail["To"] = Address(addr_spec=push_request.endpoint)
        # "+0000"; "-0000" would say that no zone is known
        mail["Date"] = datetime.fromtimestamp(now // 1000, UTC)
        for name in ("Subject", "Message-ID"):
            if name in push_request.headers:
                mail[name] = push_request.headers[name]
        mail.set_content(push_request.body.decode())
        return mail.as_bytes()


def _of_greeting(error: aiosmtplib.SMTPResponseException) -> Verdict:
    """The relay refused the connection, whatever the message: an error of settings, which can be mended in time."""
    denied = isinstance(error, aiosmtplib.SMTPAuthenticationError)
    return (NOT_AUTHENTICATED if denied else IN_TROUBLE).verdict(error.code, error.message)


def _of_failure(error: Exception) -> Verdict:
    """The verdict on an attempt that raised this error: by the relay's reply, if there was one."""
    match error:
        case aiosmtplib.SMTPRecipientsRefused(recipients=[refused, *_]):
            return _of_reply(refused.code, refused.message)
        case aiosmtplib.SMTPResponseException():
            return _of_reply(error.code, error.message)
        case _ if isinstance(error.__cause__, socket.gaierror):
            return NAME_NOT_RESOLVED.verdict(response=str(error))
        case _:
            return verdicts.of_failure(error)


def _of_reply(code: int, text: str) -> Verdict:
    if code < _LASTING:
        return IN_TROUBLE.verdict(code, text)
    return (TOO_LARGE if code == _SIZE_EXCEEDED else INVALID).verdict(code, text)

"""A mail server on a socket of its own, which can be made to refuse."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

SENDER = "redrive@example.org"
USER, PASSWORD = "redrive", "correct horse"


@dataclass
class MailServer:
    """Keeps what it is handed, and answers the end of each mail with `reply`, or as `script` does.

    Attributes:
        refusals: Recipients it answers otherwise: the reply by the address.
    """

    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    reply: str = "250 queued"
    refusals: dict[str, str] = field(default_factory=dict)
    script: Callable[[SMTP], Awaitable[None]] | None = None
    port: int = 0
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd finds its hooks by name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address not in self.refusals:
            envelope.rcpt_tos.append(address)
        return self.refusals.get(address, "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - a hook
        if self.script is not None:
            await self.script(server)
        self.encrypted.append(session.ssl is not None)
        self.envelopes.append(envelope)
        parsed = message_from_bytes(cast("bytes", envelope.content), policy=policy.default)
        self.mails.append(cast("EmailMessage", parsed))
        return self.reply


@asynccontextmanager
async def mail_server(tls: ssl.SSLContext | None = None, **settings: Any) -> AsyncIterator[MailServer]:
    """A mail server on a free port; `settings` are aiosmtpd's."""
    keeper = MailServer()
    loop = asyncio.get_running_loop()
    made: list[SMTP] = []

    def make() -> SMTP:
        made.append(SMTP(keeper, hostname="relay.test", loop=loop, tls_context=tls, **settings))
        return made[-1]

    server = await loop.create_server(make, "127.0.0.1", 0)
    keeper.port = server.sockets[0].getsockname()[1]
    yield keeper
    server.close()
    await asyncio.gather(*(_end(each) for each in made))
    await server.wait_closed()


async def _end(conversation: SMTP) -> None:
    if conversation.transport is not None:
        conversation.transport.close()
    if conversation._handler_coroutine is not None:
        conversation._handler_coroutine.cancel()
        await asyncio.gather(conversation._handler_coroutine, return_exceptions=True)


def authenticator(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any
) -> AuthResult:
    """Let in whoever knows USER's PASSWORD."""
    right = isinstance(given, LoginPassword) and given == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)

import asyncio
import ssl
import time
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from redrive.endpoints.email import EmailEndpoint, Relay
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.server.tls import local_authority, server_context
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, NOW, mail_push
from tests.contracts.endpoints.relay import (
    PASSWORD,
    SENDER,
    USER,
    MailServer,
    authenticator,
    mail_server,
)
from tests.contracts.endpoints.webhook import listening


async def _pushed(port: int, push_request: PushRequest | None = None, **relay: Any) -> Attempt:
    endpoint = EmailEndpoint(lambda: NOW, Relay(relay.pop("host", "127.0.0.1"), port, SENDER, **relay))
    return await endpoint.push(push_request or mail_push())


async def _received(push_request: PushRequest) -> tuple[EmailMessage, MailServer]:
    async with mail_server() as server:
        assert (await _pushed(server.port, push_request)).delivered
    return server.mails[0], server


async def test_a_mail_has_its_sender_recipient_and_date() -> None:
    mail, server = await _received(mail_push("the text"))
    assert mail["From"] == f"Rentals <{SENDER}>"
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == "News"
    assert mail["Message-ID"] == "<1.2@redrive.test>"
    assert mail["Date"].datetime.timestamp() * 1000 == NOW
    assert str(mail["Date"]).endswith(" +0000")
    assert mail.get_content_type() == "text/plain"
    assert server.envelopes[0].mail_from == SENDER
    assert server.envelopes[0].rcpt_tos == ["ann@example.org"]


async def test_names_and_subjects_may_be_in_any_script() -> None:
    headers = {"Subject": "Grüße 🚗", "From": "Müller & Söhne"}
    mail, server = await _received(PushRequest("ann@example.org", "übrigens".encode(), "", headers, 5_000))
    assert mail["Subject"] == "Grüße 🚗"
    assert mail["From"].addresses[0].display_name == "Müller & Söhne"
    content = server.envelopes[0].content
    assert isinstance(content, bytes)
    assert content.isascii()


async def test_a_sender_needs_no_name() -> None:
    mail, _ = await _received(PushRequest("ann@example.org", b"text", "", {"From": ""}, 5_000))
    assert mail["From"] == SENDER
    assert mail["Subject"] is None


@pytest.mark.parametrize(
    ("to", "headers"),
    [
        ("not an address", {}),
        ("two@example.org, three@example.org", {}),
        ("ann@example.org\r\nBcc: eve@example.org", {}),
        ("änn@example.org", {}),
        ("ann@example.org", {"Subject": "one\r\nBcc: eve@example.org"}),
    ],
)
async def test_mails_that_cannot_be_written_are_refused(to: str, headers: dict[str, str]) -> None:
    async with mail_server() as server:
        attempt = await _pushed(server.port, PushRequest(to, b"text", "", headers, 5_000))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert server.mails == []


@pytest.mark.parametrize(
    ("reply", "result", "reason"),
    [
        ("250 2.0.0 queued as 17", AttemptResult.DELIVERED, Reason.ACCEPTED),
        ("421 4.3.2 shutting down", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("450 4.2.0 greylisted", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("452 4.3.1 disk full", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("550 5.1.1 no such user", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("552 5.3.4 too big", AttemptResult.REFUSED, Reason.TOO_LARGE),
        ("554 5.7.1 spam", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
    ],
)
@pytest.mark.parametrize("when", ["recipient", "text"])
async def test_each_reply_has_its_result_and_reason(
    when: str, reply: str, result: AttemptResult, reason: Reason
) -> None:
    async with mail_server() as server:
        if when == "text":
            server.reply = reply
        elif not reply.startswith("2"):
            server.refusals["ann@example.org"] = reply
        attempt = await _pushed(server.port)
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, int(reply[:3]))


async def test_a_relay_that_greets_with_a_refusal_may_be_mended() -> None:
    async def closed(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"554 5.3.2 no service here\r\n")
        await writer.drain()

    async with listening(closed) as port:
        attempt = await _pushed(port)
    assert (attempt.result, attempt.reason, attempt.status) == (
        AttemptResult.FAILED,
        Reason.SERVER_ERROR,
        554,
    )


async def test_a_relay_that_does_not_greet() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port:
        attempt = await _pushed(port, mail_push(timeout_ms=IMPATIENCE_MS))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)


async def test_only_so_many_conversations_are_held_at_once() -> None:
    begun = asyncio.Queue[None]()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        begun.put_nowait(None)
        await reader.read()

    async with listening(silent) as port, asyncio.TaskGroup() as group:
        endpoint = EmailEndpoint(lambda: NOW, Relay("127.0.0.1", port, SENDER, connections_max=2))
        held = [group.create_task(endpoint.push(mail_push())) for _ in range(2)]
        for _ in held:
            await begun.get()
        attempt = await endpoint.push(mail_push(timeout_ms=IMPATIENCE_MS))
        assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)
        assert begun.empty()
        for task in held:
            task.cancel()


async def test_a_server_that_speaks_no_smtp_is_a_failure() -> None:
    async def web(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with listening(web) as port:
        attempt = await _pushed(port)
    assert attempt.result is AttemptResult.FAILED


# ---- encryption and login ----------------------------------------------------------------------------------------


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    kept = local_authority(tmp_path, [], time.time_ns() // 1_000_000)  # OpenSSL compares with the real time
    return server_context(kept.server_file, kept.server_file)


async def test_a_mail_goes_encrypted_and_under_a_name(tls: ssl.SSLContext, tmp_path: Path) -> None:
    settings = {"auth_required": True, "authenticator": authenticator, "require_starttls": True}
    async with mail_server(tls, **settings) as server:
        attempt = await _pushed(
            server.port,
            host="localhost",
            starttls=True,
            user=USER,
            password=PASSWORD,
            ca_file=tmp_path / "authority.pem",
        )
    assert attempt.delivered, attempt
    assert server.encrypted == [True]


async def test_a_wrong_password_may_be_mended(tls: ssl.SSLContext, tmp_path: Path) -> None:
    async with mail_server(tls, auth_required=True, authenticator=authenticator) as server:
        attempt = await _pushed(
            server.port,
            host="localhost",
            starttls=True,
            user=USER,
            password="wrong",
            ca_file=tmp_path / "authority.pem",
        )
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.DENIED, 535)
    assert server.mails == []


async def test_a_relay_that_is_not_trusted_gets_nothing(tls: ssl.SSLContext) -> None:
    async with mail_server(tls) as server:
        attempt = await _pushed(server.port, host="localhost", starttls=True)
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)
    assert server.mails == []


async def test_a_relay_that_cannot_encrypt_gets_nothing_where_it_has_to() -> None:
    async with mail_server() as server:
        attempt = await _pushed(server.port, starttls=True)
    assert attempt.result is AttemptResult.FAILED
    assert server.mails == []


def test_a_password_is_not_shown() -> None:
    assert PASSWORD not in repr(Relay("relay.test", 25, SENDER, USER, PASSWORD))

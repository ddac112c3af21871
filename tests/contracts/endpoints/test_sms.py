"""Text messages beyond the contract of all endpoints: encoding for SMPP, and the session that is kept."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import smpp34

from redrive.endpoints import kept_connection
from redrive.endpoints.sms import connection as sms_connection
from redrive.endpoints.sms import endpoint as sms
from redrive.endpoints.sms.endpoint import SmsEndpoint
from redrive.model.attempt import AttemptResult, Reason
from redrive.runtime.machine import SystemClock
from redrive.server.tls import local_authority, server_context
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, PATIENCE_MS
from tests.contracts.endpoints.telephones import QUEUE_RECORD, gateway_url, sms_endpoint, sms_push
from tests.services import smsc
from tests.services.programs import free_port
from tests.services.smsc import HANG, OK, Smsc, message_centre, place_of

LONG: Final = "All cars are rented out. " * 40


@pytest.fixture
async def centre() -> AsyncIterator[Smsc]:
    async with message_centre() as centre:
        yield centre


@pytest.fixture
async def endpoint(centre: Smsc) -> AsyncIterator[SmsEndpoint]:
    endpoint = sms_endpoint(gateway_url(centre.port))
    yield endpoint
    await endpoint.close()


# ---- a text ----------------------------------------------------------------------------------------------------


async def test_a_text_is_one_submission(endpoint: SmsEndpoint, centre: Smsc) -> None:
    attempt = await endpoint.push(sms_push("Grüße, 5 €", Sender="Rentals", Priority="1"))
    assert (attempt.result, attempt.status) == (AttemptResult.DELIVERED, 200)
    assert dict(attempt.identifiers)["message_id"].startswith("id-")
    (message,) = centre.messages
    assert (message.dest_addr_ton, message.dest_addr_npi, message.destination_addr) == (
        1,
        1,
        QUEUE_RECORD[1:],
    )
    assert (message.data_coding, message.esm_class, message.priority_flag) == (0, 0, 1)
    assert bytes(message.short_message) == b"Gr\x7e\x1ee, 5 \x1b\x65"
    assert message.registered_delivery == 0
    assert centre.binds == [(smsc.USER, smsc.PASSWORD)]


@pytest.mark.parametrize(
    ("sender", "address"),
    [
        ("", (0, 0, "")),
        ("Rentals", (5, 0, "Rentals")),
        ("+4915112345678", (1, 1, "4915112345678")),
        ("4915112345678", (1, 1, "4915112345678")),
        ("12345", (3, 0, "12345")),
    ],
)
async def test_a_sender_id_has_its_address_type(
    endpoint: SmsEndpoint, centre: Smsc, sender: str, address: tuple[int, int, str]
) -> None:
    assert (await endpoint.push(sms_push(Sender=sender))).delivered
    (message,) = centre.messages
    assert (message.source_addr_ton, message.source_addr_npi, message.source_addr) == address


async def test_the_gateways_own_sender(centre: Smsc) -> None:
    endpoint = sms_endpoint(gateway_url(centre.port, query="?sender=House"))
    await endpoint.push(sms_push())
    await endpoint.push(sms_push(Sender="Rentals"))
    await endpoint.close()
    assert [message.source_addr for message in centre.messages] == ["House", "Rentals"]


@pytest.mark.parametrize(("concatenation", "header"), [("udh", True), ("sar", False)])
async def test_a_long_text_is_in_parts(centre: Smsc, concatenation: str, header: bool) -> None:
    endpoint = sms_endpoint(gateway_url(centre.port, query=f"?concatenation={concatenation}"))
    for text in (LONG, LONG + "🚗"):
        attempt = await endpoint.push(sms_push(text))
        assert attempt.delivered
    await endpoint.close()
    assert centre.texts() == [LONG, LONG + "🚗"]
    assert [message.esm_class & 0x40 != 0 for message in centre.messages] == [header] * len(centre.messages)
    assert dict(attempt.identifiers)["message_id"].count(",") == 15


async def test_every_attempt_of_a_text_has_the_same_reference(endpoint: SmsEndpoint, centre: Smsc) -> None:
    for name in ("a", "a", "b"):
        await endpoint.push(sms_push("x" * 161, Message_ID=name))
    references = [place[0] for message in centre.messages if (place := place_of(message))]
    assert references[0] == references[1] == references[2] == references[3] != references[4]


async def test_parts_that_were_taken_are_not_handed_in_again(endpoint: SmsEndpoint, centre: Smsc) -> None:
    def full(message: Any) -> smsc.Answer:
        place = place_of(message)
        return smsc.THROTTLED if place is not None and place[2] > 2 else OK

    centre.answer = full
    attempt = await endpoint.push(sms_push(LONG, Message_ID="a"))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.THROTTLED, 429)
    assert attempt.response == "ESME_RTHROTTLED"
    centre.answer = lambda _: OK
    assert (await endpoint.push(sms_push(LONG, Message_ID="a"))).delivered
    assert centre.texts() == [LONG]
    numbers = [place[2] for message in centre.messages if (place := place_of(message))]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def test_texts_without_a_name_are_told_apart_by_what_they_say(
    endpoint: SmsEndpoint, centre: Smsc
) -> None:
    answers = iter([OK, smsc.THROTTLED])
    centre.answer = lambda _: next(answers, OK)
    assert not (await endpoint.push(sms_push("x" * 161))).delivered
    assert (await endpoint.push(sms_push("y" * 161))).delivered
    assert (await endpoint.push(sms_push("x" * 161))).delivered
    assert centre.texts() == ["y" * 161, "x" * 161]


async def test_a_refused_part_refuses_the_text_message(endpoint: SmsEndpoint, centre: Smsc) -> None:
    answers = iter([smsc.THROTTLED, smsc.INVALID_DESTINATION])
    centre.answer = lambda _: next(answers, OK)
    attempt = await endpoint.push(sms_push(LONG))
    assert (attempt.result, attempt.response) == (AttemptResult.REFUSED, "ESME_RINVDSTADR")


async def test_more_parts_than_there_are_numbers_for(endpoint: SmsEndpoint, centre: Smsc) -> None:
    attempt = await endpoint.push(sms_push("x" * 153 * 255 + "y"))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.TOO_LARGE)
    assert not centre.messages


async def test_a_sender_that_cannot_be_said(endpoint: SmsEndpoint, centre: Smsc) -> None:
    attempt = await endpoint.push(sms_push(Sender="Größe"))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert not centre.messages


# ---- statuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "result", "reason", "nearest"),
    [
        (0x58, AttemptResult.FAILED, Reason.THROTTLED, 429),
        (0x14, AttemptResult.FAILED, Reason.FULL, 507),
        (0x08, AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
        (0x45, AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
        (0x64, AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
        (0xFF, AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
        (0x0410, AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
        (0x0B, AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400),
        (0x0A, AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400),
        (0x65, AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400),
        (0x01, AttemptResult.REFUSED, Reason.TOO_LARGE, 413),
    ],
)
async def test_each_status_has_its_result_and_reason(
    endpoint: SmsEndpoint, centre: Smsc, status: int, result: AttemptResult, reason: Reason, nearest: int
) -> None:
    centre.answer = lambda _: status
    attempt = await endpoint.push(sms_push())
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, nearest)
    assert attempt.response.startswith(("ESME_R", "0x00000410"))


# ---- the session -------------------------------------------------------------------------------------------------


async def test_one_session_for_all(endpoint: SmsEndpoint, centre: Smsc) -> None:
    await asyncio.gather(*(endpoint.push(sms_push(f"number {number}")) for number in range(30)))
    assert len(centre.binds) == 1


async def test_no_more_under_way_than_the_window_has_room_for(centre: Smsc) -> None:
    waiting: list[int] = []
    full, released = asyncio.Event(), asyncio.Event()
    endpoint = sms_endpoint(gateway_url(centre.port, query="?window=3"))

    def hold(message: Any) -> smsc.Answer:
        waiting.append(1)
        if len(waiting) == 3:
            full.set()
        return OK if released.is_set() else HANG

    centre.answer = hold
    patience = [5 * IMPATIENCE_MS] * 3 + [PATIENCE_MS] * 6
    pushing = [asyncio.create_task(endpoint.push(sms_push(timeout_ms=one))) for one in patience]
    await asyncio.wait_for(full.wait(), 10)
    await centre.tell(
        QUEUE_RECORD, b"hello"
    )  # there and back: whatever was sent after the third has come too
    assert len(waiting) == 3
    released.set()
    attempts = await asyncio.gather(*pushing)
    reasons = [attempt.reason for attempt in attempts]
    assert reasons == [Reason.TIMED_OUT] * 3 + [Reason.ACCEPTED] * 6  # once the slots are free again
    await endpoint.close()


async def test_a_bind_that_is_refused_is_tried_again(
    centre: Smsc, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sms, "_PAUSE_SECONDS", 0.05)
    endpoint = sms_endpoint(gateway_url(centre.port))
    centre.bind_status = smsc.WRONG_PASSWORD
    attempts = await asyncio.gather(*(endpoint.push(sms_push()) for _ in range(5)))
    assert {(attempt.result, attempt.reason, attempt.status) for attempt in attempts} == {
        (AttemptResult.FAILED, Reason.DENIED, 401)
    }
    assert attempts[0].response == "bind: ESME_RINVPASWD"
    assert len(centre.binds) == 1  # who comes at once is told the same
    assert "ESME_RINVPASWD" in caplog.text
    assert smsc.PASSWORD not in caplog.text
    centre.bind_status = OK
    await asyncio.wait_for(centre.bound.wait(), 10)
    assert (await endpoint.push(sms_push())).delivered
    await endpoint.close()


async def test_a_lost_session_is_bound_again(
    centre: Smsc, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sms, "_PAUSE_SECONDS", 0.05)
    endpoint = sms_endpoint(gateway_url(centre.port))
    endpoint.start()
    await asyncio.wait_for(centre.bound.wait(), 10)
    for lose in (centre.hang_up, centre.unbind):
        centre.bound.clear()
        if (saying := lose()) is not None:
            await saying
        await asyncio.wait_for(centre.bound.wait(), 10)
    assert (await endpoint.push(sms_push())).delivered
    await endpoint.close()
    assert [record.message.split()[0] for record in caplog.records if record.name == sms.__name__] == [
        "sms.bound",
        "sms.lost",
        "sms.bound",
        "sms.lost",
        "sms.bound",
    ]


async def test_messages_in_flight_when_the_session_ends_fail_and_may_be_retried(
    endpoint: SmsEndpoint, centre: Smsc
) -> None:
    waiting: list[Any] = []
    all_there = asyncio.Event()

    def hold(message: Any) -> smsc.Answer:
        waiting.append(message)
        if len(waiting) == 3:
            all_there.set()
        return HANG

    centre.answer = hold
    pushing = [asyncio.create_task(endpoint.push(sms_push())) for _ in range(3)]
    await asyncio.wait_for(all_there.wait(), 10)
    centre.hang_up()
    for attempt in await asyncio.gather(*pushing):
        assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)
    centre.answer = lambda _: OK
    assert (await endpoint.push(sms_push())).delivered


async def test_a_session_without_a_sign_of_life_is_given_up(
    centre: Smsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sms_connection, "_SILENCE_SECONDS", 0.03)
    monkeypatch.setattr(sms_connection, "_PATIENCE_SECONDS", 0.03)
    monkeypatch.setattr(sms, "_PAUSE_SECONDS", 0.01)
    endpoint = sms_endpoint(gateway_url(centre.port))
    endpoint.start()
    for _ in range(3):
        centre.enquired.clear()
        await asyncio.wait_for(centre.enquired.wait(), 10)
    assert len(centre.binds) == 1
    centre.lively = False
    centre.bound.clear()
    await asyncio.wait_for(centre.bound.wait(), 10)
    centre.lively = True
    assert (await endpoint.push(sms_push())).delivered
    await endpoint.close()


async def test_texts_that_time_out_do_not_keep_a_dead_session_alive(
    centre: Smsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them asks for a sign of life; the first to ask has waited longest."""
    monkeypatch.setattr(sms_connection, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(sms, "_PAUSE_SECONDS", 0.01)
    endpoint = sms_endpoint(gateway_url(centre.port))
    endpoint.start()
    await asyncio.wait_for(centre.bound.wait(), 10)
    centre.bound.clear()
    centre.lively, centre.answer = False, lambda _: HANG
    async with asyncio.timeout(10):
        while not centre.bound.is_set():
            await endpoint.push(sms_push(timeout_ms=20))
    await endpoint.close()


async def test_an_attempt_says_that_the_centre_gave_no_sign_of_life(
    centre: Smsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sms_connection, "_PATIENCE_SECONDS", 0.2)
    endpoint = sms_endpoint(gateway_url(centre.port))
    endpoint.start()
    await asyncio.wait_for(centre.bound.wait(), 10)
    centre.lively, centre.answer = False, lambda _: HANG
    await endpoint.push(sms_push(timeout_ms=20))  # asks for one
    attempt = await endpoint.push(sms_push(timeout_ms=10_000))
    assert (attempt.result, attempt.response) == (
        AttemptResult.FAILED,
        "The message centre gives no sign of life",
    )
    await endpoint.close()


async def test_a_centre_that_has_forgotten_the_session_is_bound_to_again(
    endpoint: SmsEndpoint, centre: Smsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sms, "_PAUSE_SECONDS", 0.01)
    centre.answer = lambda _: smsc.NOT_BOUND
    attempt = await endpoint.push(sms_push())
    assert (attempt.result, attempt.response) == (AttemptResult.FAILED, "ESME_RINVBNDSTS")
    centre.answer = lambda _: OK
    while not (await endpoint.push(sms_push())).delivered:
        pass
    assert len(centre.binds) == 2


async def test_a_centre_that_goes_on_talking_does_not_hold_up_goodbye(
    centre: Smsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_connection, "_GOODBYE_SECONDS", 0.1)
    endpoint = sms_endpoint(gateway_url(centre.port))
    assert (await endpoint.push(sms_push())).delivered
    centre.goodbye = centre.enquire  # in place of an answer
    await asyncio.wait_for(endpoint.close(), 10)
    assert centre.unbound == 1


async def test_closing_the_endpoint_unbinds_the_session(centre: Smsc) -> None:
    endpoint = sms_endpoint(gateway_url(centre.port))
    assert (await endpoint.push(sms_push())).delivered
    await endpoint.close()
    assert centre.unbound == 1


async def test_a_centre_that_speaks_something_else() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 relay.example.org ESMTP Postfix\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    endpoint = sms_endpoint(gateway_url(server.sockets[0].getsockname()[1]))
    attempt = await endpoint.push(sms_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)
    assert "no SMPP" in attempt.response
    await endpoint.close()
    server.close()
    await server.wait_closed()


async def test_smpps_verifies_the_gateways_certificate(tmp_path: Path) -> None:
    certificate = local_authority(tmp_path, ["localhost"], SystemClock().now())
    async with message_centre(server_context(certificate.server_file, certificate.server_file)) as centre:
        url = gateway_url(centre.port, host="localhost", scheme="smpps")
        trusting, wary = sms_endpoint(url, certificate.authority_file), sms_endpoint(url)
        assert (await trusting.push(sms_push())).delivered
        attempt = await wary.push(sms_push())
        assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)
        await trusting.close()
        await wary.close()


# ---- what telephones write -----------------------------------------------------------------------------------------


async def test_incoming_text_messages_are_read(endpoint: SmsEndpoint, centre: Smsc) -> None:
    read: list[tuple[str, str]] = []

    async def reader(number: str, text: str) -> None:
        read.append((number, text))

    endpoint.reader = reader
    endpoint.start()
    await asyncio.wait_for(centre.bound.wait(), 10)
    assert await centre.tell(QUEUE_RECORD[1:], b"STOP", source_addr_ton=1) == OK
    assert await centre.tell(QUEUE_RECORD, "ARRÊT".encode("utf-16-be"), data_coding=8) == OK
    assert await centre.tell(QUEUE_RECORD, b"\5\0\3\1\2\1Stop", esm_class=0x40) == OK
    payload = smpp34.Tlv(smpp34.TLV_MESSAGE_PAYLOAD, b"Quit")
    assert await centre.tell(QUEUE_RECORD, b"", tlvs=[payload]) == OK
    assert await centre.tell(QUEUE_RECORD, b"id:1 stat:DELIVRD", esm_class=0x04) == OK
    assert read == [
        (QUEUE_RECORD, "STOP"),
        (QUEUE_RECORD, "ARRÊT"),
        (QUEUE_RECORD, "Stop"),
        (QUEUE_RECORD, "Quit"),
    ]


async def test_an_incoming_text_message_that_cannot_be_kept_is_not_acknowledged(
    endpoint: SmsEndpoint, centre: Smsc, caplog: pytest.LogCaptureFixture
) -> None:
    async def reader(number: str, text: str) -> None:
        raise ConnectionError("no store")

    endpoint.reader = reader
    endpoint.start()
    await asyncio.wait_for(centre.bound.wait(), 10)
    assert await centre.tell(QUEUE_RECORD, b"STOP") == 0x64  # temporary: the centre comes again
    assert "sms.unheard" in caplog.text


# ---- an independent message centre ---------------------------------------------------------------------------------


async def test_a_centre_that_others_wrote() -> None:
    port = free_port()
    server = smpp34.Server("127.0.0.1", port, system_id="other")
    await server.start()
    endpoint = sms_endpoint(gateway_url(port))
    heard = asyncio.Event()

    async def reader(number: str, text: str) -> None:
        assert (number, text) == (QUEUE_RECORD, "Stop")
        heard.set()

    endpoint.reader = reader
    pushing = asyncio.create_task(endpoint.push(sms_push(LONG + "🚗", Sender="Rentals")))
    session = await asyncio.wait_for(server.next(), 10)
    assert session.system_id == smsc.USER
    texts: dict[int, bytes] = {}
    while not pushing.done():
        event = await asyncio.wait_for(server.next(), 10)
        octets = bytes(event.short_message)
        texts[octets[5]] = octets[6:]
        event.accept(f"id-{octets[5]}")
        await asyncio.sleep(0)
        if len(texts) == octets[4]:
            break
    assert (await pushing).delivered
    assert b"".join(texts[one] for one in sorted(texts)).decode("utf-16-be") == LONG + "🚗"
    pushing = asyncio.create_task(endpoint.push(sms_push()))
    (await asyncio.wait_for(server.next(), 10)).reject(smpp34.ESME_RTHROTTLED)
    assert (await pushing).reason is Reason.THROTTLED
    answer = await session.deliver_sm("12345", b"Stop", source_addr=QUEUE_RECORD[1:])
    assert answer.is_success
    await asyncio.wait_for(heard.wait(), 10)
    await endpoint.close()
    await server.stop()

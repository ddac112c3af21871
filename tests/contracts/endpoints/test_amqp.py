import asyncio
import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from proton import symbol
from proton.utils import BlockingConnection

from redrive.endpoints import kept_connection
from redrive.endpoints.azure import amqp_connection
from redrive.endpoints.azure.namespaces import Namespace, read_entity, read_namespace
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.runtime.machine import SystemClock
from redrive.server.tls import local_authority, server_context
from tests.contracts.endpoints import broker as brokers
from tests.contracts.endpoints.broker import Broker, Settle, broker
from tests.contracts.endpoints.kinds import IMPATIENCE_MS
from tests.contracts.endpoints.namespaces import NAMESPACE, QUEUE, amqp_endpoint, amqp_push
from tests.contracts.endpoints.webhook import listening
from tests.services.rabbitmq import RabbitMq

_NAMES: Final = itertools.count()
_HUB: Final = NAMESPACE.replace("ServiceBus", "EventHub") + "/eventhubs/telemetry"


# ---- RabbitMQ ----------------------------------------------------------------------------------------------------


def _entity() -> str:
    return f"{NAMESPACE}/queues/orders-{os.getpid()}-{next(_NAMES)}"


def receive(rabbitmq: RabbitMq, entity: str, count: int) -> list[Any]:
    """Take messages off a queue, as a service that reads it does."""
    reader = BlockingConnection(rabbitmq.url(addresses=""), allowed_mechs="PLAIN")
    try:
        receiver = reader.create_receiver(f"/queue/{entity.rpartition('/')[2]}")
        messages = [receiver.receive(timeout=10) for _ in range(count)]
        for _ in messages:
            receiver.accept()
        return messages
    finally:
        reader.close()


async def test_a_message_as_its_reader_gets_it(rabbitmq: RabbitMq) -> None:
    entity = _entity()
    endpoint = amqp_endpoint(rabbitmq.url())
    attempt = await endpoint.push(amqp_push('{"id": "ü"}', entity=entity, SessionId="s", Label="l", Own="o"))
    (message,) = await asyncio.to_thread(receive, rabbitmq, entity, 1)
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.DELIVERED, Reason.ACCEPTED, 200)
    assert bytes(message.body).decode() == '{"id": "ü"}'
    assert (message.content_type, message.durable, message.id) == ("application/json", True, "event-1")
    assert (message.group_id, message.subject) == ("s", "l")
    assert message.properties == {
        "aeg-event-type": "Notification",
        "aeg-output-event-id": "event-1",
        "Own": "o",
    }
    await endpoint.close()


async def test_many_messages_to_many_queues_arrive_once(rabbitmq: RabbitMq) -> None:
    entities = [_entity() for _ in range(3)]
    endpoint = amqp_endpoint(rabbitmq.url())
    push_requests = [amqp_push(str(number), entity=entities[number % 3]) for number in range(300)]
    assert all(attempt.delivered for attempt in await asyncio.gather(*map(endpoint.push, push_requests)))
    for place, entity in enumerate(entities):
        messages = await asyncio.to_thread(receive, rabbitmq, entity, 100)
        assert sorted(int(bytes(message.body)) for message in messages) == list(range(place, 300, 3))
    await endpoint.close()


async def test_a_message_of_many_frames(rabbitmq: RabbitMq) -> None:
    entity = _entity()
    endpoint = amqp_endpoint(rabbitmq.url())
    text = "x" * 1_000_000
    assert (await endpoint.push(amqp_push(text, entity=entity))).delivered
    (message,) = await asyncio.to_thread(receive, rabbitmq, entity, 1)
    assert bytes(message.body).decode() == text
    await endpoint.close()


async def test_a_missing_entity_ends_its_own_session_alone(rabbitmq: RabbitMq) -> None:
    """RabbitMQ says so of exchanges; a queue it would make."""
    endpoint = amqp_endpoint(rabbitmq.url(addresses="/exchange/"))
    there, nowhere = f"{NAMESPACE}/topics/amq.topic", f"{NAMESPACE}/topics/nowhere"
    for _ in range(2):
        attempt = await endpoint.push(amqp_push(entity=nowhere))
        assert (attempt.result, attempt.reason, attempt.status) == (
            AttemptResult.REFUSED,
            Reason.MISSING,
            404,
        )
        assert "nowhere" in attempt.response
        assert (await endpoint.push(amqp_push(entity=there, Label="routing key"))).delivered
    await endpoint.close()


async def test_a_wrong_password_may_be_mended(rabbitmq: RabbitMq) -> None:
    endpoint = amqp_endpoint(rabbitmq.url("guest:wrong"))
    attempt = await endpoint.push(amqp_push(timeout_ms=30_000))  # RabbitMQ takes 3 s to say so
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.DENIED, 401)
    assert "wrong" not in attempt.response
    await endpoint.close()


# ---- what a broker says ------------------------------------------------------------------------------------------

_CONDITIONS = [
    ("amqp:not-found", AttemptResult.REFUSED, Reason.MISSING, 404),
    ("amqp:unauthorized-access", AttemptResult.FAILED, Reason.DENIED, 401),
    ("amqp:resource-limit-exceeded", AttemptResult.FAILED, Reason.FULL, 507),
    ("amqp:internal-error", AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
    ("com.microsoft:entity-disabled", AttemptResult.FAILED, Reason.DISABLED, 423),
    ("com.microsoft:server-busy", AttemptResult.FAILED, Reason.THROTTLED, 503),
    ("com.microsoft:timeout", AttemptResult.FAILED, Reason.SERVER_ERROR, 504),
    ("com.microsoft:unheard-of", AttemptResult.FAILED, Reason.SERVER_ERROR, 500),
    ("amqp:not-allowed", AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400),
    ("com.microsoft:argument-error", AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400),
    ("amqp:link:message-size-exceeded", AttemptResult.REFUSED, Reason.TOO_LARGE, 413),
]


async def _push(keeper: Broker, settle: Settle) -> Attempt:
    keeper.settle = settle
    endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
    attempt = await endpoint.push(amqp_push())
    keeper.settle, keeper.attach = brokers.accept, None
    assert (await endpoint.push(amqp_push())).delivered  # whatever it was, it is over with the message
    await endpoint.close()
    return attempt


@pytest.mark.parametrize(("condition", "result", "reason", "status"), _CONDITIONS)
@pytest.mark.parametrize("way", [brokers.reject, brokers.detach])
async def test_each_error_condition_has_its_result_and_reason(
    way: object, condition: str, result: AttemptResult, reason: Reason, status: int
) -> None:
    assert callable(way)
    async with broker() as keeper:
        attempt = await _push(keeper, way(condition, "because"))
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, status)
    assert attempt.response == f"{condition}: because"


async def test_a_link_that_is_not_opened() -> None:
    async with broker() as keeper:
        keeper.attach = ("amqp:not-found", "no such queue")
        attempt = await _push(keeper, brokers.accept)
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.MISSING)


@pytest.mark.parametrize("settle", [brokers.release, brokers.disconnect("amqp:connection:forced", "upgrade")])
async def test_released_and_interrupted_messages_are_failures_to_retry(settle: Settle) -> None:
    async with broker() as keeper:
        attempt = await _push(keeper, settle)
    assert (attempt.result, attempt.reason, attempt.status) == (
        AttemptResult.FAILED,
        Reason.SERVER_ERROR,
        500,
    )
    assert attempt.response in ("released: no reason given", "amqp:connection:forced: upgrade")


async def test_one_large_message_is_not_held_against_the_others() -> None:
    async with broker() as keeper:
        detach = brokers.detach("amqp:link:message-size-exceeded", "one of them")
        keeper.settle = lambda *told: detach(*told) if len(keeper.messages) > 1 else None
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        attempts = await asyncio.gather(*(endpoint.push(amqp_push(text)) for text in ("small", "large")))
        assert [(one.result, one.status) for one in attempts] == [(AttemptResult.FAILED, 500)] * 2
        await endpoint.close()


async def test_messages_larger_than_the_entity_takes_are_not_sent() -> None:
    async with broker() as keeper:
        keeper.message_bytes_max = 1000
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        attempts = await asyncio.gather(
            *(endpoint.push(amqp_push(text)) for text in ("x" * 1000, "small", "x" * 2000))
        )
        assert [one.reason for one in attempts] == [Reason.TOO_LARGE, Reason.ACCEPTED, Reason.TOO_LARGE]
        assert [bytes(message.body) for message in keeper.messages] == [b"small"]
        await endpoint.close()


async def test_messages_wait_for_credit() -> None:
    async with broker() as keeper:
        keeper.credit = 1
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        attempts = await asyncio.gather(*(endpoint.push(amqp_push(str(number))) for number in range(20)))
        assert all(attempt.delivered for attempt in attempts)
        assert [bytes(message.body) for message in keeper.messages] == [
            b"%d" % number for number in range(20)
        ]
        keeper.credit = 0
        other = await endpoint.push(amqp_push("never", IMPATIENCE_MS, entity=f"{NAMESPACE}/queues/other"))
        assert other.reason is Reason.TIMED_OUT
        assert len(keeper.messages) == 20
        await endpoint.close()


# ---- connections -------------------------------------------------------------------------------------------------


async def test_a_namespace_has_one_connection_and_each_entity_a_link() -> None:
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        for entity in (QUEUE, f"{NAMESPACE}/topics/news", _HUB, QUEUE):
            assert (await endpoint.push(amqp_push(entity=entity))).delivered
        assert keeper.addresses == ["orders", "news", "telemetry"]
        assert len(keeper.sessions) == 1
        await endpoint.close()


async def test_many_entities_are_shared_out_among_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker has a limit; what goes past it would be silent."""
    monkeypatch.setattr(amqp_connection, "_ENTITIES_MAX", 2)
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        for name in "ababcda":
            assert (await endpoint.push(amqp_push(entity=f"{NAMESPACE}/queues/{name}"))).delivered
        assert keeper.addresses == ["a", "b", "c", "d", "a"]
        assert len(keeper.containers) == 2
        await endpoint.close()


async def test_after_an_answer_that_did_not_come_another_connection_is_tried() -> None:
    """Of a connection that died without a word nobody knows but by that."""
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        assert (await endpoint.push(amqp_push())).delivered
        keeper.settle = brokers.hang
        assert (await endpoint.push(amqp_push("hang", IMPATIENCE_MS))).reason is Reason.TIMED_OUT
        keeper.settle = brokers.accept
        assert (await endpoint.push(amqp_push())).delivered
        assert len(set(keeper.containers)) == len(keeper.sessions) == 2
        await endpoint.close()


async def test_a_connection_is_closed_when_it_has_rested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp_connection, "_REST_SECONDS", 0)
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        for count in (1, 2):
            assert (await endpoint.push(amqp_push())).delivered
            await asyncio.gather(*(connection.closed for connection in endpoint._connections.connections))
            assert len(keeper.sessions) == count
        await endpoint.close()


async def test_a_broker_that_does_not_say_goodbye_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connection, "_GOODBYE_SECONDS", 0)
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        assert (await endpoint.push(amqp_push())).delivered
        monkeypatch.setattr(keeper.sessions[0], "data_received", lambda _: None)
        await endpoint.close()
        assert not endpoint._connections.connections


async def test_a_broker_that_refuses_the_password_denies_the_attempt() -> None:
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://guest:guest@127.0.0.1:{keeper.port}")
        attempt = await endpoint.push(amqp_push())
        assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.DENIED, 401)
        await endpoint.close()


async def test_nonsense_is_no_broker() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
        await reader.read()
        writer.close()

    async with listening(serve) as port:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{port}")
        assert (await endpoint.push(amqp_push())).result is AttemptResult.FAILED
        await endpoint.close()


async def test_amqps_verifies_the_brokers_certificate(tmp_path: Path) -> None:
    certificate = local_authority(tmp_path, ["localhost"], SystemClock().now())
    async with broker(server_context(certificate.server_file, certificate.server_file)) as keeper:
        url = f"amqps://localhost:{keeper.port}"
        trusting = amqp_endpoint(url, certificate.authority_file)
        assert (await trusting.push(amqp_push())).delivered
        await trusting.close()
        attempt = await amqp_endpoint(url).push(amqp_push())
        assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)


# ---- what is sent ------------------------------------------------------------------------------------------------


async def test_attributes_that_mean_something_become_it() -> None:
    attributes = {
        "MessageId": "m",
        "SessionId": "s",
        "CorrelationId": "c",
        "Label": "l",
        "ReplyTo": "r",
        "ReplyToSessionId": "rs",
        "To": "t",
        "PartitionKey": "p",
        "ViaPartitionKey": "v",
    }
    push_request = amqp_push()
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        assert (
            await endpoint.push(replace(push_request, headers={**push_request.headers, **attributes}))
        ).delivered
        await endpoint.close()
    (message,) = keeper.messages
    assert (message.id, message.group_id, message.correlation_id, message.subject) == ("m", "s", "c", "l")
    assert (message.reply_to, message.reply_to_group_id, message.address) == ("r", "rs", "t")
    assert message.annotations == {
        symbol("x-opt-partition-key"): "p",
        symbol("x-opt-via-partition-key"): "v",
    }
    assert set(message.properties) == {"aeg-event-type", "aeg-output-event-id"}


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        (
            "Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=a2V5=;EntityPath=q",
            Namespace("bus.servicebus.windows.net", 5671, True, "Root", "a2V5="),
        ),
        (
            "endpoint=sb://localhost:5673;sharedaccesskeyname=r;sharedaccesskey=k;UseDevelopmentEmulator=true;",
            Namespace("localhost", 5673, False, "r", "k"),
        ),
        ("amqps://u%40x:p%2F@host", Namespace("host", 5671, True, "u@x", "p/")),
        ("amqp://host:1/queues/", Namespace("host", 1, False, "", "", "/queues/")),
        ("amqp://host/", Namespace("host", 5672, False, "", "")),
    ],
)
def test_a_namespace_is_read(text: str, namespace: Namespace) -> None:
    assert read_namespace(text) == namespace
    assert "a2V5" not in repr(read_namespace(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "amqp:///x",
        "https://bus",
        "Endpoint=sb://bus;SharedAccessKeyName=r",
        "Endpoint=sb://bus;SharedAccessSignature=s",
    ],
)
async def test_malformed_namespace_addresses_refuse_every_push(text: str) -> None:
    endpoint = amqp_endpoint(text)
    attempt = await endpoint.push(amqp_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)


async def test_a_namespace_that_the_settings_do_not_name() -> None:
    attempt = await amqp_endpoint(None).push(amqp_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)


@pytest.mark.parametrize(
    ("resource", "entity"),
    [
        (QUEUE, "orders"),
        (QUEUE.upper(), "ORDERS"),
        (f"{NAMESPACE}/topics/a/b", "a/b"),
        (_HUB, "telemetry"),
        (NAMESPACE, None),
        (f"{QUEUE}?x", None),
        (f"{NAMESPACE}/hybridConnections/h", None),
        ("orders", None),
    ],
)
def test_an_entity_is_read(resource: str, entity: str | None) -> None:
    if entity is None:
        with pytest.raises(ValueError, match="resource id"):
            read_entity(resource)
    else:
        assert read_entity(resource) == entity

import itertools
import os
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from azure.storage.queue import QueueClient, QueueServiceClient

from redrive.endpoints.azure.storage_queue import StorageQueueEndpoint
from redrive.model.attempt import AttemptResult, Reason
from tests.contracts.endpoints.kinds import NOW
from tests.contracts.endpoints.storage import CONTAINER, CREATED, QUEUE, queue_endpoint, queue_push
from tests.contracts.endpoints.webhook import Webhook, answer
from tests.services.azurite import RESOURCE, Azurite

_NAMES = itertools.count()


@pytest.fixture
def queue(azurite: Azurite) -> QueueClient:
    service = QueueServiceClient.from_connection_string(azurite.connection_string)
    return service.create_queue(f"events-{os.getpid()}-{next(_NAMES)}")


@pytest.fixture
async def azure(azurite: Azurite) -> AsyncIterator[StorageQueueEndpoint]:
    endpoint = StorageQueueEndpoint(lambda: NOW, lambda _: azurite.connection_string)
    yield endpoint
    await endpoint.close()


def _resource(name: str) -> str:
    return f"{RESOURCE}/queueServices/default/queues/{name}"


@pytest.mark.parametrize(("headers", "days"), [({}, 7), ({"ttl-seconds": "86400"}, 1)])
async def test_a_message_as_its_reader_gets_it(
    azure: StorageQueueEndpoint, queue: QueueClient, headers: dict[str, str], days: int
) -> None:
    push_request = queue_push('{"id": "ü <&>"}', queue=_resource(queue.queue_name))
    attempt = await azure.push(replace(push_request, headers=headers))
    message: Any = next(iter(queue.receive_messages()))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.DELIVERED, Reason.ACCEPTED, 201)
    assert b64decode(message.content).decode() == '{"id": "ü <&>"}'
    assert (message.expires_on - message.inserted_on).days == days


async def test_a_message_may_stay_for_ever(azure: StorageQueueEndpoint, queue: QueueClient) -> None:
    push_request = replace(queue_push(queue=_resource(queue.queue_name)), headers={"ttl-seconds": "-1"})
    assert (await azure.push(push_request)).delivered
    message: Any = next(iter(queue.receive_messages()))
    assert message.expires_on.year == 9999


async def test_a_missing_queue_is_a_refusal(azure: StorageQueueEndpoint) -> None:
    attempt = await azure.push(queue_push(queue=_resource("nowhere")))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.REFUSED, Reason.MISSING, 404)
    assert "QueueNotFound" in attempt.response


async def test_a_message_that_is_too_large(azure: StorageQueueEndpoint, queue: QueueClient) -> None:
    attempt = await azure.push(queue_push("x" * 65_536, queue=_resource(queue.queue_name)))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.TOO_LARGE)


async def test_a_wrong_key_may_be_mended(azurite: Azurite, queue: QueueClient) -> None:
    wrong = azurite.connection_string.replace("AccountKey=c2VjcmV0", "AccountKey=d3Jvbmc=")
    endpoint = StorageQueueEndpoint(lambda: NOW, lambda _: wrong)
    attempt = await endpoint.push(queue_push(queue=_resource(queue.queue_name)))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.DENIED, 403)
    await endpoint.close()


@pytest.mark.parametrize(
    "queue", [CONTAINER, RESOURCE, f"{QUEUE}/messages", "events", f"{RESOURCE}/../events"]
)
async def test_only_a_queue_takes_messages(hook: Webhook, queue: str) -> None:
    endpoint = queue_endpoint(hook.url("/teststore"))
    attempt = await endpoint.push(queue_push(queue=queue))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert not hook.received
    await endpoint.close()


@pytest.mark.parametrize("settings", [None, "nonsense", "AccountName=a"])
async def test_an_account_that_the_settings_do_not_tell_of(settings: str | None) -> None:
    endpoint = StorageQueueEndpoint(lambda: NOW, lambda _: settings)
    attempt = await endpoint.push(queue_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    await endpoint.close()


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff"])
async def test_an_unreadable_answer_counts_by_its_status(hook: Webhook, body: bytes) -> None:
    endpoint = queue_endpoint(hook.url("/teststore"))
    hook.say(answer("201 Created", body))
    assert (await endpoint.push(queue_push())).delivered
    hook.say(answer("500 Oh", body, "Content-Type: application/xml"))
    attempt = await endpoint.push(queue_push())
    assert (attempt.reason, attempt.status) == (Reason.SERVER_ERROR, 500)
    assert len(hook.received) == 2  # the schedule repeats, nobody else
    await endpoint.close()


async def test_accounts_share_connections(hook: Webhook) -> None:
    hook.say(CREATED)
    endpoint = queue_endpoint(hook.url("/teststore"))
    for name in ("one", "two", "one"):
        assert (await endpoint.push(queue_push(queue=_resource(name)))).delivered
    assert hook.connections == 1
    await endpoint.close()

"""Dead letters: the documentation's three examples, the blobs they are kept in, and the rules of time."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from redrive.azure.eventgrid.dead_letters import reason_of, text_of
from redrive.azure.eventgrid.published import Letter, PublishedEvent
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    CUSTOM_INPUT_SCHEMA,
    EVENT_GRID_SCHEMA,
    DeliverySettings,
)
from tests.azure.stage import ACCOUNT, BROKEN, CONTAINER, EVENT, GONE, Stage, answer

MINUTE_MS = 60_000

# The examples of "Event Grid message delivery and retry", their moments to the millisecond that is kept.
PUBLISHED_AT = 1_597_339_094_026
ATTEMPTED_AT = 1_597_339_094_046
STORAGE_EVENT: dict[str, Any] = {
    "id": "93902694-901e-008f-6f95-7153a806873c",
    "eventTime": "2020-08-13T17:18:13.1647262Z",
    "eventType": "Microsoft.Storage.BlobCreated",
    "dataVersion": "",
    "metadataVersion": "1",
    "topic": "/subscriptions/000000000-0000-0000-0000-00000000000000/resourceGroups/rgwithoutpolicy"
    "/providers/Microsoft.Storage/storageAccounts/myegteststgfoo",
    "subject": "/blobServices/default/containers/deadletter/blobs/myBlobFile.txt",
    "data": {
        "api": "PutBlob",
        "clientRequestId": "c0d879ad-88c8-4bbe-8774-d65888dc2038",
        "requestId": "93902694-901e-008f-6f95-7153a8000000",
        "eTag": "0x8D83FACDC0C3402",
        "contentType": "text/plain",
        "contentLength": 0,
        "blobType": "BlockBlob",
        "url": "https://myegteststgfoo.blob.core.windows.net/deadletter/myBlobFile.txt",
        "sequencer": "00000000000000000000000000015508000000000005101c",
        "storageDiagnostics": {"batchId": "cfb32f79-3006-0010-0095-711faa000000"},
    },
}
CLOUD_EVENT: dict[str, Any] = {
    "id": "caee971c-3ca0-4254-8f99-1395b394588e",
    "source": "mysource",
    "dataversion": "1.0",
    "subject": "mySubject",
    "type": "fooEventType",
    "datacontenttype": "application/json",
    "data": {"prop1": "value1", "prop2": 5},
}
CUSTOM: dict[str, Any] = {"prop1": "my property", "prop2": 5, "myEventType": "fooEventType"}
MAPPED = {
    "id": "8bc07e6f-0885-4729-90e4-7c3f052bd754",
    "eventTime": "2020-08-13T18:11:29.4121391Z",
    "eventType": "myEventType",
    "dataVersion": "1.0",
    "topic": "/subscriptions/00000000000-0000-0000-0000-000000000000000/resourceGroups/rgwithoutpolicy"
    "/providers/Microsoft.EventGrid/topics/myCustomSchemaTopic",
    "subject": "subjectDefault",
}
ADDED = {
    "deadLetterReason": "MaxDeliveryAttemptsExceeded",
    "deliveryAttempts": 1,
    "lastDeliveryOutcome": "NotFound",
    "publishTime": "2020-08-13T17:18:14.0260000Z",
    "lastDeliveryAttemptTime": "2020-08-13T17:18:14.0460000Z",
}


def letter(schema: str) -> Letter:
    return Letter(
        reason="MaxDeliveryAttemptsExceeded",
        attempts=1,
        schema=schema,
        destination_type="WebHook",
        result="NotFound",
        attempted_at=ATTEMPTED_AT,
        backlog=1,
        message_id="00" * 16,
    )


def kept(event: dict[str, Any], schema: str, input_schema: str, **mapped: str) -> list[tuple[str, Any]]:
    """The members of a dead letter, in their order."""
    published = PublishedEvent(input_schema, "/subscriptions/s/topics/t", PUBLISHED_AT, mapped)
    text = text_of(orjson.dumps(event).decode(), published, letter(schema))
    return list(orjson.loads(text).items())


@pytest.mark.parametrize(
    ("failure", "attempts", "destination", "reason"),
    [
        ("expired", 11, "WebHook", "TimeToLiveExceeded"),
        ("expired", 0, "WebHook", "TimeToLiveExceeded"),
        ("server_error 500", 30, "WebHook", "MaxDeliveryAttemptsExceeded"),
        ("timed_out", 30, "WebHook", "MaxDeliveryAttemptsExceeded"),
        ("client_error 400", 1, "WebHook", "UndeliverableDueToClientError"),
        ("client_error 401", 30, "WebHook", "UndeliverableDueToClientError"),
        ("client_error 401", 30, "ServiceBusQueue", "MaxDeliveryAttemptsExceeded"),
        ("missing 404", 1, "StorageQueue", "UndeliverableDueToClientError"),
    ],
)
def test_the_reason_of_a_dead_letter_is_known_from_its_queue(
    failure: str, attempts: int, destination: str, reason: str
) -> None:
    settings = DeliverySettings("", "", destination, {}, EVENT_GRID_SCHEMA, attempts_max=30)
    assert reason_of(failure, attempts, settings) == reason


def test_the_dead_event_of_event_grids_schema() -> None:
    found = kept(STORAGE_EVENT, EVENT_GRID_SCHEMA, EVENT_GRID_SCHEMA)
    assert found == [*STORAGE_EVENT.items(), *ADDED.items()]


def test_members_of_a_dead_letter_are_in_the_documented_order() -> None:
    backwards = dict(reversed(STORAGE_EVENT.items()))
    found = kept(backwards, EVENT_GRID_SCHEMA, EVENT_GRID_SCHEMA)
    assert found == [*STORAGE_EVENT.items(), *ADDED.items()]


def test_the_dead_cloud_event() -> None:
    found = kept(CLOUD_EVENT, CLOUD_EVENT_SCHEMA, CLOUD_EVENT_SCHEMA)
    assert found == [
        *CLOUD_EVENT.items(),
        ("deadletterreason", "MaxDeliveryAttemptsExceeded"),
        ("deliveryattempts", 1),
        ("lastdeliveryoutcome", "NotFound"),
        ("publishtime", "2020-08-13T17:18:14.0260000Z"),
    ]


def test_the_dead_custom_event() -> None:
    found = kept(CUSTOM, CUSTOM_INPUT_SCHEMA, CUSTOM_EVENT_SCHEMA, **MAPPED)
    assert found == [
        ("id", MAPPED["id"]),
        ("eventTime", MAPPED["eventTime"]),
        ("eventType", "myEventType"),
        ("dataVersion", "1.0"),
        ("metadataVersion", "1"),
        ("topic", MAPPED["topic"]),
        ("subject", "subjectDefault"),
        *ADDED.items(),
        ("data", CUSTOM),
    ]


async def test_dead_letters_are_written_five_minutes_after_the_last_attempt(stage: Stage) -> None:
    stage.web.otherwise = answer(400)
    topic = await stage.topic()
    await stage.subscribe(topic, "Watcher-1", dead_letters=True)
    began = stage.clock.now()
    await stage.publish(topic, EVENT, EVENT | {"id": "e-2"})
    await stage.pass_time(5 * MINUTE_MS - 1000)
    assert not stage.blobs.pushed
    assert len(stage.memory.dead) == 2  # in the queue that `redrive dlq` looks into they are at once
    await stage.pass_time(2000)
    ((at, push_request),) = stage.blobs.pushed
    assert at - began == 5 * MINUTE_MS
    assert push_request.endpoint == CONTAINER
    assert {one["id"] for one in orjson.loads(push_request.body)} == {"e-1", "e-2"}
    moment = datetime.fromtimestamp(at / 1000, UTC)
    folder, _, name = push_request.headers["path"].rpartition("/")
    assert folder == f"WATCHER-1/{moment.year}/{moment.month}/{moment.day}/{moment.hour}"
    assert len(name) == len("8bc07e6f-0885-4729-90e4-7c3f052bd754.json")


@pytest.mark.parametrize("hours", [3, 5])
async def test_a_store_that_is_away_for_four_hours_gets_them_no_more(stage: Stage, hours: int) -> None:
    stage.web.otherwise = answer(400)
    stage.blobs.otherwise = BROKEN
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(hours * 60 * MINUTE_MS)
    attempts = len(stage.blobs.pushed)
    last = max(at for at, _ in stage.blobs.pushed)
    assert last - began < 4 * 60 * MINUTE_MS
    stage.blobs.otherwise = answer(201)
    await stage.pass_time(60 * MINUTE_MS)
    assert (len(stage.blobs.pushed) > attempts) is (hours == 3)
    dropped = [one for one in stage.memory.expirations if one.subscription.protocol == "blob"]
    assert len(dropped) == (hours == 5)


async def test_a_container_that_is_not_there_gets_nothing(stage: Stage) -> None:
    stage.web.otherwise = answer(400)
    stage.blobs.otherwise = GONE
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    await stage.publish(topic, EVENT)
    await stage.pass_time(60 * MINUTE_MS)
    assert len(stage.blobs.pushed) == 1


async def test_without_a_place_for_dead_letters_an_event_is_dropped(stage: Stage) -> None:
    stage.web.otherwise = answer(400)
    topic = await stage.topic()
    await stage.subscribe(topic)
    await stage.publish(topic, EVENT)
    await stage.pass_time(60 * MINUTE_MS)
    assert not stage.blobs.pushed
    assert not stage.memory.dead


async def test_a_blob_of_dead_letters_is_an_event_of_its_account(stage: Stage) -> None:
    stage.web.script.extend([answer(400), answer(400)])
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    account = await stage.topic(ACCOUNT)
    await stage.subscribe(account, "letters", endpoint="https://letters.example")
    await stage.publish(topic, EVENT, EVENT)
    await stage.pass_time(6 * MINUTE_MS)
    ((_, blob),) = stage.blobs.pushed
    (told,) = [
        push_request
        for _, push_request in stage.web.pushed
        if push_request.endpoint == "https://letters.example"
    ]
    (event,) = orjson.loads(told.body)
    path = blob.headers["path"]
    assert event["eventType"] == "Microsoft.Storage.BlobCreated"
    assert event["topic"] == ACCOUNT.text
    assert event["subject"] == f"/blobServices/default/containers/dead/blobs/{path}"
    assert list(event["data"]) == [
        "api",
        "clientRequestId",
        "requestId",
        "eTag",
        "contentType",
        "contentLength",
        "blobType",
        "url",
        "sequencer",
        "storageDiagnostics",
    ]
    assert event["data"]["url"] == f"http://redrive.test/_storage/letters/dead/{path}"
    assert event["data"]["eTag"] == "0x1"

"""Event Grid's pages, without a browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from redrive.azure.arm.event_sources import new_topic
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.arm.subscription_documents import engine_subscription
from redrive.azure.arm.subscription_forms import SubscriptionForm
from redrive.azure.wire.arm_id import ArmId
from redrive.console.charts import NOTHING
from redrive.engine.ports import NewDelivery
from redrive.model.circuit import USUAL as PROBATION
from redrive.model.outage import FAILURES
from redrive.model.topic import Subscription
from tests.console.test_schedules import text
from tests.console.world import BUSY, ROOT, Visitor, visiting

GROUP = ArmId("00000000-0000-0000-0000-000000000000", "rg", "Microsoft.EventGrid")
TOPIC = GROUP._replace(parts=("topics", "Orders"))
ACCOUNT = GROUP._replace(provider="Microsoft.Storage", parts=("storageAccounts", "letters"))
ROOM = f"{ROOT}/{GROUP.subscription}/rg"
PAGE = f"{ROOM}/event-grid/topics%3Aorders/billing"


async def subscribed(visitor: Visitor, **given: Any) -> Subscription:
    """An event subscription at a webhook, with a container for its dead letters."""
    engine = visitor.server.core.engine
    topic = await engine.resources.topics.create(new_topic(TOPIC, {"inputSchema": "EventGridSchema"}))
    document = {
        "destination": {
            "endpointType": "WebHook",
            "properties": {"endpointUrl": "https://hook.example/in?code=secret"},
        },
        "deadLetterDestination": {
            "endpointType": "StorageBlob",
            "properties": {"resourceId": ACCOUNT.text, "blobContainerName": "dead"},
        },
        "retryPolicy": {"maxDeliveryAttempts": 5, "eventTimeToLiveInMinutes": 60},
        **given,
    }
    accepted = SubscriptionForm().accept(document, {}, topic, lambda _: None, 0)
    name = f"{TOPIC.text}/providers/Microsoft.EventGrid/eventSubscriptions/Billing"
    return await Subscribers(engine).write(topic, engine_subscription(topic, name, accepted))


async def test_event_subscriptions_are_listed_with_their_states_and_topics() -> None:
    async with visiting() as visitor:
        made = await subscribed(visitor)
        engine = visitor.server.core.engine
        now = engine.clock.now()
        event = NewDelivery(made.queue_id, bytes(16), "{}", b"", now + 60_000, now)
        await engine.parts.store.enqueue([event])
        page = text(await visitor.get(f"{ROOM}/event-grid"))
        assert "Billing Idle orders topic WebHook https://hook.example/in?… 1 0" in page
        assert f"orders topic 1 0 0 0 {NOTHING} EventGridSchema" in page
        assert "secret" not in page
        assert "No event subscriptions" in text(
            await visitor.get(f"{ROOT}/000000000000/us-east-1/event-grid")
        )


async def test_an_event_subscription_shows_its_schedule_its_blobs_and_its_command(tmp_path: Path) -> None:
    hour = tmp_path / "letters/dead/BILLING/2026/1/2"
    for number in (9, 10):
        (hour / str(number)).mkdir(parents=True)
        (hour / str(number) / "a.json").write_text("[]")
    async with visiting(blob_store=str(tmp_path)) as visitor:
        await subscribed(visitor)
        page = text(await visitor.get(PAGE))
        assert "5 attempts, the last 6 min 40 s to 6 min 50 s after publication" in page
        assert "at most 5 attempts, within 1 h after publication" in page
        assert page.index("BILLING/2026/1/2/10/a.json 2 B") < page.index("BILLING/2026/1/2/9/a.json 2 B")
        assert "--max-delivery-attempts 5 --event-ttl 60" in page
        assert "Every event matches" in page
        assert "secret" not in page
        assert (await visitor.get(f"{PAGE}x")).status == 404
        store = f"{ROOM}/event-grid/topics%3Aorders/billing%3Adead-letters"
        assert (await visitor.get(store)).status == 404


async def test_an_endpoint_on_probation_is_shown_with_its_reason_and_lifted() -> None:
    async with visiting() as visitor:
        made = await subscribed(visitor)
        engine = visitor.server.core.engine
        now = engine.clock.now()
        await engine.parts.circuits.note(made, PROBATION, FAILURES["503"], now)
        page = text(await visitor.get(PAGE))
        assert "On probation: Server error 503, 1 in a row" in page
        assert "Resume now" in page
        form = {"topic": made.topic.name, "id": made.id}
        assert (await visitor.post(f"{ROOM}/endpoints", form)).status == 303
        assert "Healthy" in text(await visitor.get(PAGE))


async def test_a_container_elsewhere_is_named_with_its_command() -> None:
    async with visiting(blob_store="s3://bucket/letters") as visitor:
        await subscribed(visitor)
        page = text(await visitor.get(PAGE))
        assert "az storage blob list --account-name letters --container-name dead" in page


async def test_the_workbench_names_the_blobs_that_dead_letters_are_copied_to(tmp_path: Path) -> None:
    hour = tmp_path / "letters/dead/BILLING/2026/1/2/9"
    hour.mkdir(parents=True)
    (hour / "a.json").write_text("[]")
    async with visiting(blob_store=str(tmp_path)) as visitor:
        made = await subscribed(visitor)
        assert made.dead_letter is not None
        page = await visitor.get(f"{ROOM}/dead-letters/{quote(made.dead_letter.name)}")
        assert "Copied to letters/dead/BILLING five minutes after the last attempt" in text(page)
        assert "BILLING/2026/1/2/9/a.json 2 B" in text(page)
        assert b'data-copy="BILLING/2026/1/2/9/a.json"' in page.body
        engine = visitor.server.core.engine
        queue = await engine.resources.queues.get(made.dead_letter)
        assert queue is not None
        now = engine.clock.now()
        letter = NewDelivery(queue.id, bytes(16), "{}", b"", now, now, origin=made.queue_id)
        await engine.parts.store.enqueue([replace(letter, note=BUSY)])
        (one,) = await engine.operations.dead_letters.letters(queue, 0, 10)
        link = f"{ROOM}/dead-letters/{quote(queue.name.name)}/{one.delivery.seq}"
        assert "Copied to letters/dead/BILLING" in text(await visitor.get(link))


async def test_the_workbench_names_a_container_elsewhere_with_its_command() -> None:
    async with visiting(blob_store="s3://bucket/letters") as visitor:
        made = await subscribed(visitor)
        assert made.dead_letter is not None
        page = text(await visitor.get(f"{ROOM}/dead-letters/{quote(made.dead_letter.name)}"))
        assert "az storage blob list --account-name letters --container-name dead --prefix BILLING/" in page


async def test_filters_and_headers_are_escaped_and_hidden_values_stay_hidden() -> None:
    evil = "<x-evil"
    header = {"name": "X-Key", "type": "Static", "properties": {"value": "MARKED", "isSecret": True}}
    async with visiting(console="read-only") as visitor:
        destination = {
            "endpointType": "WebHook",
            "properties": {"endpointUrl": "https://hook.example/in", "deliveryAttributeMappings": [header]},
        }
        await subscribed(visitor, destination=destination, filter={"subjectBeginsWith": evil})
        for path in (PAGE, f"{ROOM}/event-grid"):
            response = await visitor.get(path)
            assert response.status == 200
            assert b"<x-evil" not in response.body
            assert b"MARKED" not in response.body
            assert b'method="post"' not in response.body
        assert "X-Key" in text(await visitor.get(PAGE))


async def test_an_unchanged_list_is_not_sent_again() -> None:
    async with visiting() as visitor:
        await subscribed(visitor)
        first = await visitor.get(f"{ROOM}/event-grid", **{"x-redrive-part": "live"})
        headers = {"x-redrive-part": "live", "if-none-match": first.headers["ETag"]}
        assert (await visitor.get(f"{ROOM}/event-grid", **headers)).status == 304

"""The health check: what is open, what is wrong, and what would be lost or forgotten."""

from dataclasses import replace
from pathlib import Path

from redrive.app import assembled
from redrive.model.queue import DAY_MS
from redrive.settings import Settings
from tests.console.test_schedules import text
from tests.console.world import ROOT, URL, Visitor, make_world, visiting

HEALTH = f"{ROOT}/settings/health"


async def test_subscriptions_that_lose_and_queues_that_forget_are_named_with_a_way_to_mend_them() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        resources = world.engine.resources
        assert "Subscriptions without dead-letter queue Messages 0 of 1" in text(await visitor.get(HEALTH))
        losing = replace(world.subscription, id="7a2d", endpoint="https://crm.example.com/", dead_letter=None)
        await resources.subscriptions.create(losing)
        await resources.queues.update(world.dead.name, lambda queue: replace(queue, retention_ms=DAY_MS))
        answer = await visitor.get(f"{HEALTH}?again")
        page = text(answer)
        assert (
            "https://crm.example.com/: deliveries whose attempts all fail are lost; set a redrive policy"
            in page
        )
        assert "orders-dead: dead letters expire before anybody looks; raise their retention" in page
        assert b"endpoints?state=all" in answer.body


async def test_the_check_tells_what_the_doctor_tells_of_settings_and_store(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path / 'redrive.db'}")
    async with assembled(settings, URL) as server:
        await server.open()
        page = text(await Visitor(server).get(HEALTH))
        assert "Signatures Exposure" in page
        assert "auth = required" in page
        assert "Encryption Exposure Nothing open" in page
        assert "redrive.db, schema at step" in page


async def test_settings_that_were_changed_come_first_and_are_found_by_what_they_do() -> None:
    async with visiting(environment="staging") as visitor:
        page = text(await visitor.get(f"{ROOT}/settings"))
        assert page.index("environment a name that the console shows") < page.index("Defaults")
        found = text(await visitor.get(f"{ROOT}/settings?filter=relay"))
        assert "smtp_host mail relay; without one, mail cannot be delivered empty" in found
        assert "sms_part_price" not in found

"""Deeds are said once, by the next page; no link puts a sentence into a page."""

import re
from urllib.parse import quote

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.circuit import USUAL
from redrive.model.queue import DAY_MS
from tests.console.world import ROOM, ROOT, make_world, visiting


async def test_a_link_puts_no_sentence_into_a_page() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        page = await visitor.get(f"{ROOM}/dead-letters/orders-dead?told=Call+this+number")
        assert b"Call this number" not in page.body


async def test_undo_brings_back_letters_that_were_set_aside() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        (seq,) = await world.die("order")
        dead = f"{ROOM}/dead-letters/orders-dead"
        moved = await visitor.post(f"{dead}/set-aside", {"id": seq})
        assert moved.headers["Location"] == dead
        page = (await visitor.get(dead)).body.decode()
        assert "1 of 1 set aside, where they are kept for 14 days" in page
        assert "1 of 1 set aside" not in (await visitor.get(dead)).body.decode()
        action, form = undo_of(page)
        undone = await visitor.post(action, form)
        assert undone.headers["Location"] == dead
        assert "1 of 1 brought back" in (await visitor.get(dead)).body.decode()
        (letter,) = await world.engine.operations.dead_letters.letters(world.dead, 0, 10)
        assert letter.delivery.body == "order"


async def test_undo_puts_a_resumed_receiver_on_hold_again() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        engine, subscription = world.engine, world.subscription
        attempt = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 404, "gone", 5)
        await engine.parts.circuits.note(subscription, USUAL, attempt, engine.clock.now())
        before = await engine.operations.circuit(subscription)
        assert before is not None
        fields = {"topic": subscription.topic.name, "id": subscription.id}
        await visitor.post(f"{ROOM}/endpoints", fields)
        assert await engine.operations.circuit(subscription) is None
        page = (await visitor.get(f"{ROOM}/endpoints?state=all")).body.decode()
        assert "is resumed: waiting deliveries are tried now" in page
        action, form = undo_of(page)
        await visitor.post(action, form)
        assert await engine.operations.circuit(subscription) == before
        assert "is on hold again until" in (await visitor.get(f"{ROOM}/endpoints")).body.decode()
        forever = await visitor.post(action, {**form, "until": before.until + 2 * DAY_MS})
        assert forever.status == 400
        await visitor.post(action, {**form, "until": 1})
        assert "would be tried again by now anyway" in (await visitor.get(f"{ROOM}/endpoints")).body.decode()


def undo_of(page: str) -> tuple[str, dict[str, str]]:
    """The address and the fields of the form that takes back what was just done."""
    ((action, fields),) = re.findall(
        r'<form method="post" action="([^"]+)">((?:<input type="hidden"[^>]+>)+)<button type="submit">Undo',
        page,
    )
    return action, dict(re.findall(r'name="([^"]+)" value="([^"]*)"', fields))


async def test_a_cookie_offers_no_other_form() -> None:
    async with visiting() as visitor:
        for undo in ("/settings/keys", "//evil.example", "/nowhere"):
            visitor.cookie = f"redrive-deed={quote('Done')}&+undo={quote(undo)}&id=1"
            page = (await visitor.get(f"{ROOT}/")).body.decode()
            assert "<span>Done</span></div>" in page, undo

"""Deeds are said once, by the next page; no link puts a sentence into a page."""

import re
from urllib.parse import quote

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
        ((action, fields),) = re.findall(
            r'<form method="post" action="([^"]+)">((?:<input type="hidden"[^>]+>)+)<button type="submit">Undo',
            page,
        )
        form = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', fields))
        undone = await visitor.post(action, form)
        assert undone.headers["Location"] == dead
        assert "1 of 1 brought back" in (await visitor.get(dead)).body.decode()
        (letter,) = await world.engine.operations.dead_letters.letters(world.dead, 0, 10)
        assert letter.delivery.body == "order"


async def test_a_cookie_offers_no_other_form() -> None:
    async with visiting() as visitor:
        for undo in ("/settings/keys", "//evil.example", "/nowhere"):
            visitor.cookie = f"redrive-deed={quote('Done')}&+undo={quote(undo)}&id=1"
            page = (await visitor.get(f"{ROOT}/")).body.decode()
            assert "<span>Done</span></div>" in page, undo

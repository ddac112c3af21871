"""Rehearsal: copies go once to the address that was typed, their answers are shown, and every message stays."""

import re
from collections.abc import Mapping

import pytest

from redrive.endpoints.http import Fetched
from tests.console.test_schedules import text
from tests.console.world import ROOM, Visitor, World, make_world, visiting

DEAD = f"{ROOM}/dead-letters/orders-dead"
URL = "https://staging.example.com/orders"


class Staging:
    """An endpoint that refuses what names a wrong currency."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.seqs: list[int] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int, bytes_max: int
    ) -> Fetched | str:
        assert (method, url, headers["x-redrive-rehearsal"]) == ("POST", URL, "1")
        self.bodies.append(body.decode())
        if b"later" in body:
            return "connection refused"
        return Fetched(
            503 if b"EURO" in body else 200, {}, b"no such currency" if b"EURO" in body else b"taken"
        )


async def rehearsing(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> tuple[World, Staging]:
    world, staging = await make_world(visitor), Staging()
    monkeypatch.setattr(visitor.server.core.web, "fetch", staging.fetch)
    staging.seqs = await world.die('{"currency": "EUR"}', '{"currency": "EURO"}', '{"currency": "later"}')
    return world, staging


async def test_copies_are_answered_and_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with visiting() as visitor:
        world, staging = await rehearsing(visitor, monkeypatch)
        answer = await visitor.post(f"{DEAD}/rehearse", {"what": "all", "cause": "all", "url": URL})
        page = text(answer)
        assert "1 of 3 accepted copies to https://staging.example.com/orders" in page
        assert re.search(r"\d+ 503 \d+ ms no such currency", page)
        assert re.search(r"\d+ No answer \d+ ms connection refused", page)
        assert len(staging.bodies) == 3
        assert (await world.engine.messages.count(world.dead)).available == 3
        audit = text(await visitor.get(f"{ROOM}/audit"))
        assert "rehearse orders-dead 3 copies to staging.example.com: 1 " in audit


@pytest.mark.parametrize(
    ("form", "bodies"),
    [
        ({"what": "all", "cause": "all", "copies": 1}, ['{"currency": "EUR"}']),
        ({"what": "all", "cause": "all", "q": "body.currency:EURO"}, ['{"currency": "EURO"}']),
        ({"what": "picked"}, ['{"currency": "later"}']),
    ],
)
async def test_copies_are_of_what_the_plan_is_for(
    monkeypatch: pytest.MonkeyPatch, form: dict[str, object], bodies: list[str]
) -> None:
    async with visiting() as visitor:
        _, staging = await rehearsing(visitor, monkeypatch)
        chosen = staging.seqs[2:] if form["what"] == "picked" else []
        assert (await visitor.post(f"{DEAD}/rehearse", {**form, "id": chosen, "url": URL})).status == 200
        assert staging.bodies == bodies


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"url": "ftp://staging.example.com"}, "An address begins with https://"),
        ({"url": "https://[staging.example.com"}, "An address begins with https://"),
        ({"url": URL, "copies": 101}, "A rehearsal has 1 to 100 copies."),
    ],
)
async def test_a_wrong_address_and_too_many_copies_are_refused_on_the_plan(
    monkeypatch: pytest.MonkeyPatch, form: dict[str, object], words: str
) -> None:
    async with visiting() as visitor:
        _, staging = await rehearsing(visitor, monkeypatch)
        answer = await visitor.post(f"{DEAD}/rehearse", {"what": "all", "cause": "all", **form})
        assert answer.status == 400
        assert words in text(answer)
        assert staging.bodies == []


async def test_hidden_bodies_are_not_sent_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async with visiting(console_bodies="hidden") as visitor:
        _, staging = await rehearsing(visitor, monkeypatch)
        assert b"Rehearse first" not in (await visitor.get(f"{DEAD}/plan?what=all&cause=all")).body
        assert (await visitor.post(f"{DEAD}/rehearse", {"what": "all", "url": URL})).status == 400
        assert staging.bodies == []


async def test_an_address_that_endpoints_may_not_have_is_not_called() -> None:
    async with visiting(forbid_private_endpoints=True) as visitor:
        world = await make_world(visitor)
        await world.die("order 1")
        form = {"what": "all", "cause": "all", "url": "http://127.0.0.1:9/"}
        assert "No answer" in text(await visitor.post(f"{DEAD}/rehearse", form))


async def test_the_rehearsal_is_the_first_choice_of_a_plan() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        (one,) = await world.die("order 1")
        for chosen in ("what=all&cause=all", f"what=picked&id={one}"):
            page = (await visitor.get(f"{DEAD}/plan?{chosen}")).body.decode()
            assert page.index("Rehearse first") < page.index(">Destination<")
            assert page.index("Rehearse first") < (page + ">Pace<").index(">Pace<")
            assert len(re.findall('form="rehearse"', page)) == 3

"""Navigation on pages that belong to no account and region."""

import html
import re

import pytest

from redrive.console.navigation import ROOMS
from redrive.model.http import Response
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Topic
from tests.console.services import make_key
from tests.console.world import ROOT, SCOPE, Visitor, make_world, visiting

AZURE = ResourceName("00000000-0000-0000-0000-000000000000", "rg", "t")  # before the accounts, by its digits
ELSEWHERE = ResourceName("111111111111", "eu-west-1", "q")
MINE = "999999999999"


def rooms(page: Response) -> dict[str, str]:
    """The links of the navigation, by their labels."""
    text = page.body.decode()
    inside = text.partition("<nav")[2].partition("</nav>")[0]
    found = re.findall(r'<a href="([^"]+)"[^>]*><svg.*?</svg>([^<]+)<', inside)
    return {label: html.unescape(link) for link, label in found}


async def make_places(visitor: Visitor) -> None:
    resources = visitor.server.core.engine.resources
    await make_world(visitor)
    await resources.topics.create(Topic(0, AZURE, "eventgrid"))
    await resources.queues.create(Queue(0, ELSEWHERE))


@pytest.mark.parametrize("path", ["/", "/keys", "/settings", "/settings/keys", "/schedules", "/login"])
async def test_pages_of_no_place_lead_to_the_rooms_of_the_first_account(path: str) -> None:
    async with visiting() as visitor:
        await make_places(visitor)
        found = rooms(await visitor.get(f"{ROOT}{path}"))
        assert len(found) == len(ROOMS)
        assert found["Queues"] == f"{ROOT}/{SCOPE.account}/{SCOPE.region}/queues"
        assert found["Settings"] == f"{ROOT}/settings"


async def test_the_place_that_somebody_comes_from_is_kept_on_pages_of_no_place() -> None:
    async with visiting() as visitor:
        await make_places(visitor)
        there = f"{ROOT}/{ELSEWHERE.account}/{ELSEWHERE.region}"
        page = await visitor.get(f"{there}/queues")
        for label in ("Settings", "Overview"):
            page = await visitor.get(rooms(page)[label])
            assert page.status == 200
            assert rooms(page)["Queues"] == f"{there}/queues"
        settings = await visitor.get(rooms(page)["Settings"])
        (keys,) = re.findall(r'href="([^"]+/settings/keys[^"]*)"', settings.body.decode())
        made = await visitor.post(html.unescape(keys), {"account": MINE})
        assert rooms(made)["Queues"] == f"{there}/queues"
        refused = await visitor.post(html.unescape(keys), {"account": "none"})
        assert (refused.status, rooms(refused)["Queues"]) == (400, f"{there}/queues")


async def test_navigation_leads_only_to_what_the_visitor_sees() -> None:
    async with visiting(auth="required") as visitor:
        await make_places(visitor)
        key = await make_key(visitor.server.core.keyring, MINE)
        before = await visitor.get(f"{ROOT}/login?at=111111111111/eu-west-1")
        assert rooms(before) == {}
        assert b"us-east-1" not in before.body
        await visitor.post(f"{ROOT}/login", {"key": key.access_key_id, "secret": key.secret})
        for path in (
            "/settings",
            "/settings?at=111111111111/eu-west-1",
            "/settings?at=x",
            "/settings?at=a/b/c",
        ):
            assert set(rooms(await visitor.get(f"{ROOT}{path}"))) == {room.label for room in ROOMS}
        await visitor.server.core.engine.resources.queues.create(Queue(0, ELSEWHERE._replace(account=MINE)))
        found = rooms(await visitor.get(f"{ROOT}/settings?again"))
        assert found["Queues"] == f"{ROOT}/{MINE}/eu-west-1/queues"

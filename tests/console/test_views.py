"""Saved views: pages with their choices, kept by name for everybody who sees the account."""

import re
from html import unescape
from urllib.parse import quote, urlencode

from redrive.console.views import VIEWS_MAX
from tests.console.services import Services, make_function, make_services, service_pages
from tests.console.world import ROOM, ROOT, Visitor, make_world, pages_of, visiting

VIEWS = f"{ROOM}/views"
SEARCH = "/000000000000/us-east-1/dead-letters/orders-dead?cause=all&q=body.order%3A7001"


async def page(visitor: Visitor, path: str) -> str:
    return (await visitor.get(path)).body.decode()


async def test_a_page_is_saved_with_what_was_chosen_on_it_found_again_and_removed() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die('{"order": 7001}')
        shown = await page(visitor, f"{ROOT}{SEARCH}")
        (link,) = re.findall(r'<p class="foot"><a href="([^"]+)"><svg.*?</svg> Save this view', shown)
        form = await page(visitor, link.replace("&amp;", "&"))
        assert f'value="{SEARCH.replace("&", "&amp;")}"' in form
        saved = await visitor.post(VIEWS, {"to": SEARCH, "name": "Order 7001"})
        assert saved.status == 303
        listed = await page(visitor, f"{VIEWS}?")
        assert f'href="{ROOT}{SEARCH.replace("&", "&amp;")}">Order 7001</a>' in listed
        other = SEARCH.replace("7001", "7002")
        await visitor.post(VIEWS, {"to": other, "name": "Order 7001"})
        assert (await page(visitor, f"{VIEWS}?again")).count("Order 7001</a>") == 1
        await visitor.post(VIEWS, {"do": "remove", "name": "Order 7001"})
        assert "No views are saved here" in await page(visitor, f"{VIEWS}?removed")


async def test_a_page_leads_to_the_views_of_it_that_are_saved() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die('{"order": 7001}')
        await visitor.post(VIEWS, {"to": SEARCH, "name": "Order 7001"})
        await visitor.post(
            VIEWS, {"to": f"/{ROOM.removeprefix(f'{ROOT}/')}/queues?prefix=o", "name": "Orders"}
        )
        saved = f'<a href="{ROOT}{SEARCH.replace("&", "&amp;")}"'
        workbench = await page(visitor, f"{ROOM}/dead-letters/orders-dead")
        assert f"{saved}>Order 7001</a></p>" in workbench
        assert f'{saved} aria-current="page">Order 7001</a></p>' in await page(visitor, f"{ROOT}{SEARCH}")
        queues = await page(visitor, f"{ROOM}/queues")
        assert ">Orders</a></p>" in queues
        assert "Order 7001" not in queues


async def test_an_event_for_a_function_is_saved_under_a_name() -> None:
    event = '{"city": "Oslo & Bergen"}'
    async with visiting(functions="on") as visitor:
        await make_function(Services(visitor))
        test = f"{ROOM}/functions/bill/invoke"
        asked = await visitor.get(f"{test}?{urlencode({'payload': event, 'kind': 'wait', 'save': 'yes'})}")
        (to,) = re.findall(r'name="to" value="([^"]+)"', await page(visitor, asked.headers["Location"]))
        await visitor.post(VIEWS, {"to": unescape(to), "name": "two cities"})
        (link,) = re.findall(r'<a href="([^"]+)">two cities</a></p>', await page(visitor, test))
        (payload,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", await page(visitor, unescape(link)))
        assert unescape(payload) == event
        refused = await visitor.post(VIEWS, {"to": unescape(to) + "x" * 2000, "name": "too long"})
        assert refused.status == 400


async def test_a_page_of_another_account_or_without_a_name_is_not_saved() -> None:
    async with visiting() as visitor:
        for to, name in (
            ("/111111111111/us-east-1/queues", "another account's"),
            ("https://evil.example/", "elsewhere"),
            (f"{SEARCH}\n", "of two lines"),
            (SEARCH + "x" * 2000, "too long"),
            (SEARCH, ""),
            (SEARCH, "n" * 81),
        ):
            assert (await visitor.post(VIEWS, {"to": to, "name": name})).status == 400, name
        for number in range(VIEWS_MAX):
            await visitor.post(VIEWS, {"to": SEARCH, "name": f"view {number}"})
        assert "which is the most" in (await visitor.post(VIEWS, {"to": SEARCH, "name": "x"})).body.decode()
        assert (await visitor.post(VIEWS, {"to": SEARCH, "name": "view 7"})).status == 303


async def test_a_read_only_console_shows_views_and_saves_none() -> None:
    async with visiting(console="read-only") as visitor:
        await make_world(visitor)
        assert "Save this view…</a>" not in await page(visitor, f"{ROOT}{SEARCH}")
        assert 'method="post"' not in await page(visitor, f"{VIEWS}?to={SEARCH}")


async def test_lists_and_searches_can_be_saved_and_no_form_plan_or_deletion() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        world = await make_world(visitor)
        seqs = await world.die("order 1")
        services = await make_services(visitor)
        paths = [*pages_of(world, seqs[0]), *service_pages(services), VIEWS]
        savable = {path for path in paths if "Save this view…</a>" in await page(visitor, path)}
        scopes = {path.partition("?")[0].removeprefix(ROOM) for path in savable}
        lists = "dead-letters redrives queues messages endpoints topics event-grid tail metrics schedules functions logs"
        assert scopes == {
            *(
                f"/{name}"
                for name in (*lists.split(), "alarms", "stacks", "kms", "apis", "event-sources", "audit")
            ),
            "/dead-letters/orders-dead",
            "/queues/orders/messages",
            "/topics/Rentals",
            "/logs/group",
            "/logs/streams",
        }


async def test_a_starred_view_is_in_the_navigation_and_keeps_its_page_under_another_name() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        form = await page(visitor, f"{VIEWS}?to={quote(SEARCH)}")
        assert 'value="Dead letters · orders-dead · cause all · body.order:7001"' in form
        await visitor.post(VIEWS, {"to": SEARCH, "name": "Order 7001", "star": "yes"})
        shown = await page(visitor, f"{ROOM}/queues")
        assert f'href="{ROOT}{SEARCH.replace("&", "&amp;")}"' in shown
        assert "Dead letters · orders-dead" in (listed := await page(visitor, VIEWS))
        assert "body.order:7001</code>" in listed
        await visitor.post(VIEWS, {"former": "Order 7001", "name": "The lost order"})
        renamed = await page(visitor, f"{ROOM}/queues?again")
        assert "The lost order</span>" in renamed
        assert "Order 7001</span>" not in renamed
        await visitor.post(VIEWS, {"do": "unstar", "name": "The lost order"})
        assert "The lost order</span>" not in await page(visitor, f"{ROOM}/queues?unstarred")
        assert "The lost order" in await page(visitor, f"{VIEWS}?still")

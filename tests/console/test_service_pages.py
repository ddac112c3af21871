"""Rules of all pages of services: escaping, read-only, hidden bodies, few calls of the store, no way out."""

import re

from redrive.console.safety import POLICY
from tests.console.services import make_services, service_pages
from tests.console.store_calls import counting
from tests.console.test_costs import CALLS_MAX, ROWS_MAX
from tests.console.world import visiting

#: Pages that are a form, whose button is disabled where nothing may be done.
FORMS = ("/invoke", "/alarms/state", "/alarms/new", "/delete", "/settings/keys/")
EVIL = "<x-evil \"'&"
#: The simulated clock's bar, a form without a button here.
_CLOCK = re.compile(r'<form class="clock".*?</form>', re.DOTALL)
_LINK = re.compile(r'(?:href|src|action|formaction|data-fragment)="([^"]+)"')


async def test_every_page_is_shown_and_strangers_texts_are_escaped() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor, EVIL)
        for path in service_pages(services):
            response = await visitor.get(path)
            page = response.body.decode()
            assert response.status == 200, (path, page)
            assert response.headers["Content-Security-Policy"] == POLICY
            assert page.count("<h1>") == 1, path
            assert "style=" not in page, path
            assert "<x-evil" not in page, path


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor)
        for path in service_pages(services):
            partial = {"x-redrive-part": "live"}
            first = await visitor.get(path, **partial)
            again = await visitor.get(path, **partial, **{"if-none-match": first.headers["ETag"]})
            assert (again.status, again.body) == (304, b""), path


async def test_a_read_only_console_shows_no_button_that_acts() -> None:
    async with visiting(functions="on", clock="simulated", console="read-only") as visitor:
        services = await make_services(visitor)
        for path in service_pages(services):
            page = _CLOCK.sub("", (await visitor.get(path)).body.decode())
            if not any(form in path for form in FORMS):
                assert 'method="post"' not in page, path


async def test_hidden_bodies_hide_logs_and_variables_too() -> None:
    async with visiting(functions="on", clock="simulated", console_bodies="hidden") as visitor:
        services = await make_services(visitor)
        for path in service_pages(services):
            page = (await visitor.get(path)).body
            assert b"MARKED" not in page, path
            assert b"VARIABLE" not in page, path


async def test_no_link_leaves_the_prefix_of_a_proxy() -> None:
    public = {"public_url": "https://ops.example.com/redrive", "allow_hosts": "ops.example.com"}
    async with visiting(functions="on", clock="simulated", **public) as visitor:
        services = await make_services(visitor)
        for path in service_pages(services):
            page = (await visitor.get(path, host="ops.example.com")).body.decode()
            for link in _LINK.findall(page):
                assert link.startswith(("/redrive/_redrive/console/", "#main")), (path, link)


async def test_a_page_asks_the_store_six_times_at_most() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor)
        for path in service_pages(services):
            await visitor.get(path)
        with counting() as store:
            for path in service_pages(services):
                store.clear()
                await visitor.get(f"{path}{'&' if '?' in path else '?'}again")  # past the memo of a second
                assert store.calls.total() <= CALLS_MAX, (path, store.calls)
                assert store.rows <= ROWS_MAX, (path, store.rows)

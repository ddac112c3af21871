"""Audit: what forms and control routes change is kept with who did it, and a gap in it shows."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape

import pytest

from redrive.model.http import Request, Response
from redrive.model.log import LOG_GROUP, LogGroup
from redrive.telemetry.audit import KEPT_DAYS, AuditEntry, gaps
from tests.console.services import Services, make_function
from tests.console.test_schedules import ID, text
from tests.console.world import ROOM, ROOT, SCOPE, TRIED, URL, Visitor, World, make_world, visiting

AUDIT = f"{ROOM}/audit"


async def control(visitor: Visitor, path: str, document: dict[str, object]) -> int:
    headers = {"host": URL.partition("//")[2], "content-type": "application/json"}
    body = json.dumps(document).encode()
    answer = visitor.server.router.answer(Request("POST", f"/_redrive/{path}", "", headers, body))
    response = answer if isinstance(answer, Response) else await answer
    return response.status


async def deeds(visitor: Visitor) -> World:
    """Let two dead letters be set aside, one by the console and one by a control route."""
    world = await make_world(visitor)
    first, second = await world.die("SECRET 1", "SECRET 2")
    form = {"id": first, "cause": "all"}
    assert (await visitor.post(f"{ROOM}/dead-letters/orders-dead/set-aside", form)).status == 303
    wish = {"queue": "orders-dead", "ids": [second]}
    assert await control(visitor, "dead-letters-set-aside", wish) == 200
    return world


async def test_deeds_of_the_console_and_of_control_routes_are_kept_and_no_body() -> None:
    async with visiting() as visitor:
        await deeds(visitor)
        page = text(await visitor.get(AUDIT))
        assert "root set-aside orders-dead ids 1, moved 1 control" in page
        assert (
            "anybody set-aside orders-dead 1 of 1 set aside, where they are kept for 14 days console" in page
        )
        assert "No gap among 2 entries" in page
        assert "SECRET" not in page
        store = visitor.server.core.store
        (group,) = [LogGroup.from_document(each.document) for each in await store.find(LOG_GROUP, "")]
        assert group.retention_days == KEPT_DAYS == 400
        services = Services(visitor)
        assert (await services.call("logs", "DescribeLogGroups"))["logGroups"] == []


async def test_a_refused_wish_is_no_deed() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        assert await control(visitor, "dead-letters-set-aside", {"queue": "absent", "ids": [1]}) == 400
        assert (await visitor.post(f"{ROOM}/queues/orders/send", {"body": ""})).status == 400
        assert "No changes yet by the console" in text(await visitor.get(AUDIT))


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("by:root", ["control"]),
        ("way:console", ["console"]),
        ("action:set-aside on:orders", ["control", "console"]),
        ("-by:root", ["console"]),
        ("since:1d", ["control", "console"]),
        ("until:2020-01-01", []),
        ("nobody", []),
    ],
)
async def test_terms_find_deeds(search: str, found: list[str]) -> None:
    async with visiting() as visitor:
        await deeds(visitor)
        lines = (await visitor.get(f"{AUDIT}/download?q={search.replace(' ', '+')}")).body.splitlines()
        assert [json.loads(line)["by"] for line in lines] == found


async def test_a_term_that_is_not_known_is_refused_at_the_field() -> None:
    async with visiting() as visitor:
        answer = await visitor.get(f"{AUDIT}?q=bogus:1")
        assert answer.status == 422
        assert "There is no term “bogus”" in text(answer)
        download = await visitor.get(f"{AUDIT}/download?q=bogus:1")
        assert download.status == 400
        assert "There is no term “bogus”" in text(download)
        live = await visitor.get(f"{AUDIT}?q=by:", **{"x-redrive-part": "live"})
        assert live.status == 200  # somebody is typing
        assert "by: needs a value" in text(live)


async def test_an_entry_that_was_removed_leaves_a_gap() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        (one,) = await world.die("order 1")
        time = visitor.server.time
        assert time is not None
        for _ in range(3):
            assert (
                await control(visitor, "dead-letters-set-aside", {"queue": "orders-dead", "ids": [one]})
                == 200
            )
            await time.advance(60_000)
        assert "No gap among 3 entries" in text(await visitor.get(AUDIT))
        newest, middle, oldest = await visitor.server.core.audit.entries(SCOPE, 10)
        assert gaps([newest, middle, oldest]) == set()
        assert gaps([newest, oldest]) == {newest.position}


async def test_a_switch_is_undone_from_its_row() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        await make_function(services)
        link = f"{ROOM}/event-sources/{services.mappings[0]}"
        await visitor.post(link, {"do": "enable"})
        page = (await visitor.get(AUDIT)).body.decode()
        assert f'action="{link}"' in page
        assert '<input type="hidden" name="do" value="disable">' in page


async def undo_newest(visitor: Visitor) -> None:
    """Send the form that the newest row with one offers, as its button does."""
    page = (await visitor.get(AUDIT)).body.decode()
    path, fields = re.findall(
        r'<form method="post" action="([^"]+)">((?:<input type="hidden"[^>]+>)+)', page
    )[0]
    form = {name: unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', fields)}
    assert (await visitor.post(path, form)).status == 303


async def test_a_policy_is_put_back_from_its_row() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        subscription = replace(world.subscription, id=ID, endpoint="https://orders.example.com/")
        await world.engine.resources.subscriptions.create(subscription)
        form = TRIED | {"topic": "Rentals", "subscription": ID}
        await visitor.post(f"{ROOM}/schedules", form)
        assert b">Undo</button>" not in (await visitor.get(AUDIT)).body  # there was no policy
        await visitor.post(f"{ROOM}/schedules", form | {"numRetries": "7"})
        assert b"numRetries=7" in (await visitor.get(f"{ROOM}/topics/Rentals/{ID}?changed")).body
        await undo_newest(visitor)
        assert b"numRetries=10" in (await visitor.get(f"{ROOM}/topics/Rentals/{ID}?undone")).body


@pytest.mark.parametrize(
    ("do", "state"), [("disable", "Enabled"), ("rotate", "no longer rotated"), ("delete", "Disabled")]
)
async def test_an_encryption_key_is_put_back_from_its_row(do: str, state: str) -> None:
    async with visiting() as visitor:
        key = (await Services(visitor).call("kms", "CreateKey"))["KeyMetadata"]["KeyId"]
        path = f"{ROOM}/kms/{key}"
        if do == "delete":
            await visitor.post(f"{path}/delete", {"typed": key, "days": "7"})
        else:
            await visitor.post(path, {"do": do})
        assert state not in text(await visitor.get(f"{path}?{do}"))
        await undo_newest(visitor)
        assert state in text(await visitor.get(f"{path}?undone"))


async def test_an_access_key_is_enabled_again_from_its_row_and_its_deletion_is_final() -> None:
    async with visiting() as visitor:
        keys = f"{ROOT}/settings/keys"
        made = (await visitor.post(keys, {"account": SCOPE.account})).body.decode()
        (key_id,) = re.findall(r"AWS_ACCESS_KEY_ID=(\w+)", made)
        keyring = visitor.server.core.keyring
        await visitor.post(f"{keys}/{key_id}", {"do": "disable"})
        assert await keyring.find(key_id) is None
        await undo_newest(visitor)
        assert await keyring.find(key_id) is not None
        await visitor.post(f"{keys}/{key_id}", {"do": "delete"})
        await visitor.get(AUDIT)  # says what was just done, once
        newest, *_ = re.findall(r"<tr data-row.*?</tr>", (await visitor.get(AUDIT)).body.decode(), re.DOTALL)
        assert "is deleted" in newest
        assert "<form" not in newest


async def test_the_audit_is_exported_as_lines_and_as_a_table() -> None:
    async with visiting() as visitor:
        await deeds(visitor)
        lines = (await visitor.get(f"{AUDIT}/download?format=jsonl")).body.splitlines()
        answer = await visitor.get(f"{AUDIT}/download?format=csv&q=by:root")
        assert "audit.csv" in answer.headers["Content-Disposition"]
        (row,) = csv.DictReader(io.StringIO(answer.body.decode()))
        assert (row["action"], row["on"], row["by"]) == ("set-aside", "orders-dead", "control")
        assert row["at"].endswith("Z")
        assert row["digest"] in {json.loads(line)["digest"] for line in lines}
        assert (await visitor.get(f"{AUDIT}/download?format=xml")).status == 400


async def test_a_policy_is_kept_as_it_was_and_as_it_is() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        subscription = replace(world.subscription, id=ID, endpoint="https://orders.example.com/")
        await world.engine.resources.subscriptions.create(subscription)
        form = TRIED | {"topic": "Rentals", "subscription": ID}
        assert (await visitor.post(f"{ROOM}/schedules", form)).status == 303
        page = text(await visitor.get(AUDIT))
        assert f"change-policy Rentals/{ID}" in page
        assert '+ "numRetries": 10' in page


@pytest.mark.parametrize("page", ["queues/orders-dead", "topics/Rentals", "topics/Rentals/6f1c"])
async def test_a_page_of_a_thing_leads_to_what_was_done_to_it(page: str) -> None:
    async with visiting() as visitor:
        await deeds(visitor)
        links = re.findall(
            r'href="([^"]+/audit\?q=[^"]+)"', (await visitor.get(f"{ROOM}/{page}")).body.decode()
        )
        (link,) = set(links)
        lines = text(await visitor.get(link.replace("&amp;", "&")))
        assert ("1 of 1 set aside" in lines) is (page == "queues/orders-dead")


@pytest.mark.parametrize("room", ["audit", "logs", "queues", "topics", "topics/owed/publish"])
async def test_places_that_only_the_server_names_have_no_pages(room: str) -> None:
    """Else a visitor read the trail by the pages of logs, and published what services take for their own calls."""
    async with visiting() as visitor:
        await deeds(visitor)
        path = f"{ROOM}%3Aaudit/{room}"
        assert (await visitor.get(path)).status == 404
        assert (await visitor.post(path, {"message": "{}"})).status in (404, 405)


async def test_a_name_in_a_form_forges_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with visiting() as visitor:
        entry = AuditEntry(0, "root", "change-views", "a\n2026-11-23 INFO forged", "saved", "console", "::1")
        await visitor.server.core.audit.record(SCOPE, entry)
    (line,) = [each for each in caplog.messages if each.startswith("audit.did")]
    assert line == r"audit.did action=change-views on='a\n2026-11-23 INFO forged' by=root what='saved'"

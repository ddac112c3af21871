"""Pages over the router, without a browser."""

import re
from collections import defaultdict
from dataclasses import replace
from urllib.parse import unquote

import pytest

from redrive.console.routes import ROUTES
from redrive.console.safety import POLICY
from redrive.engine.ports import NewDelivery
from redrive.model.delivery import Outcome
from redrive.model.http import Response
from redrive.model.search import published_id
from redrive.model.topic import Message
from tests.console.test_schedules import text as words
from tests.console.world import BUSY, ROOM, ROOT, SCOPE, Visitor, World, make_world, pages_of, visiting

#: A time of day, and what stands after it: its zone, or more of it.
_TIME_OF_DAY = re.compile(r">[^<]*?\b\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?![:.\dZ])[^<]*")
_LINK = re.compile(r'(?:href|src|action|formaction|data-fragment)="([^"]+)"')


def text(response: Response) -> str:
    return response.body.decode()


async def filled(visitor: Visitor, *bodies: str) -> tuple[World, list[int]]:
    world = await make_world(visitor)
    return world, await world.die(*(bodies or ('{"order": 7000}', '{"order": 7001}')))


async def test_every_page_is_shown_and_forbids_what_is_not_its_own() -> None:
    async with visiting() as visitor:
        world, seqs = await filled(visitor)
        for path in pages_of(world, seqs[0]):
            response = await visitor.get(path)
            assert response.status == 200, path
            assert response.headers["Content-Security-Policy"] == POLICY
            assert response.headers["Cache-Control"] == "no-store"
            assert text(response).count("<h1>") == 1, path
            assert "style=" not in text(response), path
        gone = await visitor.get(f"{ROOM}/dead-letters/absent")
        assert gone.status == 404
        assert "There is no queue absent" in text(gone)
        assert gone.headers["Content-Security-Policy"] == POLICY
        strange = await visitor.get(f"{ROOM}/dead-letters/{world.dead.name.name}?after=x")
        assert strange.status == 400


async def test_every_time_of_day_says_its_zone() -> None:
    async with visiting() as visitor:
        world, seqs = await filled(visitor)
        for path in pages_of(world, seqs[0]):
            page = text(await visitor.get(path))
            shown = re.sub(r"<(pre|code|script)\b.*?</\1>", "", page, flags=re.DOTALL)
            assert _TIME_OF_DAY.findall(shown) == [], path


@pytest.mark.parametrize(
    ("path", "back"),
    [
        (f"{ROOM}/queues/absent", f"{ROOM}/queues"),
        (f"{ROOM}/topics/absent", f"{ROOM}/topics"),
        (f"{ROOM}/dead-letters/orders-dead?q=size:x", f"{ROOM}/dead-letters/orders-dead"),
    ],
)
async def test_error_pages_lead_back_to_where_the_visitor_was(path: str, back: str) -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        told = await visitor.get(path)
        assert told.status in (400, 404)
        assert f'class="button" href="{back}"' in text(told)


async def test_a_browser_is_led_to_the_console_and_a_program_is_not() -> None:
    async with visiting() as visitor:
        led = await visitor.get("/")
        assert (led.status, led.headers["Location"]) == (303, f"{ROOT}/")
        assert (await visitor.get("/", accept="*/*")).status == 200
    async with visiting(console="off") as visitor:
        assert (await visitor.get("/")).status == 200
        assert (await visitor.get(f"{ROOT}/")).status == 404


async def test_the_workbench_shows_why_and_how_many() -> None:
    async with visiting() as visitor:
        world, _ = await filled(visitor)
        await world.die("x", note=None)
        page = text(await visitor.get(f"{ROOM}/dead-letters/orders-dead"))
        assert "3 waiting" in page
        assert "upstream connect error" in page
        assert "Redrive all 3…" in page
        assert "rejected" in page
        assert "7001" in page
        assert "receiver&nbsp;</span>billing.example.com/hook?…" in page
        assert "secret" not in page


@pytest.mark.parametrize("path", ["dead-letters/orders-dead", "dead-letters/orders-dead/search?q=7001"])
async def test_each_dead_letter_of_a_list_leads_to_the_trace_of_its_publication(path: str) -> None:
    async with visiting() as visitor:
        world, _ = await filled(visitor)
        page = (await visitor.get(f"{ROOM}/{path}")).body.decode()
        letters = await world.engine.operations.dead_letters.letters(world.dead, 0, 10)
        of_order = [each.delivery for each in letters if "7001" in each.delivery.body]
        assert of_order
        for delivery in of_order:
            link = f"{ROOM}/messages/{published_id(delivery)}?in=orders-dead&amp;seq={delivery.seq}"
            assert f'<a href="{link}" aria-label="Trace of message {delivery.seq}">Trace</a>' in page


async def test_a_plan_says_how_long_each_pace_takes() -> None:
    async with visiting() as visitor:
        _, seqs = await filled(visitor, *(f"order {number}" for number in range(100)))
        plan = f"{ROOM}/dead-letters/orders-dead/plan?what=all&cause=all"
        page = text(await visitor.get(plan))
        assert len(seqs) == 100
        assert "About 14 s in all if none fails" in page
        assert 'aria-label="5 messages a second at first, 10 at last"' in page
        assert "a second, about 2 s in all" in page
        assert "a second, about 10 s in all" in text(await visitor.get(f"{plan}&rate=10"))


async def test_a_redrive_is_planned_started_and_watched() -> None:
    async with visiting() as visitor:
        world, _ = await filled(visitor)
        cause = f"{world.orders.id}:server_error 503"
        plan = text(await visitor.get(f"{ROOM}/dead-letters/orders-dead/plan?what=all&cause={cause}"))
        assert "Redrive 2 messages" in plan
        assert "redrive dlq redrive orders-dead --cause" in plan
        assert "unless you name a queue: nobody" not in plan
        by_hand = Message(world.engine.runtime.message_id(), "sent here by hand")
        await world.engine.messages.send(world.dead, [by_hand])
        every = text(await visitor.get(f"{ROOM}/dead-letters/orders-dead/plan?what=all&cause=all"))
        assert "1 of them stays, unless you name a queue" in every
        form = {"what": "all", "cause": cause, "number": 2, "last_seq": 10**6, "pace": "careful"}
        changed = await visitor.post(f"{ROOM}/dead-letters/orders-dead/plan", {**form, "number": 5})
        assert changed.status == 409
        assert "There were 5 when this was planned, and are 2 now" in text(changed)
        started = await visitor.post(f"{ROOM}/dead-letters/orders-dead/plan", form)
        assert started.status == 303
        task = started.headers["Location"]
        page = text(await visitor.get(task))
        assert "until then Stop cancels it" in page
        assert (await visitor.post(f"{ROOM}/dead-letters/orders-dead/plan", form)).status == 409
        await visitor.post(task, {"do": "pause"})
        assert "paused" in text(await visitor.get(task))
        await visitor.post(task, {"do": "cancel"})
        assert "cancelled" in text(await visitor.get(task))


async def test_a_redrive_of_all_says_how_many_it_left() -> None:
    async with visiting(clock="simulated") as visitor:
        world, _ = await filled(visitor)
        by_hand = Message(world.engine.runtime.message_id(), "sent here by hand")
        await world.engine.messages.send(world.dead, [by_hand])
        number = (await world.engine.operations.redrives.plan(world.dead)).number
        form = {"what": "all", "cause": "all", "number": number, "last_seq": 10**6, "pace": "fast"}
        started = await visitor.post(f"{ROOM}/dead-letters/orders-dead/plan", form)
        await visitor.server.time.advance(60_000)  # type: ignore[union-attr]  # simulated
        page = text(await visitor.get(started.headers["Location"]))
        assert "completed" in page
        assert "1 was left: its origin is unknown or was deleted" in page


async def test_a_redrive_tells_its_rate_and_what_was_delivered_and_died_again() -> None:
    async with visiting(clock="simulated") as visitor:
        world, _ = await filled(visitor, *(f"order {each}" for each in range(8)))
        dead, time = f"{ROOM}/dead-letters/orders-dead", visitor.server.time
        assert time is not None
        form = {"what": "all", "cause": "all", "number": 8, "last_seq": 10**6, "pace": "steady", "rate": 1}
        task = (await visitor.post(f"{dead}/plan", form)).headers["Location"]
        await time.advance(9_000)
        page = words(await visitor.get(task))
        assert re.search(r"Moved [3-6] of 8 .* Delivered 0 [3-6] still waiting Dead-lettered again 0", page)
        assert "Messages a second Moved 1/s Allowed 1/s" in page
        await time.advance(60_000)
        assert "8 messages moved in 8 s; 0 delivered, 0 dead again, 8 still waiting." in words(
            await visitor.get(task)
        )
        await world.end(Outcome.DELIVERED, 5)
        await world.end(Outcome.DEAD_LETTERED, 2)
        answer = await visitor.get(f"{task}?again")  # the same address is answered from memory for a moment
        assert "8 messages moved in 8 s; 5 delivered, 2 dead again, 1 still waiting" in words(answer)
        assert "2 Server error 503 Show them" in words(answer)
        (link,) = set(re.findall(r'href="([^"]+cause=[^"]+since[^"]+)"', answer.body.decode()))
        assert "2 found among 2" in words(await visitor.get(link.replace("&amp;", "&")))


async def test_picked_messages_go_back_aside_and_home_again() -> None:
    async with visiting() as visitor:
        _, seqs = await filled(visitor)
        dead = f"{ROOM}/dead-letters/orders-dead"
        sent = await visitor.post(f"{dead}/plan", {"what": "picked", "id": [seqs[0]], "cause": "all"})
        assert "1 of 1 sent back" in unquote(sent.headers["Set-Cookie"])
        assert (await visitor.post(f"{dead}/set-aside", {"id": seqs[1]})).status == 303
        aside = text(await visitor.get(f"{ROOM}/dead-letters/redrive-set-aside"))
        (seq,) = set(re.findall(r'name="id" value="(\d+)"', aside))
        back = await visitor.post(f"{ROOM}/dead-letters/redrive-set-aside/bring-back", {"id": seq})
        assert "1 of 1 brought back" in unquote(back.headers["Set-Cookie"])
        assert "7001" in text(await visitor.get(dead))
        assert (await visitor.post(f"{dead}/set-aside", {})).status == 400


async def test_a_body_is_edited_to_the_digit() -> None:
    async with visiting() as visitor:
        world, (seq,) = await filled(visitor, '{"order":12345678901234567890,"currency":"eur","rate":1e400}')
        edit = f"{ROOM}/dead-letters/orders-dead/{seq}/edit"
        page = text(await visitor.get(edit))
        assert "12345678901234567890" in page
        assert "1e400" in page
        broken = text(await visitor.post(edit, {"body": '{"order": 1,\n "currency" "EUR"}', "do": "check"}))
        assert "line 2, column 13" in broken
        body = '{\n  "order": 12345678901234567890,\n  "currency": "EUR",\n  "rate": 1e400\n}'
        checked = text(await visitor.post(edit, {"body": body, "do": "check"}))
        assert checked.count('class="gone"') == checked.count('class="new"') == 1
        assert re.search(r'class="gone">   3 - .*class="new">   3 \+ ', checked, re.DOTALL)
        assert "<mark>2</mark>" in broken
        assert (await visitor.post(edit, {"body": body, "do": "replace"})).status == 303
        (delivery,) = await world.engine.messages.peek(world.orders, 10)
        assert delivery.body == body
        assert await world.engine.messages.peek(world.dead, 10) == []
        assert (await visitor.post(edit, {"body": body, "do": "replace"})).status == 404


async def test_a_search_finds_by_what_bodies_say() -> None:
    async with visiting() as visitor:
        await filled(visitor, '{"order": 7000, "to": {"city": "Oslo"}}', '{"order": 7001}', "no json")
        dead = f"{ROOM}/dead-letters/orders-dead"
        for query, found in (
            ("body.order:7001", ["7001"]),
            ("body.to.city:Oslo", ["7000"]),
            ('-"no json" order', ["7000", "7001"]),
            ("size:<10", ["no json"]),
            ("attempts:>3", []),
        ):
            page = text(await visitor.get(f"{dead}?q={query.replace('>', '%3E').replace('<', '%3C')}"))
            codes = "".join(re.findall(r"<code>.*?</code>", page))
            shown = [word for word in ("7000", "7001", "no json") if word in codes]
            assert shown == found, query
            assert "among 3 messages looked at" in page
        assert (await visitor.get(f"{dead}?q=size:x")).status == 400


async def test_sending_and_publishing_keep_the_services_rules() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        send = f"{ROOM}/queues/orders/send"
        assert (await visitor.post(send, {"body": '{"order": 1}', "delay": "0"})).status == 303
        assert (await world.engine.messages.peek(world.orders, 9))[0].body == '{"order": 1}'
        refused = await visitor.post(send, {"body": "a", "delay": "9000"})
        assert refused.status == 400
        assert "DelaySeconds" in text(refused)
        assert ">a</textarea>" in text(refused)
        published = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": "hello"})
        assert published.headers["Location"].startswith(f"{ROOM}/messages/")


async def test_an_answer_that_is_known_is_not_sent_again() -> None:
    async with visiting() as visitor:
        await filled(visitor)
        first = await visitor.get(f"{ROOM}/queues", **{"x-redrive-part": "live"})
        assert "<h1>" not in text(first)
        again = await visitor.get(
            f"{ROOM}/queues", **{"x-redrive-part": "live", "if-none-match": first.headers["ETag"]}
        )
        assert (again.status, again.body) == (304, b"")


async def test_a_read_only_console_refuses_every_route_that_writes_and_shows_no_button() -> None:
    async with visiting(console="read-only") as visitor:
        world, seqs = await filled(visitor)
        named = {
            "account": SCOPE.account,
            "region": SCOPE.region,
            "queue": "orders-dead",
            "seq": str(seqs[0]),
        }
        named |= {"topic": "Rentals", "subscription": "6f1c"}
        writing = [route for route in ROUTES if route.method != "GET" and not route.open]
        assert writing
        for route in writing:
            assert route.writes, route.pattern
            path = ROOT + route.pattern.format_map(defaultdict(lambda: "x", named))
            refused = await visitor.post(path, {"id": seqs[0], "do": "cancel"})
            assert refused.status == 403, route.pattern
        for path in pages_of(world, seqs[0]):
            page = text(await visitor.get(path))
            assert 'type="checkbox"' not in page
            if not path.endswith("edit"):
                assert 'method="post"' not in page, path
        assert len(await world.engine.messages.peek(world.dead, 10)) == 2


async def test_hidden_bodies_are_in_no_answer() -> None:
    async with visiting(console_bodies="hidden") as visitor:
        world, seqs = await filled(visitor, "MARKED 1", '{"x": "MARKED 2"}')
        await world.engine.messages.send(world.orders, [Message(bytes(16), "MARKED 3")])
        (waiting,) = await world.engine.messages.peek(world.orders, 5)
        paths = [*pages_of(world, seqs[0]), f"{ROOM}/queues/orders/messages/{waiting.seq}"]
        for path in paths:
            assert "MARKED" not in text(await visitor.get(path)), path
        edit = f"{ROOM}/dead-letters/orders-dead/{seqs[0]}/edit"
        assert "MARKED" not in text(await visitor.post(edit, {"body": "x", "do": "check"}))
        assert (await visitor.get(f"{ROOM}/dead-letters/orders-dead?q=MARKED")).status == 400


async def test_an_encrypted_body_is_neither_shown_nor_edited() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        sealed = NewDelivery(
            world.dead.id, bytes(16), "\x02MARKED", b'{"sealed":{}}', 0, 0, origin=world.orders.id, note=BUSY
        )
        await world.engine.parts.store.enqueue([sealed])
        (letter,) = await world.engine.operations.dead_letters.letters(world.dead, 0, 9)
        edit = f"{ROOM}/dead-letters/orders-dead/{letter.delivery.seq}/edit"
        assert (await visitor.get(edit)).status == 400
        assert (await visitor.post(edit, {"body": "clear", "do": "replace"})).status == 400
        for path in pages_of(world, letter.delivery.seq):
            assert "MARKED" not in text(await visitor.get(path)), path


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"content-type": "application/json"},
        {"content-type": "text/plain"},
        {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    ],
)
async def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    async with visiting() as visitor:
        await filled(visitor)
        refused = await visitor.post(f"{ROOM}/queues/orders/send", {"body": "a"}, **headers)
        assert refused.status == 403


async def test_a_form_without_a_word_of_its_origin_is_refused_and_by_its_origin_accepted() -> None:
    async with visiting() as visitor:
        await filled(visitor)
        plain = {"content-type": "application/x-www-form-urlencoded"}
        send = f"{ROOM}/queues/orders/send"
        assert (await visitor._ask("POST", send, b"body=a", plain)).status == 403
        own = {**plain, "origin": "http://127.0.0.1:4566"}
        assert (await visitor._ask("POST", send, b"body=a", own)).status == 303


async def test_no_link_leaves_the_prefix_of_a_proxy() -> None:
    async with visiting(
        public_url="https://ops.example.com/redrive", allow_hosts="ops.example.com"
    ) as visitor:
        world, seqs = await filled(visitor)
        for path in pages_of(world, seqs[0]):
            for link in _LINK.findall(text(await visitor.get(path, host="ops.example.com"))):
                assert link.startswith(("/redrive/_redrive/console/", "#main", "#letters")), (path, link)


async def test_lists_are_sorted_by_links_in_their_heads() -> None:
    async with visiting(functions="on") as visitor:
        world = await make_world(visitor)
        await world.die("a", "b")
        await world.engine.messages.send(world.orders, [Message(bytes(16), "c")])
        for room, column, order in (
            ("queues", "name", ["orders", "orders-dead"]),
            ("queues", "-name", ["orders-dead", "orders"]),
            ("queues", "waiting", ["orders-dead", "orders"]),
            ("queues", "-waiting", ["orders", "orders-dead"]),
            ("queues", "nothing", ["orders", "orders-dead"]),
            ("topics", "-name", ["Rentals"]),
            ("functions", "errors", []),
        ):
            page = text(await visitor.get(f"{ROOM}/{room}?sort={column}"))
            rows = re.findall(r'<tr data-row><th scope="row"><a class="mono" href="[^"]+">([^<]+)</a>', page)
            assert rows == order, (room, column)
        turned = text(await visitor.get(f"{ROOM}/queues?sort=waiting"))
        assert 'aria-sort="descending"' in turned
        assert f'href="{ROOM}/queues?sort=-waiting"' in turned


async def test_a_page_comes_in_the_theme_that_its_visitor_chose() -> None:
    async with visiting() as visitor:
        dark = text(await visitor.get(f"{ROOM}/queues", cookie="redrive-theme=dark"))
        assert '<html lang="en" data-theme="dark">' in dark
        assert '<html lang="en">' in text(await visitor.get(f"{ROOM}/queues"))
        hostile = 'redrive-theme="><script>'
        assert '<html lang="en">' in text(await visitor.get(f"{ROOM}/queues", cookie=hostile))
        gone = await visitor.get(f"{ROOM}/queues/absent", cookie="redrive-theme=light")
        assert '<html lang="en" data-theme="light">' in text(gone)


async def test_attempts_of_pushed_dead_letters_are_found_counted_and_redriven() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        now, origin = world.engine.clock.now(), world.subscription.queue_id
        letters = [
            replace(
                NewDelivery(world.dead.id, bytes([each] * 16), "{}", None, now, now, origin=origin),
                note=BUSY._replace(number=each, at=now),
            )
            for each in (1, 3, 4, 4)
        ]
        await world.engine.parts.store.enqueue(letters)
        dead = f"{ROOM}/dead-letters/orders-dead"
        assert "2 found among 4" in text(await visitor.get(f"{dead}?q=attempts:>3"))
        assert "3 found among 4" in text(await visitor.get(f"{dead}?q=-attempts:1"))
        assert 'data-found="1"' in text(await visitor.get(f"{dead}/search?q=attempts:1"))
        facets = words(await visitor.get(f"{dead}/facets"))
        assert "attempts 4 2 3 1 1 1" in facets.replace("Common values", "")
        saved = await visitor.get(f"{dead}/download?q=attempts:>3")
        assert saved.body.count(b'"attempts":4') == 2
        plan = f"{dead}/plan?what=all&cause=all&q=attempts:>3"
        assert "Redrive 2 messages" in text(await visitor.get(plan))
        form = {
            "what": "all",
            "cause": "all",
            "q": "attempts:>3",
            "number": 2,
            "pace": "fast",
            "to": "orders",
        }
        await visitor.post(f"{dead}/plan", form)
        await time.advance(30_000)
        left = await world.engine.operations.dead_letters.letters(world.dead, 0, 10)
        assert [letter.attempts for letter in left] == [1, 3]

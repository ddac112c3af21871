"""A trace shows each subscriber of a publication, with its attempts on one axis."""

import re
from functools import partial
from html import unescape

import orjson
import pytest

from redrive.aws.sqs.names import arn_of
from redrive.console.pages.traces import Axis
from redrive.engine import tracing
from redrive.engine.ports import AttemptNote
from redrive.model.queue import Queue
from redrive.model.topic import Subscription
from tests.console.services import make_key
from tests.console.test_schedules import text
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, make_world, visiting


def test_attempts_stand_where_their_time_is_or_at_even_steps() -> None:
    notes = [
        AttemptNote(1, 10_100, 100, "server_error", 503, ""),
        AttemptNote(2, 60_100, 100, "timed_out", 0, ""),
    ]
    discs = Axis(10_000, 110_000).discs(notes, 110_000)
    assert [(disc.x, disc.label, disc.wait, disc.due) for disc in discs] == [
        (1.0, "503", "", False),
        (49.0, "timed", "49 s", False),
        (97.0, "next", "", True),
    ]
    even = Axis(10_000, 110_000, steps=2).discs(notes)
    assert [disc.x for disc in even] == [1.0, 49.0]


async def test_a_trace_shows_who_got_nothing_and_who_else_subscribes() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        world.engine.operations.inject_fault(world.subscription.endpoint, 503)
        moved = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": '{"order": 7001}'})
        assert visitor.server.time is not None
        await visitor.server.time.advance(90_000)
        page = (await visitor.get(moved.headers["Location"])).body.decode()
        assert "Dead letter</span></li>" in page
        assert page.count('<circle class="f s3"') == 4
        assert f'href="{ROOM}/dead-letters/orders-dead/plan?what=picked' in page
        health = (await visitor.get(f"{ROOM}/topics/Rentals/6f1c")).body.decode()
        assert "0 of 4 attempts" in health
        gone = (await visitor.get(f"{ROOM}/messages/absent?topic=Rentals")).body.decode()
        assert "leave nothing behind" in gone
        assert "Other subscribers" in gone


async def test_a_trace_tells_what_a_filter_kept_out_from_what_a_queue_still_has() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        subscribe = world.engine.resources.subscriptions.create
        of_rentals = partial(Subscription, topic=world.topic.name, queue_id=0, owner=SCOPE.account)
        await subscribe(of_rentals("1a", protocol="sqs", endpoint=arn_of(world.orders.name)))
        await subscribe(
            of_rentals(
                "1b", protocol="https", endpoint="https://oslo.example.com", filter_text='{"city": ["Oslo"]}'
            )
        )
        await subscribe(
            of_rentals("1c", protocol="https", endpoint="https://new.example.com", confirmed=False)
        )
        city = {"attribute-name": "city", "attribute-type": "String", "attribute-value": "Rome"}
        moved = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": "{}", **city})
        page = (await visitor.get(moved.headers["Location"])).body.decode()
        there, _, others = page.partition('id="others"')
        assert "not received yet" in there
        assert world.orders.name.name not in others.partition("</section>")[0]
        assert "Filtered out: " in others
        assert "Not confirmed: it gets nothing" in others


async def sign_in(visitor: Visitor, account: str) -> None:
    key = await make_key(visitor.server.core.keyring, account)
    await visitor.post(f"{ROOT}/login", {"key": key.access_key_id, "secret": key.secret})


async def test_a_subscriber_is_told_of_no_other_subscriber_of_a_foreign_topic() -> None:
    async with visiting(clock="simulated", auth="required") as visitor:
        world = await make_world(visitor)
        engine, mine = world.engine, SCOPE._replace(account="111111111111")
        statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
        open_to_all = {"Policy": orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()}
        wanted = Queue(0, mine._replace(name="dead"), attributes=open_to_all)
        dead = await engine.resources.queues.create(wanted)
        at, owner = "https://mine.example.com", mine.account
        of_mine = Subscription("2a", world.topic.name, 0, owner, "https", at, dead_letter=dead.name)
        await engine.resources.subscriptions.create(of_mine)
        engine.operations.inject_fault(at, 503)
        await sign_in(visitor, SCOPE.account)
        published = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": "{}"})
        assert visitor.server.time is not None
        await visitor.server.time.advance(90_000)
        await sign_in(visitor, owner)
        path = published.headers["Location"].replace(SCOPE.account, owner).partition("?")[0]
        page = (await visitor.get(path)).body.decode()
        assert "in dead" in page
        assert "billing.example.com" not in page


async def test_the_start_leads_to_what_this_node_saw_last() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        assert "Nothing has failed" in (await visitor.get(f"{ROOM}/messages")).body.decode()
        world.engine.operations.inject_fault(world.subscription.endpoint, 503)
        moved = await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": '{"order": 7001}'})
        assert visitor.server.time is not None
        await visitor.server.time.advance(90_000)
        page = (await visitor.get(f"{ROOM}/messages?again")).body.decode()
        link = moved.headers["Location"].partition("?")[0]
        assert f'href="{link}"' in page
        assert "Dead-lettered" in page


async def test_a_trace_from_a_row_shows_it_however_far_back_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "DELIVERIES_MAX", 1)
    async with visiting() as visitor:
        world = await make_world(visitor)
        seqs = await world.die("order 1", "order 2")
        page = (await visitor.get(f"{ROOM}/dead-letters/orders-dead")).body.decode()
        (link,) = re.findall(rf'href="([^"]+seq={seqs[-1]})" aria-label="Trace', page)
        trace = text(await visitor.get(unescape(link)))
        assert "in orders-dead" in trace
        assert "1 dead letter" in trace
        assert "order 2" in trace
        axis = unescape(
            re.findall(r'href="([^"]+axis=steps[^"]*)"', (await visitor.get(unescape(link))).body.decode())[0]
        )
        assert "1 dead letter" in text(await visitor.get(axis))
        assert "in no queue here" in text(await visitor.get(unescape(link).partition("?")[0]))

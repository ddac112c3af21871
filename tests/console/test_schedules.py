"""The lab of retry schedules, without a browser."""

import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import urlencode

from redrive.model.http import Response
from tests.console.world import ROOM, ROOT, TRIED, make_world, visiting

ID = "9b7bd5b4-6c6c-4d4c-8e29-3b2a5a1f0c11"
AFTERNOON = {"outage": "4h", "attempt": "15s", "fails": "503"}


def text(response: Response) -> str:
    """The page without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.body.decode())).split())


async def test_a_policy_is_tried_with_an_outage_with_and_without_rests() -> None:
    async with visiting() as visitor:
        page = text(await visitor.get(f"{ROOT}/schedules?{urlencode(TRIED | AFTERNOON)}"))
        assert "11 attempts , the last 15 min 4 s to 15 min 24 s after publication" in page
        assert "given up after attempt 11, 15 min 39 s after publication" in page
        assert "17 attempts fail in all, whatever waits; at most 1 delivery is given up" in page
        assert "4 h 21 min after the outage's beginning" in page
        assert "773 of them are used here" in page
        short = text(await visitor.get(f"{ROOT}/schedules?{urlencode(TRIED | {'outage': '40 min'})}"))
        assert "given up after attempt 11" in short


REFUSED = [
    ({"numRetries": "1e9"}, "numRetries: '1e9' is no whole number", "numRetries"),
    ({"numRetries": "1000000000"}, "numRetries", "numRetries"),
    ({"numRetries": "2", "numNoDelayRetries": "3"}, "DeliveryPolicy", "numRetries"),
    ({"minDelayTarget": "3601"}, "minDelayTarget", "minDelayTarget"),
    ({"policy": '{"healthyRetryPolicy": {"retries": 1}}'}, "DeliveryPolicy", "policy"),
    ({"policy": "{"}, "DeliveryPolicy", "policy"),
    ({"outage": "long"}, "'long' is not a span of time", "outage"),
    ({"attempt": "99999d"}, "longer than 60 days", "attempt"),
    ({"plan": "event-grid", "maxDeliveryAttempts": "31"}, "31 is not from 1 to 30", "maxDeliveryAttempts"),
]


async def test_numbers_that_give_no_schedule_are_refused_in_the_services_words() -> None:
    async with visiting() as visitor:
        for query, told, field in REFUSED:
            response = await visitor.get(f"{ROOT}/schedules?{urlencode(query)}")
            page = text(response)
            assert told in page, query
            assert "Earliest after publication" not in page, query
            assert f'data-field="{field}"'.encode() in response.body, query
            marked = re.findall(rb'name="(\w+)"[^>]*aria-invalid="true"', response.body)
            assert marked == [field.encode()], query


async def test_each_plan_has_its_curve_its_table_and_its_answer() -> None:
    async with visiting() as visitor:
        for plan in ("http", "managed", "customer", "event-grid", "function"):
            response = await visitor.get(f"{ROOM}/schedules?plan={plan}&outage=20d")
            assert response.body.count(b"<path class=") >= 2, plan
            assert b"Earliest after publication" in response.body
            assert "The same outage by other schedules" in text(response)
            if plan == "managed":
                assert "delivered by attempt 86,414" in text(response)
                assert "99,998 more" in text(response)


async def test_a_pasted_policy_is_tried_and_its_numbers_are_filled_in() -> None:
    pasted = json.dumps({"http": {"defaultHealthyRetryPolicy": TRIED}})
    async with visiting() as visitor:
        response = await visitor.get(f"{ROOT}/schedules?{urlencode({'policy': pasted})}")
        assert "11 attempts" in text(response)
        assert b'name="maxDelayTarget" value="300"' in response.body


async def test_a_policy_is_saved_as_the_subscriptions_own_and_its_other_members_stay() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        wanted = replace(world.subscription, id=ID, endpoint="https://orders.example.com/")
        await world.engine.resources.subscriptions.create(wanted)
        subscription = await visitor.get(f"{ROOM}/topics/Rentals/{ID}")
        (link,) = re.findall(r'href="([^"]+/schedules\?[^"]+)"', subscription.body.decode())
        assert b"Save as the policy<" in (await visitor.get(link.replace("&amp;", "&"))).body
        form = TRIED | {"topic": "Rentals", "subscription": ID}
        saved = await visitor.post(f"{ROOM}/schedules", form)
        assert saved.status == 303
        again = await visitor.get(f"{ROOM}/topics/Rentals/{ID}")
        assert b"maxDelayTarget=300" in again.body
        refused = await visitor.post(f"{ROOM}/schedules", form | {"numRetries": "101"})
        assert refused.status == 400
        gone = await visitor.post(f"{ROOM}/schedules", form | {"subscription": "gone"})
        assert gone.status == 404


async def test_the_lab_answers_its_live_part_alone() -> None:
    async with visiting() as visitor:
        headers = {"x-redrive-part": "live"}
        first = await visitor.get(f"{ROOT}/schedules?numRetries=4", **headers)
        assert b"<form" not in first.body
        assert b"5 attempts" in first.body


async def test_a_refusal_leaves_the_last_curve_on_the_screen() -> None:
    async with visiting() as visitor:
        headers = {"x-redrive-part": "live"}
        refused = await visitor.get(f"{ROOT}/schedules?numRetries=1e9", **headers)
        assert refused.headers["X-Redrive-Into"] == "#refused"
        assert refused.body.count(b"<p ") == 1
        taken = await visitor.get(f"{ROOT}/schedules?numRetries=9", **headers)
        assert "X-Redrive-Into" not in taken.headers

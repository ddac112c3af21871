"""Messages are sent with all that belongs to them, several at once, and as JSON lines that are checked first."""

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest

from redrive.console.typed_messages import SAMPLES, read_lines
from redrive.console.visit import Unusable
from redrive.engine.ports import Counts
from redrive.model.topic import Subscription
from tests.console.services import Services
from tests.console.world import ROOM, SCOPE, make_world, visiting

SEND = f"{ROOM}/queues/orders/send"
LINES = f"{ROOM}/queues/orders/import"
QUEUE = "http://127.0.0.1:4566/000000000000/orders"


async def test_a_message_has_its_attributes_and_copies_of_it_are_sent() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        form = {
            "body": '{"order": 7001}',
            "format": "json",
            "copies": "12",
            "attribute-name": ["city", "total", "", "photo"],
            "attribute-type": ["String", "Number", "String", "Binary"],
            "attribute-value": ["Oslo", "203.90", "left out", "x"],
        }
        sent = await visitor.post(SEND, form)
        assert "12 of 12 sent" in unquote(sent.headers["Set-Cookie"])
        receive = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        answer = await Services(visitor).call("sqs", "ReceiveMessage", QueueUrl=QUEUE, **receive)
        assert len(answer["Messages"]) == 10
        attributes = answer["Messages"][0]["MessageAttributes"]
        assert {name: value["DataType"] for name, value in attributes.items()} == {
            "city": "String",
            "total": "Number",
            "photo": "Binary",
        }
        assert attributes["total"]["StringValue"] == "203.90"
        assert sum(await world.engine.messages.count(world.orders, 100)) == 12


@pytest.mark.parametrize(
    ("form", "refusal"),
    [
        ({"body": '{"order" 7001}', "format": "json"}, "line 1, column 10"),
        ({"body": "x", "copies": "101"}, "1 to 100 copies"),
        ({"body": "x", "delay": "901"}, "DelaySeconds"),
        ({"body": ""}, "A message has a body."),
        (
            {"body": "x", "attribute-name": "n", "attribute-type": "Number", "attribute-value": "x"},
            "cast the value",
        ),
    ],
)
async def test_a_refused_message_keeps_its_form_and_sends_nothing(form: dict[str, str], refusal: str) -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        refused = await visitor.post(SEND, form)
        assert refused.status == 400
        page = refused.body.decode()
        assert refusal in page
        assert form["body"].replace('"', "&#34;") in page
        assert sum(await world.engine.messages.count(world.orders, 100)) == 0


async def test_json_lines_are_checked_before_they_are_sent() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        lines = (
            '{"order": 1}\n\n{"body": {"order": 2}, "attributes": {"city": "Oslo", "n": 3}, "delay": 0}\n7'
        )
        checked = (await visitor.post(LINES, {"lines": lines, "do": "check"})).body.decode()
        assert "3 messages would be sent" in checked
        broken = await visitor.post(
            LINES, {"lines": f'{lines}\n{{"body": "x", "dealy": 1}}\n{{', "do": "send"}
        )
        assert broken.status == 400
        assert "2 lines cannot be sent" in broken.body.decode()
        assert "Line 5: A message has no member" in broken.body.decode()
        assert sum(await world.engine.messages.count(world.orders, 100)) == 0
        sent = await visitor.post(LINES, {"lines": lines, "do": "send"})
        assert "3 of 3 sent" in unquote(sent.headers["Set-Cookie"])
        bodies = [each.body for each in await world.engine.messages.peek(world.orders, 10)]
        assert sorted(bodies) == ["7", '{"order": 1}', '{"order":2}']


def test_each_sample_is_one_line_of_json_lines() -> None:
    for name, sample in SAMPLES.items():
        lines = read_lines(json.dumps({"body": sample}))
        assert (len(lines.entries), lines.problems) == (1, []), name


async def test_a_publication_has_attributes_and_a_text_for_each_protocol() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        services = Services(visitor)
        topic, queue = (
            "arn:aws:sns:us-east-1:000000000000:Rentals",
            "arn:aws:sqs:us-east-1:000000000000:orders",
        )
        await services.call("sns", "Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=queue)
        form = {
            "body": '{"default": "d", "sqs": "to queues"}',
            "format": "protocols",
            "attribute-name": "city",
            "attribute-type": "String",
            "attribute-value": "Oslo",
        }
        published = await visitor.post(f"{ROOM}/topics/Rentals/publish", form)
        assert published.status == 303
        (message,) = (await services.call("sqs", "ReceiveMessage", QueueUrl=QUEUE))["Messages"]
        envelope = json.loads(message["Body"])
        assert envelope["Message"] == "to queues"
        assert envelope["MessageAttributes"] == {"city": {"Type": "String", "Value": "Oslo"}}


def test_a_line_ends_where_json_says_so_and_blank_lines_are_counted_first() -> None:
    separators = "one\u2028line\x85of text"
    lines = read_lines(json.dumps({"body": separators}, ensure_ascii=False) + "\r\n[1]\n\n")
    assert [entry["MessageBody"] for entry in lines.entries] == [separators, "[1]"]
    with pytest.raises(Unusable, match="At most 1,000 lines"):
        read_lines("\n" * 10_001)


async def test_a_message_is_tried_on_the_filters_before_it_is_published() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        filtered = Subscription("1b", world.topic.name, 0, SCOPE.account, "https", "https://oslo.example.com")
        await world.engine.resources.subscriptions.create(replace(filtered, filter_text='{"city": ["Oslo"]}'))
        form = {"body": "{}", "do": "try", "attribute-name": "city", "attribute-type": "String"}
        for city, outcome in (("Oslo", "Gets it<"), ("Rome", "Filtered out: ")):
            page = await visitor.post(f"{ROOM}/topics/Rentals/publish", {**form, "attribute-value": city})
            assert page.status == 200
            row = page.body.decode().partition("oslo.example.com</a>")[2].partition("</tr>")[0]
            assert outcome in row
            assert f'value="{city}"' in page.body.decode()
        assert await world.engine.messages.count_backlog(world.subscription, 10) == Counts(0, 0, 0)

"""Redrives with the rights of whoever asks: what they take, where they bring it, and in whose name."""

import json
from typing import Any, Final

import orjson
import pytest

from redrive.model.http import Request
from tests.aws.stage import (
    ACCOUNT,
    HOST,
    OTHER,
    REGION,
    Key,
    Stage,
    allow,
    deny,
    on_stage,
    policy,
    signed,
)


def arn(name: str, account: str = ACCOUNT) -> str:
    return f"arn:aws:sqs:{REGION}:{account}:{name}"


DEAD: Final = arn("dead")
WORK: Final = arn("work")
BY_SNS: Final = {
    "Effect": "Allow",
    "Principal": {"Service": "sns.amazonaws.com"},
    "Action": "sqs:SendMessage",
    "Resource": "*",
}


async def new_queue(stage: Stage, key: Key, name: str, **attributes: str) -> str:
    made = await stage.call(key, "sqs", "CreateQueue", QueueName=name, Attributes=attributes)
    url: str = made["QueueUrl"]
    return url


async def bodies_in(stage: Stage, key: Key, url: str) -> list[str]:
    answer = await stage.call(key, "sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", ())]


# ---- move tasks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("denied", "to_another"),
    [
        (deny("sqs:StartMessageMoveTask", on=DEAD), True),
        (deny("sqs:ReceiveMessage", on=DEAD), True),
        (deny("sqs:DeleteMessage", on=DEAD), True),
        (deny("sqs:GetQueueAttributes", on=DEAD), True),
        (deny("sqs:SendMessage", on=arn("other")), True),
        (deny("sqs:ReceiveMessage", on=DEAD), False),
        (deny("sqs:SendMessage", on=WORK), False),
        (None, True),
        (None, False),
    ],
)
def test_a_move_takes_and_brings_what_its_caller_may(
    denied: dict[str, Any] | None, *, to_another: bool
) -> None:
    async def play(stage: Stage) -> None:
        dead = await new_queue(stage, stage.root, "dead")
        letters = json.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": "1"})
        work = await new_queue(stage, stage.root, "work", RedrivePolicy=letters, VisibilityTimeout="0")
        other = await new_queue(stage, stage.root, "other")
        await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=work, MessageBody="a letter")
        for _ in range(2):
            await stage.call(stage.root, "sqs", "ReceiveMessage", QueueUrl=work)
        bob = await stage.user("bob", allow("sqs:*"), *([] if denied is None else [denied]))
        destination = {"DestinationArn": arn("other")} if to_another else {}
        may = await stage.may(bob, "sqs", "StartMessageMoveTask", SourceArn=DEAD, **destination)
        assert may is (denied is None)
        await stage.advance(5)
        target = other if to_another else work
        assert await bodies_in(stage, stage.root, target) == (["a letter"] if may else [])
        assert await bodies_in(stage, stage.root, dead) == ([] if may else ["a letter"])

    on_stage(play)


def test_a_move_brings_nothing_to_an_origin_that_has_another_dead_letter_queue_by_now() -> None:
    """The rights are asked about every queue that a letter came from, configured or not."""

    async def play(stage: Stage) -> None:
        dead = await new_queue(stage, stage.root, "dead")
        letters = json.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": "1"})
        work = await new_queue(stage, stage.root, "work", RedrivePolicy=letters, VisibilityTimeout="0")
        await new_queue(stage, stage.root, "later", RedrivePolicy=letters)
        await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=work, MessageBody="a letter")
        for _ in range(2):
            await stage.call(stage.root, "sqs", "ReceiveMessage", QueueUrl=work)
        none = {"QueueUrl": work, "Attributes": {"RedrivePolicy": ""}}
        await stage.call(stage.root, "sqs", "SetQueueAttributes", **none)
        bob = await stage.user("bob", allow("sqs:*"), deny("sqs:SendMessage", on=WORK))
        assert not await stage.may(bob, "sqs", "StartMessageMoveTask", SourceArn=DEAD)
        assert await bodies_in(stage, stage.root, dead) == ["a letter"]

    on_stage(play)


# ---- other bodies -------------------------------------------------------------------------------------------------


async def control(
    stage: Stage, key: Key, path: str, document: Any = None, query: str = ""
) -> tuple[int, Any]:
    method, body = ("GET", b"") if document is None else ("POST", orjson.dumps(document))
    request = signed(Request(method, path, query, {"host": HOST}, body), "redrive", key)
    response = await stage.send(request)
    return response.status, orjson.loads(response.body)


@pytest.mark.parametrize("publisher", [ACCOUNT, OTHER], ids=["another account's topic", "a topic of its own"])
def test_a_dead_letter_gets_no_words_that_another_accounts_topic_would_sign(publisher: str) -> None:
    async def play(stage: Stage) -> None:
        owner = stage.root if publisher == ACCOUNT else stage.stranger
        topic = (await stage.call(owner, "sns", "CreateTopic", Name="news"))["TopicArn"]
        lets_in = {
            "Effect": "Allow",
            "Principal": {"AWS": OTHER},
            "Action": ["sns:Subscribe"],
            "Resource": topic,
        }
        given = {"AttributeName": "Policy", "AttributeValue": policy(lets_in)}
        if publisher == ACCOUNT:
            await stage.call(owner, "sns", "SetTopicAttributes", TopicArn=topic, **given)
        reader = stage.stranger
        url = await new_queue(stage, reader, "inbox", Policy=policy(BY_SNS))
        await new_queue(stage, reader, "dead", Policy=policy(BY_SNS))
        letters = json.dumps({"deadLetterTargetArn": arn("dead", OTHER)})
        subscribed = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": arn("inbox", OTHER)}
        await stage.call(reader, "sns", "Subscribe", **subscribed, Attributes={"RedrivePolicy": letters})
        await stage.call(reader, "sqs", "DeleteQueue", QueueUrl=url)
        await stage.call(owner, "sns", "Publish", TopicArn=topic, Message="as published")
        await stage.advance(3600)
        url = await new_queue(stage, reader, "inbox", Policy=policy(BY_SNS))
        _, found = await control(stage, reader, "/_redrive/dead-letters", query="queue=dead")
        (letter,) = found["dead_letters"]
        edit = {"queue": "dead", "id": letter["id"], "body": "pay somebody else"}
        status, answer = await control(stage, reader, "/_redrive/dead-letter-edits", edit)
        assert status == (409 if publisher == ACCOUNT else 200), answer
        if publisher == ACCOUNT:
            picked = {"queue": "dead", "ids": [letter["id"]]}
            assert await control(stage, reader, "/_redrive/dead-letters", picked) == (200, {"moved": 1})
        await stage.advance(60)
        (body,) = await bodies_in(stage, reader, url)
        assert orjson.loads(body)["Message"] == (
            "as published" if publisher == ACCOUNT else "pay somebody else"
        )

    on_stage(play)

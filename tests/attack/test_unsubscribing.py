"""Nobody ends a subscription who was not sent its link: ids cannot be worked out, and prove nothing.

49 requests without a key once ended the subscription of a queue: ids followed from the topic's small running number and
the subscriber, and metrics told names to everybody.
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest

from redrive.access.keys import Keyring
from redrive.aws.gateway.authentication import Holders, SigV4Verifier
from redrive.aws.gateway.gateway import Gateway
from redrive.model.http import Request, Response
from redrive.model.topic import Subscription
from tests.aws.sns.parts import TOKENS
from tests.aws.sns.stage import ACCOUNT, Stage, topic_arn


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    await stage.engine.open()
    yield stage
    await stage.engine.close()


@pytest.fixture
def gateway(stage: Stage) -> Gateway:
    engine = stage.engine
    verifier = SigV4Verifier(Holders(Keyring(stage.store, stage.clock)), stage.clock)
    return Gateway(engine.runtime, verifier, {"sns": stage.sns}, None)


async def follow(gateway: Gateway, arn: str, token: str | None = None) -> Response:
    fields = {"Action": "Unsubscribe", "SubscriptionArn": arn} | ({} if token is None else {"Token": token})
    return await gateway.answer(Request("GET", "/", urlencode(fields), {"host": "localhost"}, b""))


def guessed(topic_number: int, topic: str, protocol: str, endpoint: str) -> str:
    digest = hashlib.sha256(f"{topic_number}\n{protocol}\n{endpoint}".encode()).digest()
    return f"{topic}:{uuid.UUID(bytes=digest[:16])}"


async def test_ids_do_not_follow_from_what_they_are_for(stage: Stage, gateway: Gateway) -> None:
    topic, queue = await stage.topic(), await stage.queue("orders")
    arn = await stage.subscribe(topic, "sqs", queue)
    for number in range(50):
        assert guessed(number, topic, "sqs", queue) != arn
        assert (await follow(gateway, guessed(number, topic, "sqs", queue))).status == 403
    assert (await stage.attributes(arn))["SubscriptionArn"] == arn


async def test_an_arn_is_no_proof(stage: Stage, gateway: Gateway) -> None:
    topic = await stage.topic()
    arn = await stage.subscribe(topic, "http", "http://example.com/hook")
    token = (await stage.asked("http"))["Token"]
    await stage.call("ConfirmSubscription", account=None, TopicArn=topic, Token=token)
    other = await stage.subscribe(await stage.topic("other"), "sqs", await stage.queue("q"))
    for wrong in (None, "", "0" * 32, token[:32], TOKENS.token(other), TOKENS.token(arn)[:-1]):
        answer = await follow(gateway, arn, wrong)
        assert (answer.status, b"<Code>AuthorizationError</Code>" in answer.body) == (403, True)
    assert (await follow(gateway, arn, TOKENS.token(arn))).status == 200
    assert (await stage.asked("http"))["Type"] == "UnsubscribeConfirmation"


async def test_strangers_cannot_tell_what_there_is(stage: Stage, gateway: Gateway) -> None:
    topic = await stage.topic()
    there = await stage.subscribe(topic, "sqs", await stage.queue("q"))
    nothing = f"{topic_arn('nowhere')}:45f03920-f890-4a2f-bd77-32f9689b8013"

    async def told(arn: str) -> bytes:
        answer = await follow(gateway, arn)
        body = answer.body.replace(arn.encode(), b"").replace(
            answer.headers["x-amzn-RequestId"].encode(), b""
        )
        return b"%d" % answer.status + body

    assert await told(there) == await told(nothing)


@pytest.mark.parametrize("protocol", ["sqs", "lambda", "firehose"])
async def test_unsubscribe_links_do_not_work_for_protocols_that_are_sent_none(
    stage: Stage, gateway: Gateway, protocol: str
) -> None:
    endpoints = {
        "sqs": await stage.queue("q"),
        "lambda": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f",
        "firehose": f"arn:aws:firehose:us-east-1:{ACCOUNT}:deliverystream/s",
    }
    attributes = {"SubscriptionRoleArn": f"arn:aws:iam::{ACCOUNT}:role/r"} if protocol == "firehose" else {}
    arn = await stage.subscribe(await stage.topic(), protocol, endpoints[protocol], **attributes)
    assert (await follow(gateway, arn, TOKENS.token(arn))).status == 403
    assert (await stage.attributes(arn))["SubscriptionArn"] == arn


async def test_two_who_subscribe_at_once_make_one_subscription(stage: Stage) -> None:
    topic, queue = await stage.topic(), await stage.queue("q")
    made = await asyncio.gather(*[stage.subscribe(topic, "sqs", queue) for _ in range(20)])
    assert len(set(made)) == 1
    listed = (await stage.call("ListSubscriptionsByTopic", TopicArn=topic))["Subscriptions"]
    assert [subscription["SubscriptionArn"] for subscription in listed] == made[:1]


async def test_subscribing_again_after_an_unsubscribe_gives_another_arn(stage: Stage) -> None:
    topic, queue = await stage.topic(), await stage.queue("q")
    first = await stage.subscribe(topic, "sqs", queue)
    assert await stage.subscribe(topic, "sqs", queue) == first
    await stage.call("Unsubscribe", SubscriptionArn=first)
    second = await stage.subscribe(topic, "sqs", queue)
    assert second != first
    assert await stage.subscribe(topic, "sqs", queue) == second


async def test_subscriptions_of_older_versions_keep_their_ids(stage: Stage) -> None:
    """Their ids were worked out, and nothing else tells their subscriber."""
    topic, queue = await stage.topic(), await stage.queue("q")
    first = await stage.subscribe(topic, "sqs", queue)
    subscriptions = stage.engine.resources.subscriptions
    (found,) = await subscriptions.all_after("", 10)
    await subscriptions.delete(found)
    topics = await stage.engine.resources.topics.get(found.topic)
    assert topics is not None
    older = guessed(topics.id, topic, "sqs", queue)
    await subscriptions.create(
        Subscription(
            older.rpartition(":")[2], found.topic, 0, ACCOUNT, "sqs", queue, attributes=found.attributes
        )
    )
    assert await stage.subscribe(topic, "sqs", queue) == older
    await stage.call("Unsubscribe", SubscriptionArn=older)
    assert await stage.subscribe(topic, "sqs", queue) not in (older, first)

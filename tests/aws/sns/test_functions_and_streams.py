"""Functions and streams in trouble, hour after hour: when they are tried again, and what their dead letters are."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import orjson
import pytest

from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.durations import HOUR_MS
from redrive.model.retry_plans import CUSTOMER_ENDPOINT
from tests.aws.sns.stage import ACCOUNT, REGION, SECOND_MS, Stage, signing_pair
from tests.aws.sns.subscriber import check

FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:bill"
STREAM = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/lake"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sns"
TAKEN = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 202, "", 1)
SLOWER = Attempt(AttemptResult.FAILED, Reason.THROTTLED, 429, "", 1)
BROKEN = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 500, "", 1)
GONE = Attempt(AttemptResult.REFUSED, Reason.MISSING, 404, "", 1)


class Scripted:
    """Answers as told, then like the last time; remembers when it was asked, and what for."""

    def __init__(self, stage: Stage, *script: Attempt) -> None:
        self._clock = stage.clock
        self._script = deque(script)
        self.push_requests: list[tuple[int, PushRequest]] = []

    async def push(self, push_request: PushRequest) -> Attempt:
        self.push_requests.append((self._clock.now(), push_request))
        return self._script.popleft() if len(self._script) > 1 else self._script[0]

    async def close(self) -> None:
        pass

    @property
    def waits(self) -> list[int]:
        return [later - earlier for (earlier, _), (later, _) in pairwise(self.push_requests)]


async def subscribed(
    stage: Stage, protocol: str, *script: Attempt, **attributes: str
) -> tuple[str, Scripted]:
    """A topic with one subscriber and a dead-letter queue, `dead`."""
    endpoint = Scripted(stage, *script)
    stage.push_to(protocol, endpoint)
    topic = await stage.topic()
    dead = await stage.queue("dead")
    attributes["RedrivePolicy"] = orjson.dumps({"deadLetterTargetArn": dead}).decode()
    if protocol == "firehose":
        attributes["SubscriptionRoleArn"] = ROLE
    await stage.subscribe(topic, protocol, FUNCTION if protocol == "lambda" else STREAM, **attributes)
    return topic, endpoint


def nearly(waits: Sequence[int], nominal_ms: Sequence[int]) -> bool:
    """True if waits are the nominal ones, but for jitter."""
    return all(0.975 * wanted - 1 <= wait <= wanted for wait, wanted in zip(waits, nominal_ms, strict=True))


async def test_a_throttled_function_is_tried_for_days(stage: Stage) -> None:
    topic, endpoint = await subscribed(stage, "lambda", *[SLOWER] * 1095, TAKEN)
    await stage.publish(topic)
    await stage.advance(6 * HOUR_MS)
    assert endpoint.waits[:5] == [0, 0, 0, *endpoint.waits[3:5]]
    assert nearly(endpoint.waits[3:5], [SECOND_MS] * 2)
    assert nearly(endpoint.waits[15:], [20 * SECOND_MS] * (len(endpoint.waits) - 15))
    assert len(endpoint.push_requests) == 1096
    assert await stage.in_queue("dead") == []


async def test_a_throttled_stream_is_given_up_after_50_retries(stage: Stage) -> None:
    topic, endpoint = await subscribed(stage, "firehose", SLOWER)
    await stage.publish(topic)
    await stage.advance(6 * HOUR_MS)
    assert await stage.in_queue("dead") == []
    await stage.advance(HOUR_MS)
    assert nearly(endpoint.waits, [step.nominal_ms for step in CUSTOMER_ENDPOINT.steps()])
    assert len(endpoint.push_requests) == 51
    (letter,) = await stage.in_queue("dead")
    assert letter.body == "hello"


async def test_a_broken_stream_is_retried_by_the_schedule_of_managed_endpoints(stage: Stage) -> None:
    topic, endpoint = await subscribed(stage, "firehose", *[BROKEN] * 1000, SLOWER, TAKEN)
    await stage.publish(topic)
    await stage.advance(6 * HOUR_MS)
    assert nearly(endpoint.waits[998:], [20 * SECOND_MS, 20 * SECOND_MS, 10 * SECOND_MS])
    assert len(endpoint.push_requests) == 1002
    assert await stage.in_queue("dead") == []


async def test_records_that_wait_for_a_stream_go_together_each_as_it_would_alone(stage: Stage) -> None:
    topic, endpoint = await subscribed(stage, "firehose", BROKEN, TAKEN)
    (subscription,) = await stage.engine.resources.subscriptions.all_after("", 1)
    stage.engine.parts.dispatcher.forget(subscription.queue_id)
    for number in range(3):
        await stage.publish(topic, f"message {number}", Subject="s")
    await stage.engine.parts.dispatcher.open()
    await stage.advance(SECOND_MS)
    first, again = (push_request for _, push_request in endpoint.push_requests)
    assert first == again
    assert (first.endpoint, first.body) == (STREAM, b"")
    records = [orjson.loads(part) for part in first.parts]
    assert [record["Message"] for record in records] == ["message 0", "message 1", "message 2"]
    assert all(part.endswith(b"}\n") for part in first.parts)
    await stage.publish(topic, "alone")
    await stage.advance(0)
    _, alone = endpoint.push_requests[-1]
    assert list(orjson.loads(alone.body)) == [name for name in records[0] if name != "Subject"]
    assert alone.parts == ()


@pytest.mark.parametrize("protocol", ["lambda", "firehose"])
async def test_a_dead_letter_is_worded_as_for_a_queue(stage: Stage, protocol: str) -> None:
    topic, endpoint = await subscribed(stage, protocol, GONE)
    attributes = {"n": {"DataType": "Number", "StringValue": "1.5"}}
    await stage.publish(topic, Subject="s", MessageAttributes=attributes)
    await stage.advance(HOUR_MS)
    assert len(endpoint.push_requests) == 1
    (letter,) = await stage.in_queue("dead")
    body, beside = stage.renderer.present(letter)
    document = orjson.loads(body)
    check(document, signing_pair().pem)
    assert list(document) == [
        *("Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "SignatureVersion"),
        *("Signature", "SigningCertURL", "UnsubscribeURL", "MessageAttributes"),
    ]
    assert document["MessageAttributes"] == {"n": {"Type": "Number", "Value": "1.5"}}
    assert beside == {}


async def test_a_stream_s_raw_dead_letter_is_the_message_with_its_attributes(stage: Stage) -> None:
    topic, _ = await subscribed(stage, "firehose", GONE, RawMessageDelivery="true")
    attributes = {"n": {"DataType": "Number", "StringValue": "1.5"}}
    await stage.publish(topic, "as it is", MessageAttributes=attributes)
    await stage.advance(0)
    (letter,) = await stage.in_queue("dead")
    assert stage.renderer.present(letter) == ("as it is", attributes)

"""Questions that handshakes leave behind are cleared away by those that follow."""

from collections import deque

import orjson
import pytest

from redrive.azure.arm.event_sources import new_topic
from redrive.azure.arm.subscription_documents import engine_subscription
from redrive.azure.arm.subscription_forms import SubscriptionForm
from redrive.azure.handshake import MANUAL_ANSWER_MS, QUESTION, HandshakeRequest, Handshakes
from redrive.azure.wire.answers import AzureError
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.topic import Topic
from redrive.testing import VirtualClock
from tests.azure.stage import TOPIC, Scripted, Stage

LATE = Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, "no answer", 1)
SILENT = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "{}", 1)
WEBHOOK = {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example/a?b=c"}}


@pytest.fixture
async def topic(stage: Stage) -> Topic:
    return await stage.engine.resources.topics.create(new_topic(TOPIC, {"inputSchema": "EventGridSchema"}))


async def questions(stage: Stage) -> list[str]:
    return [one.subscription for one in await stage.engine.resources.documents.find(QUESTION, "")]


async def ask(
    stage: Stage, topic: Topic, name: str, answer: Attempt, *first: Attempt, schema: str = "EventGridSchema"
) -> HandshakeRequest | None:
    accepted = SubscriptionForm().accept(
        {"destination": WEBHOOK, "eventDeliverySchema": schema}, {}, topic, lambda _: None, stage.clock.now()
    )
    asked = engine_subscription(topic, f"{TOPIC.text}/x/{name}", accepted)
    stage.web = Scripted(stage.clock, answer, deque(first))
    handshakes = Handshakes(stage.engine, {"https": stage.web}, stage.tokens, stage.clock)
    return await handshakes.ask(asked, "http://redrive.example", stage.clock.now())


async def test_a_question_that_nobody_can_answer_any_more_is_forgotten(
    stage: Stage, topic: Topic, clock: VirtualClock
) -> None:
    first = await ask(stage, topic, "first", SILENT)
    assert first is not None
    assert first.ends_at == clock.now() + MANUAL_ANSWER_MS
    await clock.sleep_until(first.ends_at - 1)
    await ask(stage, topic, "second", SILENT)
    assert await questions(stage) == ["first", "second"]
    await clock.sleep_until(first.ends_at)
    await ask(stage, topic, "third", SILENT)
    assert await questions(stage) == ["second", "third"]


async def test_an_answer_leaves_no_question(stage: Stage, topic: Topic) -> None:
    with pytest.raises(AzureError, match="response code 403"):
        await ask(stage, topic, "billing", Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 403, "no", 1))
    with pytest.raises(AzureError, match="no answer: the endpoint could not be reached"):
        await ask(stage, topic, "billing", LATE)
    assert await questions(stage) == []


@pytest.mark.parametrize("schema", ["EventGridSchema", "CloudEventSchemaV1_0"])
async def test_a_late_endpoint_is_asked_once_more(
    stage: Stage, topic: Topic, clock: VirtualClock, schema: str
) -> None:
    began = clock.now()
    assert await ask(stage, topic, "billing", SILENT, LATE, schema=schema) is not None
    assert stage.web.seconds(began) == [0, 5]
    first, second = (push_request for _, push_request in stage.web.pushed)
    assert first == second
    with pytest.raises(AzureError, match="no answer: the endpoint could not be reached"):
        await ask(stage, topic, "other", SILENT, LATE, LATE, schema=schema)
    assert len(stage.web.pushed) == 2
    assert await questions(stage) == ["billing"]


async def test_an_endpoint_that_fails_otherwise_is_asked_once(stage: Stage, topic: Topic) -> None:
    with pytest.raises(AzureError):
        await ask(
            stage, topic, "billing", SILENT, Attempt(AttemptResult.FAILED, Reason.CONNECTION, 0, "broken", 1)
        )
    assert len(stage.web.pushed) == 1


@pytest.mark.parametrize(
    ("reason", "detail"),
    [
        (Reason.CONNECTION, "Cannot connect to host 10.0.0.5:22 [Connect call failed ('10.0.0.5', 22)]"),
        (Reason.CONNECTION, "Server disconnected"),
        (Reason.NAME_NOT_RESOLVED, "Cannot connect to host db.internal:80 [Name or service not known]"),
        (Reason.TLS, "certificate verify failed"),
        (Reason.FORBIDDEN_ADDRESS, "The settings forbid connections to private addresses"),
    ],
)
async def test_a_refusal_does_not_say_why_nothing_answered(
    stage: Stage, topic: Topic, caplog: pytest.LogCaptureFixture, reason: Reason, detail: str
) -> None:
    """Else whoever may subscribe would learn what listens where, and which names there are."""
    caplog.set_level("INFO")
    with pytest.raises(AzureError, match="no answer: the endpoint could not be reached") as refused:
        await ask(stage, topic, "billing", Attempt(AttemptResult.FAILED, reason, 0, detail, 1))
    assert detail not in str(refused.value.message)
    assert reason.value not in str(refused.value.message)
    assert detail in caplog.text


@pytest.mark.parametrize("said", ["", "null", "[]", '"code"', '{"validationResponse": null}', "<html>"])
async def test_a_response_without_the_code_leaves_manual_validation_open(
    stage: Stage, topic: Topic, said: str
) -> None:
    answer = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, said, 1)
    assert await ask(stage, topic, "billing", answer) is not None
    assert await questions(stage) == ["billing"]


@pytest.mark.parametrize("code", [1, "", "another", ["code"]])
async def test_another_code_is_a_refusal(stage: Stage, topic: Topic, code: object) -> None:
    said = orjson.dumps({"validationResponse": code}).decode()
    with pytest.raises(AzureError, match="another code"):
        await ask(stage, topic, "billing", Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, said, 1))

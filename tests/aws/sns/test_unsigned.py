"""With signatures required, the links in messages work without one, and nothing else does."""

import pytest

from redrive.access.keys import Keyring
from redrive.aws.gateway.authentication import Holders, SigV4Verifier
from redrive.aws.gateway.gateway import Gateway
from redrive.model.http import Request, Response
from tests.aws.sns.parts import TOKENS
from tests.aws.sns.stage import Stage, topic_arn


@pytest.fixture
def gateway(stage: Stage) -> Gateway:
    engine = stage.engine
    verifying = SigV4Verifier(Holders(Keyring(engine.parts.store, stage.clock)), stage.clock)
    return Gateway(engine.runtime, verifying, {"sns": stage.sns}, None)


async def _follow(gateway: Gateway, query: str, headers: dict[str, str] | None = None) -> Response:
    sent = {"host": "localhost:4566", **(headers or {})}
    return await gateway.answer(Request("GET", "/", query, sent, b""))


async def test_links_are_followed_unsigned(stage: Stage, gateway: Gateway) -> None:
    topic = await stage.topic()
    arn = await stage.subscribe(topic, "http", "http://example.com/hook")
    token = (await stage.asked("http"))["Token"]
    answer = await _follow(gateway, f"Action=ConfirmSubscription&TopicArn={topic}&Token={token}")
    assert (answer.status, arn.encode() in answer.body) == (200, True)
    answer = await _follow(gateway, f"Action=Unsubscribe&SubscriptionArn={arn}&Token={TOKENS.token(arn)}")
    assert (answer.status, b"<UnsubscribeResponse" in answer.body) == (200, True)


@pytest.mark.parametrize("action", ["Publish", "DeleteTopic", "ListTopics", "Subscribe", "Unknown"])
async def test_no_other_operation_is_open_without_a_signature(gateway: Gateway, action: str) -> None:
    query = f"Action={action}&Version=2010-03-31&TopicArn={topic_arn('t')}&Message=m"
    answer = await _follow(gateway, query)
    assert (answer.status, b"MissingAuthenticationToken" in answer.body) == (403, True)


async def test_a_wrong_signature_is_refused_where_none_is_needed(gateway: Gateway) -> None:
    signed = (
        "AWS4-HMAC-SHA256 Credential=AKIA0000000000000000/20260101/us-east-1/sns/aws4_request,"
        f" SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
    )
    arn = f"{topic_arn('t')}:45f03920-f890-4a2f-bd77-32f9689b8013"
    query = f"Action=Unsubscribe&SubscriptionArn={arn}&Token={TOKENS.token(arn)}"
    answer = await _follow(gateway, query, {"authorization": signed, "x-amz-date": "20260101T000000Z"})
    assert (answer.status, b"InvalidClientTokenId" in answer.body) == (403, True)
    assert (await _follow(gateway, query)).status == 200

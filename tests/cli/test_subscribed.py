from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest

from redrive.cli.main import main
from tests.services.server import serving

ACCOUNT = "123456789012"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:orders"


@pytest.fixture(scope="module")
def sns() -> Iterator[Any]:
    with serving("sqlite://:memory:") as server:
        client = boto3.client(
            "sns",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id=ACCOUNT,
            aws_secret_access_key="secret",
        )
        client.create_topic(Name="orders")
        yield client
        client.close()


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)


def subscribed(sns: Any, protocol: str, endpoint: str, **attributes: str) -> str:
    answer = sns.subscribe(
        TopicArn=TOPIC,
        Protocol=protocol,
        Endpoint=endpoint,
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )
    arn: str = answer["SubscriptionArn"]
    return arn


def said(sns: Any, arn: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["schedule", "--endpoint-url", sns.meta.endpoint_url, "--subscription", arn]) == 0
    return capsys.readouterr().out.splitlines()[0]


def test_a_webhooks_effective_policy(sns: Any, capsys: pytest.CaptureFixture[str]) -> None:
    policy = '{"healthyRetryPolicy":{"numRetries":5,"minDelayTarget":10,"maxDelayTarget":10}}'
    arn = subscribed(sns, "https", "https://billing.example/own", DeliveryPolicy=policy)
    assert said(sns, arn, capsys) == (
        "https://billing.example/own: 6 attempts, the last 48.75 s to 50 s after publication"
    )


def test_a_webhook_without_a_policy(sns: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arn = subscribed(sns, "https", "https://billing.example/default")
    assert said(sns, arn, capsys).startswith("https://billing.example/default: 4 attempts, ")


def test_a_queues_subscription_shows_the_schedule_of_managed_endpoints(
    sns: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    arn = subscribed(sns, "sqs", f"arn:aws:sqs:us-east-1:{ACCOUNT}:fulfilment")
    assert said(sns, arn, capsys).startswith(
        f"arn:aws:sqs:us-east-1:{ACCOUNT}:fulfilment: 100,016 attempts, "
    )


@pytest.mark.parametrize(
    ("arn", "complaint"),
    [
        (f"{TOPIC}:00000000-0000-0000-0000-000000000000", "redrive: Subscription does not exist\n"),
        ("orders", "redrive: An ARN must have at least 6 elements, not 1\n"),
    ],
)
def test_a_missing_subscription_is_named_in_the_error(
    arn: str, complaint: str, sns: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", "--url", sns.meta.endpoint_url, "--subscription", arn]) == 1
    assert capsys.readouterr().err == complaint


def test_an_unreachable_server_is_named_in_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    arn = f"{TOPIC}:00000000-0000-0000-0000-000000000000"
    assert main(["schedule", "--endpoint-url", "http://127.0.0.1:1", "--subscription", arn]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err

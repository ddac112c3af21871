"""Answers of Amazon's SNS that were recorded, word for word."""

import orjson
import pytest

from tests.contracts.aws.sns.client import ACCOUNT, Sns
from tests.contracts.aws.sqs.client import refused
from tests.services.server import Server

BOTH = {"PlatformPrincipal": "dummy", "PlatformCredential": "dummy"}


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "cannot be empty"),
        ("a" * 257, "must be at most 256 characters long"),
        ("@name", "must contain only characters 'a'-'z', 'A'-'Z', '0'-'9', '_', '-', and '.'"),
    ],
)
def test_a_name_that_no_application_may_have(sns: Sns, name: str, reason: str) -> None:
    with refused("InvalidParameter", f"Invalid parameter: {name} Reason: {reason}"):
        sns.client.create_platform_application(Name=name, Platform="ADM", Attributes=BOTH)


@pytest.mark.parametrize(
    ("given", "missing"),
    [("PlatformPrincipal", "PlatformCredential"), ("PlatformCredential", "PlatformPrincipal")],
)
def test_one_half_of_a_platforms_credentials_is_refused(sns: Sns, given: str, missing: str) -> None:
    text = f"Invalid parameter: Attributes Reason: {given} attribute provided without {missing}"
    with refused("InvalidParameter", text):
        sns.client.create_platform_application(Name="app", Platform="ADM", Attributes={given: "dummy"})


@pytest.mark.parametrize("operation", ["get_platform_application_attributes", "delete_platform_application"])
def test_an_application_by_a_text_that_is_no_arn(sns: Sns, operation: str) -> None:
    text = "Invalid parameter: PlatformApplicationArn Reason: An ARN must have at least 6 elements, not 1"
    with refused("InvalidParameter", text):
        getattr(sns.client, operation)(PlatformApplicationArn="not-an-arn")


@pytest.mark.parametrize(
    ("pattern", "reason", "column"),
    [
        ({"suffix": "test"}, "Unsupported anything-but pattern: suffix", 36),
        ({"exists": False}, "Unsupported anything-but pattern: exists", 40),
        ({"wrong-operator": None}, "Unsupported anything-but pattern: wrong-operator", 47),
        ({"prefix": False}, "prefix match pattern must be a string", 40),
    ],
)
def test_a_pattern_that_anything_but_does_not_take(
    sns: Sns, pattern: dict[str, object], reason: str, column: int
) -> None:
    topic, queue = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"key": [{"anything-but": pattern}]}).decode()
    with refused(
        "InvalidParameter",
        f"Invalid parameter: Attributes Reason: FilterPolicy: {reason}\n"
        f' at [Source: (String)"{policy}"; line: 1, column: {column}]',
    ):
        topic.subscribe("sqs", queue.arn, FilterPolicy=policy)


def test_a_subscription_shows_its_subscriber_as_a_user(sns: Sns) -> None:
    arn = sns.topic().subscribe("sqs", sns.sqs.queue().arn)
    shown = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert shown["SubscriptionPrincipal"] == f"arn:aws:iam::{ACCOUNT}:user/{ACCOUNT}"


@pytest.mark.parametrize("region", ["", "us-east-1", "eu-central-1"])
def test_the_arn_of_a_data_identifier_may_name_a_region(sns: Sns, region: str) -> None:
    statement = {
        "DataDirection": "Inbound",
        "Principal": ["*"],
        "DataIdentifier": [f"arn:aws:dataprotection:{region}:aws:data-identifier/EmailAddress"],
        "Operation": {"Deny": {}},
    }
    policy = orjson.dumps({"Name": "p", "Version": "2021-06-01", "Statement": [statement]}).decode()
    topic = sns.topic()
    sns.client.put_data_protection_policy(ResourceArn=topic.arn, DataProtectionPolicy=policy)
    with refused("AuthorizationError", status=403):
        topic.publish("write to ann@example.com")

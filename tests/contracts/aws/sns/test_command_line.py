"""Every operation of SNS once through the AWS CLI, unmodified, each call a process of its own.

A call costs half a second, nearly all of it the CLI's own start; what does not wait for one another is called at
the same time.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.sns.client import Webhook, new_name
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Sqs
from tests.services.clients import CommandFailedError, cli
from tests.services.server import Server

FRIEND = "200000000000"
PHONE = "+33000000000"
SERVICE_ERROR, USAGE_ERROR = 255, 2  # exit statuses of the CLI's version 1

Aws = Callable[..., Any]


# One store: the other contracts try what could differ between stores, and a call costs half a second.
pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def aws(server: Server, tmp_path: Path) -> Aws:
    return cli(server, tmp_path, "sns")


@pytest.fixture
def together(aws: Aws) -> Iterator[Callable[..., list[Any]]]:
    """Makes several calls at the same time; their answers in order."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        yield lambda *calls: list(pool.map(lambda call: aws(*call), calls))


def _fails(aws: Aws, *arguments: str) -> tuple[int, str]:
    """The exit status of a call that is refused, and the last line it says."""
    with pytest.raises(CommandFailedError) as failed:
        aws(*arguments)
    return failed.value.status, str(failed.value).splitlines()[-1].removeprefix("aws: error: ")


def test_the_cli_manages_topics(aws: Aws, together: Callable[..., list[Any]]) -> None:
    name = new_name()
    tags = ("--tags", "Key=a,Value=b", "Key=c,Value=d")
    arn = aws("create-topic", "--name", name, "--attributes", "DisplayName=Orders", *tags)["TopicArn"]
    assert arn == f"arn:aws:sns:{REGION}:{ACCOUNT}:{name}"
    topic, resource = ("--topic-arn", arn), ("--resource-arn", arn)
    protection = (
        '{"Name":"n","Version":"2021-06-01","Statement":[{"DataDirection":"Outbound","Principal":["*"],'
        '"DataIdentifier":["arn:aws:dataprotection::aws:data-identifier/Ssn-US"],"Operation":{"Deny":{}}}]}'
    )
    permission = ("--label", "l", "--aws-account-id", FRIEND, "--action-name", "Publish")
    listed, labels, *nothing = together(
        ("list-topics",),
        ("list-tags-for-resource", *resource),
        ("set-topic-attributes", *topic, "--attribute-name", "SignatureVersion", "--attribute-value", "2"),
        ("add-permission", *topic, *permission),
        ("put-data-protection-policy", *resource, "--data-protection-policy", protection),
    )
    assert listed == {"Topics": [{"TopicArn": arn}]}
    assert labels == {"Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}]}
    assert nothing == [None, None, None]
    shown, kept, *nothing = together(
        ("get-topic-attributes", *topic),
        ("get-data-protection-policy", *resource),
        ("tag-resource", *resource, "--tags", "Key=e,Value=f"),
    )
    attributes = shown["Attributes"]
    assert (attributes["DisplayName"], attributes["SignatureVersion"]) == ("Orders", "2")
    assert orjson.loads(attributes["Policy"])["Statement"][-1]["Sid"] == "l"
    assert kept == {"DataProtectionPolicy": protection}
    together(
        ("untag-resource", *resource, "--tag-keys", "a", "c"), ("remove-permission", *topic, "--label", "l")
    )
    labels, shown = together(("list-tags-for-resource", *resource), ("get-topic-attributes", *topic))
    assert labels == {"Tags": [{"Key": "e", "Value": "f"}]}
    assert "l" not in {one["Sid"] for one in orjson.loads(shown["Attributes"]["Policy"])["Statement"]}
    assert aws("delete-topic", *topic) is None
    assert _fails(aws, "get-topic-attributes", *topic) == (
        SERVICE_ERROR,
        "An error occurred (NotFound) when calling the GetTopicAttributes operation: Topic does not exist",
    )


def test_subscriptions_and_messages(server: Server, aws: Aws, together: Callable[..., list[Any]]) -> None:
    queue = Sqs(server).queue()
    topic = ("--topic-arn", aws("create-topic", "--name", new_name())["TopicArn"])
    with Webhook().serving() as webhook:
        asked, subscribed = together(
            ("subscribe", *topic, "--protocol", "http", "--notification-endpoint", webhook.url),
            ("subscribe", *topic, "--protocol", "sqs", "--notification-endpoint", queue.arn),
        )
        assert asked == {"SubscriptionArn": "pending confirmation"}
        arn = subscribed["SubscriptionArn"]
        token = ("--token", webhook.next().document["Token"])
        subscription = ("--subscription-arn", arn)
        raw = ("--attribute-name", "RawMessageDelivery", "--attribute-value", "true")
        policy = orjson.dumps({"deadLetterTargetArn": Sqs(server).queue().arn}).decode()
        redrive = ("--attribute-name", "RedrivePolicy", "--attribute-value", policy)
        confirmed, *_ = together(
            ("confirm-subscription", *topic, *token),
            ("set-subscription-attributes", *subscription, *raw),
            ("set-subscription-attributes", *subscription, *redrive),
        )
        both = {arn, confirmed["SubscriptionArn"]}
        everybodys, topics, shown = together(
            ("list-subscriptions",),
            ("list-subscriptions-by-topic", *topic),
            ("get-subscription-attributes", *subscription),
        )
        assert {one["SubscriptionArn"] for one in everybodys["Subscriptions"]} == both
        assert {one["SubscriptionArn"] for one in topics["Subscriptions"]} == both
        attributes = shown["Attributes"]
        assert (attributes["RawMessageDelivery"], attributes["RedrivePolicy"]) == ("true", policy)
        attribute = '{"n": {"DataType": "Number", "StringValue": "7"}}'
        sent = aws("publish", *topic, "--message", "one", "--subject", "s", "--message-attributes", attribute)
        document = webhook.next().document
        assert (document["MessageId"], document["Subject"]) == (sent["MessageId"], "s")
        assert document["MessageAttributes"] == {"n": {"Type": "Number", "Value": "7"}}
        entries = '[{"Id": "a", "Message": "two"}, {"Id": "b", "Message": ""}]'
        batch, _ = together(
            ("publish-batch", *topic, "--publish-batch-request-entries", entries),
            ("unsubscribe", "--subscription-arn", confirmed["SubscriptionArn"]),
        )
    assert [one["Id"] for one in batch["Successful"]] == ["a"]
    assert [(one["Id"], one["Code"], one["SenderFault"]) for one in batch["Failed"]] == [
        ("b", "InvalidParameter", True)
    ]
    received = queue.receive()
    assert sorted(message["Body"] for message in received) == ["one", "two"]


def test_the_cli_manages_platform_applications_and_devices(
    aws: Aws, together: Callable[..., list[Any]]
) -> None:
    credential = ("--attributes", "PlatformCredential=secret")
    made = aws("create-platform-application", "--name", "app", "--platform", "GCM", *credential)
    application = ("--platform-application-arn", made["PlatformApplicationArn"])
    endpoint, _ = together(
        ("create-platform-endpoint", *application, "--token", "t", "--custom-user-data", "u"),
        ("set-platform-application-attributes", *application, "--attributes", "SuccessFeedbackSampleRate=5"),
    )
    device = ("--endpoint-arn", endpoint["EndpointArn"])
    applications, shown, devices, _ = together(
        ("list-platform-applications",),
        ("get-platform-application-attributes", *application),
        ("list-endpoints-by-platform-application", *application),
        ("set-endpoint-attributes", *device, "--attributes", "Enabled=false"),
    )
    attributes = {"Enabled": "true", "SuccessFeedbackSampleRate": "5"}
    assert shown == {"Attributes": attributes}
    assert applications["PlatformApplications"] == [
        {"PlatformApplicationArn": made["PlatformApplicationArn"], "Attributes": attributes}
    ]
    assert [one["EndpointArn"] for one in devices["Endpoints"]] == [endpoint["EndpointArn"]]
    of_device = aws("get-endpoint-attributes", *device)["Attributes"]
    assert of_device == {"Token": "t", "CustomUserData": "u", "Enabled": "false"}
    together(("delete-endpoint", *device), ("delete-platform-application", *application))
    assert aws("list-platform-applications") == {"PlatformApplications": []}


def test_the_cli_manages_text_message_settings(aws: Aws, together: Callable[..., list[Any]]) -> None:
    together(
        ("set-sms-attributes", "--attributes", "DefaultSenderID=redrive"),
        ("create-sms-sandbox-phone-number", "--phone-number", PHONE),
        ("opt-in-phone-number", "--phone-number", PHONE),
    )
    shown, opted_out, everybody, status, numbers, origins = together(
        ("get-sms-attributes", "--attributes", "DefaultSenderID"),
        ("check-if-phone-number-is-opted-out", "--phone-number", PHONE),
        ("list-phone-numbers-opted-out",),
        ("get-sms-sandbox-account-status",),
        ("list-sms-sandbox-phone-numbers",),
        ("list-origination-numbers",),
    )
    assert shown == {"attributes": {"DefaultSenderID": "redrive"}}
    assert (opted_out, everybody) == ({"isOptedOut": False}, {"phoneNumbers": []})
    assert (status, origins) == ({"IsInSandbox": False}, {"PhoneNumbers": []})
    assert numbers == {"PhoneNumbers": [{"PhoneNumber": PHONE, "Status": "Pending"}]}
    wrong = ("--phone-number", PHONE, "--one-time-password", "0000000")
    status, said = _fails(aws, "verify-sms-sandbox-phone-number", *wrong)
    assert (status, "(VerificationException)" in said) == (SERVICE_ERROR, True)
    assert aws("delete-sms-sandbox-phone-number", "--phone-number", PHONE) is None


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("create-topic", "--name", "a@b"), SERVICE_ERROR, "Invalid parameter: Topic Name"),
        (
            ("publish", "--topic-arn", f"arn:aws:sns:eu-west-1:{ACCOUNT}:t", "--message", "m"),
            SERVICE_ERROR,
            "Invalid parameter: TopicArn",
        ),
        (
            ("get-endpoint-attributes", "--endpoint-arn", "nothing"),
            SERVICE_ERROR,
            "Invalid parameter: EndpointArn Reason: An ARN must have at least 6 elements, not 1",
        ),
        (("publish",), USAGE_ERROR, "the following arguments are required: --message"),
    ],
)
def test_the_cli_shows_refusals_as_they_are_worded(
    aws: Aws, arguments: tuple[str, ...], status: int, said: str
) -> None:
    stopped, line = _fails(aws, *arguments)
    operation = "".join(word.capitalize() for word in arguments[0].split("-"))
    opening = f"An error occurred (InvalidParameter) when calling the {operation} operation: "
    assert (stopped, line) == (status, (opening if status == SERVICE_ERROR else "") + said)

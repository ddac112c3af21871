"""Requests to SNS that were right once: its 42 operations in the Query protocol, with policies and fields spoilt."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from hypothesis import strategies as st

from redrive.aws.sns.documents.errors import PAGES
from redrive.model.http import Request
from tests.fuzz.sns_world import (
    APPLICATION,
    ARCHIVE,
    CLIENT,
    DEVICE,
    FIFO,
    PHONE,
    QUEUE,
    STANDARD,
    SUBSCRIPTION,
    TOKEN,
)
from tests.fuzz.spoiling import TEXTS, spoilt, spoilt_forms

_POLICY: Final = json.dumps(
    {
        "Version": "2008-10-17",
        "Id": "p",
        "Statement": [
            {
                "Sid": "s",
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": ["SNS:Publish", "SNS:Subscribe"],
                "Resource": STANDARD,
                "Condition": {"StringEquals": {"AWS:SourceOwner": "000000000000"}},
            }
        ],
    }
)
_RETRIES: Final = {
    "minDelayTarget": 1,
    "maxDelayTarget": 20,
    "numRetries": 10,
    "numNoDelayRetries": 1,
    "numMinDelayRetries": 2,
    "numMaxDelayRetries": 3,
    "backoffFunction": "exponential",
}
_TOPIC_DELIVERY: Final = json.dumps(
    {
        "http": {
            "defaultHealthyRetryPolicy": _RETRIES,
            "disableSubscriptionOverrides": False,
            "defaultThrottlePolicy": {"maxReceivesPerSecond": 5},
            "defaultRequestPolicy": {"headerContentType": "application/json"},
        }
    }
)
_DELIVERY: Final = json.dumps(
    {
        "healthyRetryPolicy": _RETRIES,
        "throttlePolicy": {"maxReceivesPerSecond": 5},
        "requestPolicy": {"headerContentType": "text/plain"},
    }
)
_FILTER: Final = json.dumps(
    {
        "store": ["a", {"prefix": "b"}, {"anything-but": ["c"]}],
        "price": [{"numeric": [">", 0, "<=", 1e2]}, {"exists": True}],
        "$or": [{"ip": [{"cidr": "10.0.0.0/8"}]}, {"name": [{"wildcard": "a*"}, {"suffix": "x"}]}],
    }
)
_PROTECTION: Final = json.dumps(
    {
        "Name": "pii",
        "Version": "2021-06-01",
        "Statement": [
            {
                "DataDirection": "Inbound",
                "Principal": ["*"],
                "DataIdentifier": ["arn:aws:dataprotection::aws:data-identifier/EmailAddress"],
                "Operation": {"Deny": {}},
            },
            {
                "DataDirection": "Outbound",
                "Principal": ["123456789012"],
                "DataIdentifier": ["arn:aws:dataprotection::aws:data-identifier/Ssn-US", "x"],
                "Operation": {"Deidentify": {"MaskConfig": {"MaskWithCharacter": "#"}}},
            },
            {
                "DataDirection": "Inbound",
                "Principal": ["*"],
                "DataIdentifier": ["x"],
                "Operation": {
                    "Audit": {
                        "SampleRate": "99",
                        "FindingsDestination": {"CloudWatchLogs": {"LogGroup": "/aws/vendedlogs/f"}},
                        "NoFindingsDestination": {},
                    }
                },
            },
        ],
        "Configuration": {"CustomDataIdentifier": [{"Name": "x", "Regex": "[a-e]+"}]},
    }
)
_REDRIVE: Final = json.dumps({"deadLetterTargetArn": QUEUE})
_REPLAY: Final = json.dumps({"PointType": "Timestamp", "StartingPoint": "2026-01-01T00:00:00.000Z"})
_ATTRIBUTES: Final = {
    "text": {"DataType": "String", "StringValue": "v"},
    "several": {"DataType": "String.Array", "StringValue": '["a",1,null]'},
    "number": {"DataType": "Number", "StringValue": "1"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\0\xff"},
}
_STRUCTURED: Final = json.dumps({"default": "d", "sqs": "s", "GCM": json.dumps({"notification": {}})})
_TAGS: Final = [{"Key": "a", "Value": "b"}]
_TOPIC_ATTRIBUTES: Final = {
    "Policy": _POLICY,
    "DeliveryPolicy": _TOPIC_DELIVERY,
    "DisplayName": "d",
    "KmsMasterKeyId": "key",
    "SignatureVersion": "2",
    "TracingConfig": "Active",
    "SQSSuccessFeedbackSampleRate": "50",
    "SQSSuccessFeedbackRoleArn": "arn:aws:iam::000000000000:role/r",
}
_SUBSCRIPTION_ATTRIBUTES: Final = {
    "FilterPolicy": _FILTER,
    "FilterPolicyScope": "MessageBody",
    "RawMessageDelivery": "true",
    "RedrivePolicy": _REDRIVE,
}
_ENDPOINT: Final = {"Enabled": "true", "Token": "u", "CustomUserData": "c"}
_CREDENTIAL: Final = {"PlatformCredential": "secret", "SuccessFeedbackSampleRate": "5"}

Right = tuple[str, Mapping[str, Any]]


def _second_page(operation: str) -> dict[str, Any]:
    """The token of a list's second page."""
    return dict(PAGES.ending(operation, "0"))


RIGHT: Final[list[Right]] = [
    (
        "AddPermission",
        {"TopicArn": STANDARD, "Label": "l", "AWSAccountId": ["1" * 12], "ActionName": ["Publish"]},
    ),
    ("CheckIfPhoneNumberIsOptedOut", {"phoneNumber": PHONE}),
    ("ConfirmSubscription", {"TopicArn": STANDARD, "Token": TOKEN, "AuthenticateOnUnsubscribe": "true"}),
    ("CreatePlatformApplication", {"Name": "new", "Platform": "GCM", "Attributes": _CREDENTIAL}),
    (
        "CreatePlatformEndpoint",
        {
            "PlatformApplicationArn": APPLICATION,
            "Token": "v",
            "CustomUserData": "c",
            "Attributes": {"Enabled": "true"},
        },
    ),
    ("CreateSMSSandboxPhoneNumber", {"PhoneNumber": "+14255550124", "LanguageCode": "en-US"}),
    (
        "CreateTopic",
        {
            "Name": "new",
            "Attributes": _TOPIC_ATTRIBUTES,
            "Tags": _TAGS,
            "DataProtectionPolicy": _PROTECTION,
        },
    ),
    (
        "CreateTopic",
        {
            "Name": "new.fifo",
            "Attributes": {
                "FifoTopic": "true",
                "ContentBasedDeduplication": "true",
                "FifoThroughputScope": "MessageGroup",
                "ArchivePolicy": '{"MessageRetentionPeriod":"30"}',
            },
        },
    ),
    ("DeleteEndpoint", {"EndpointArn": DEVICE}),
    ("DeletePlatformApplication", {"PlatformApplicationArn": APPLICATION}),
    ("DeleteSMSSandboxPhoneNumber", {"PhoneNumber": PHONE}),
    ("DeleteTopic", {"TopicArn": STANDARD}),
    ("GetDataProtectionPolicy", {"ResourceArn": STANDARD}),
    ("GetEndpointAttributes", {"EndpointArn": DEVICE}),
    ("GetPlatformApplicationAttributes", {"PlatformApplicationArn": APPLICATION}),
    ("GetSMSAttributes", {"attributes": ["DefaultSMSType"]}),
    ("GetSMSSandboxAccountStatus", {}),
    ("GetSubscriptionAttributes", {"SubscriptionArn": SUBSCRIPTION}),
    ("GetTopicAttributes", {"TopicArn": STANDARD}),
    (
        "ListEndpointsByPlatformApplication",
        {"PlatformApplicationArn": APPLICATION, **_second_page("ListEndpointsByPlatformApplication")},
    ),
    ("ListOriginationNumbers", {"MaxResults": 1, **_second_page("ListOriginationNumbers")}),
    ("ListPhoneNumbersOptedOut", _second_page("ListPhoneNumbersOptedOut")),
    ("ListPlatformApplications", _second_page("ListPlatformApplications")),
    ("ListSMSSandboxPhoneNumbers", {"MaxResults": 1, **_second_page("ListSMSSandboxPhoneNumbers")}),
    ("ListSubscriptions", _second_page("ListSubscriptions")),
    ("ListSubscriptionsByTopic", {"TopicArn": STANDARD, **_second_page("ListSubscriptionsByTopic")}),
    ("ListTagsForResource", {"ResourceArn": STANDARD}),
    ("ListTopics", _second_page("ListTopics")),
    ("OptInPhoneNumber", {"phoneNumber": PHONE}),
    (
        "Publish",
        {
            "TopicArn": STANDARD,
            "Message": _STRUCTURED,
            "MessageStructure": "json",
            "Subject": "s",
            "MessageAttributes": _ATTRIBUTES,
        },
    ),
    (
        "Publish",
        {"TopicArn": FIFO, "Message": "m", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
    ),
    ("Publish", {"PhoneNumber": PHONE, "Message": "m"}),
    ("Publish", {"TargetArn": DEVICE, "Message": _STRUCTURED, "MessageStructure": "json"}),
    (
        "PublishBatch",
        {
            "TopicArn": STANDARD,
            "PublishBatchRequestEntries": [
                {"Id": "1", "Message": "m", "MessageAttributes": _ATTRIBUTES},
                {"Id": "2", "Message": _STRUCTURED, "MessageStructure": "json"},
            ],
        },
    ),
    ("PutDataProtectionPolicy", {"ResourceArn": STANDARD, "DataProtectionPolicy": _PROTECTION}),
    ("RemovePermission", {"TopicArn": STANDARD, "Label": "__default_statement_ID"}),
    ("SetEndpointAttributes", {"EndpointArn": DEVICE, "Attributes": _ENDPOINT}),
    (
        "SetPlatformApplicationAttributes",
        {"PlatformApplicationArn": APPLICATION, "Attributes": _CREDENTIAL},
    ),
    ("SetSMSAttributes", {"attributes": {"MonthlySpendLimit": "1", "DefaultSMSType": "Transactional"}}),
    *(
        (
            "SetSubscriptionAttributes",
            {"SubscriptionArn": SUBSCRIPTION, "AttributeName": name, "AttributeValue": value},
        )
        for name, value in _SUBSCRIPTION_ATTRIBUTES.items()
    ),
    *(
        ("SetTopicAttributes", {"TopicArn": STANDARD, "AttributeName": name, "AttributeValue": value})
        for name, value in _TOPIC_ATTRIBUTES.items()
    ),
    (
        "Subscribe",
        {
            "TopicArn": STANDARD,
            "Protocol": "https",
            "Endpoint": "https://hook.example/new",
            "Attributes": {"DeliveryPolicy": _DELIVERY, "FilterPolicy": _FILTER},
            "ReturnSubscriptionArn": True,
        },
    ),
    (
        "Subscribe",
        {
            "TopicArn": ARCHIVE,
            "Protocol": "sqs",
            "Endpoint": QUEUE,
            "Attributes": {"ReplayPolicy": _REPLAY, **_SUBSCRIPTION_ATTRIBUTES},
        },
    ),
    ("Subscribe", {"TopicArn": STANDARD, "Protocol": "application", "Endpoint": DEVICE}),
    ("TagResource", {"ResourceArn": STANDARD, "Tags": _TAGS}),
    ("Unsubscribe", {"SubscriptionArn": SUBSCRIPTION}),
    ("UntagResource", {"ResourceArn": STANDARD, "TagKeys": ["a"]}),
    ("VerifySMSSandboxPhoneNumber", {"PhoneNumber": PHONE, "OneTimePassword": "000000"}),
]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, with stand-ins for what only the server knows."""

    operation: str
    form: bytes

    def request(self, known: Mapping[str, str]) -> Request:
        """The request, with what the server made in the place of the stand-ins."""
        form = self.form
        for name, value in known.items():
            form = form.replace(quote_plus(name).encode(), quote_plus(value).encode())
        headers = {"host": "localhost", "content-type": "application/x-www-form-urlencoded"}
        if self.operation == "Unsubscribe":  # whoever shows no credential needs the token of a link
            headers["authorization"] = "Credential=000000000000/20260101/us-east-1/sns/aws4_request"
        return Request("POST", "/", "", headers, form)


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """A request of any operation: its policies spoilt, then its fields."""
    operation, right = draw(st.sampled_from(RIGHT))
    params = deepcopy(dict(right))
    policies = list(_policies(params))
    if policies and draw(st.booleans()):
        holder, key = draw(st.sampled_from(policies))
        holder[key] = _spoilt_policy(draw, holder[key])
    form = CLIENT.request(operation, params).body
    if policies and draw(st.booleans()):
        return Sent(operation, form)
    return Sent(operation, draw(spoilt_forms(form)))


def _policies(params: Any) -> Iterator[tuple[Any, Any]]:
    """The texts within that are documents themselves."""
    for key in list(params) if isinstance(params, dict) else range(len(params)):
        value = params[key]
        if isinstance(value, dict | list):
            yield from _policies(value)
        elif isinstance(value, str) and value.startswith("{"):
            yield params, key


def _spoilt_policy(draw: st.DrawFn, text: str) -> str:
    document = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        document = spoilt(draw, document)
    written = json.dumps(document, ensure_ascii=draw(st.booleans())).encode(errors="replace").decode()
    match draw(st.sampled_from([*[""] * 12, "deep", "cut", "text", "long"])):
        case "deep":
            return '{"a":' * 1500 + "1" + "}" * 1500
        case "cut":
            return written[: draw(st.integers(0, len(written)))]
        case "text":
            return draw(TEXTS).encode(errors="replace").decode()
        case "long":
            return written.replace("1", "9" * 5000, 1)
        case _:
            return written

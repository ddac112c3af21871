"""Each service offers the operations of its published model, each by the method called like it."""

import inspect

import pytest

from redrive.aws.kit.service import operations_of, snake_case
from redrive.aws.wire.service import Service
from tests.aws.cloudwatch.stage import stage

SERVICES = ("cloudwatch", "logs", "s3", "sns", "sqs", "sts")
OFFERED_IN_PART = {
    "cloudwatch": {
        "DeleteAlarms",
        "DeleteDashboards",
        "DescribeAlarmHistory",
        "DescribeAlarms",
        "DescribeAlarmsForMetric",
        "DisableAlarmActions",
        "EnableAlarmActions",
        "GetDashboard",
        "GetMetricData",
        "GetMetricStatistics",
        "ListDashboards",
        "ListMetrics",
        "ListTagsForResource",
        "PutCompositeAlarm",
        "PutDashboard",
        "PutMetricAlarm",
        "PutMetricData",
        "SetAlarmState",
        "TagResource",
        "UntagResource",
    },
    "logs": {
        "CreateLogGroup",
        "CreateLogStream",
        "DeleteLogGroup",
        "DeleteLogStream",
        "DeleteMetricFilter",
        "DeleteResourcePolicy",
        "DeleteRetentionPolicy",
        "DeleteSubscriptionFilter",
        "DescribeDestinations",
        "DescribeLogGroups",
        "DescribeLogStreams",
        "DescribeMetricFilters",
        "DescribeQueries",
        "DescribeResourcePolicies",
        "DescribeSubscriptionFilters",
        "FilterLogEvents",
        "GetLogEvents",
        "GetQueryResults",
        "ListLogGroups",
        "ListTagsForResource",
        "ListTagsLogGroup",
        "PutLogEvents",
        "PutMetricFilter",
        "PutResourcePolicy",
        "PutRetentionPolicy",
        "PutSubscriptionFilter",
        "StartLiveTail",
        "StartQuery",
        "StopQuery",
        "TagLogGroup",
        "TagResource",
        "TestMetricFilter",
        "UntagLogGroup",
        "UntagResource",
    },
    "s3": {
        "AbortMultipartUpload",
        "CompleteMultipartUpload",
        "CopyObject",
        "CreateBucket",
        "CreateMultipartUpload",
        "DeleteBucket",
        "DeleteBucketPolicy",
        "DeleteBucketTagging",
        "DeleteObject",
        "DeleteObjectTagging",
        "DeleteObjects",
        "DeletePublicAccessBlock",
        "GetBucketAccelerateConfiguration",
        "GetBucketAcl",
        "GetBucketCors",
        "GetBucketEncryption",
        "GetBucketLifecycleConfiguration",
        "GetBucketLocation",
        "GetBucketLogging",
        "GetBucketNotificationConfiguration",
        "GetBucketOwnershipControls",
        "GetBucketPolicy",
        "GetBucketPolicyStatus",
        "GetBucketReplication",
        "GetBucketRequestPayment",
        "GetBucketTagging",
        "GetBucketVersioning",
        "GetBucketWebsite",
        "GetObject",
        "GetObjectLockConfiguration",
        "GetObjectTagging",
        "GetPublicAccessBlock",
        "HeadBucket",
        "HeadObject",
        "ListBuckets",
        "ListMultipartUploads",
        "ListObjects",
        "ListObjectsV2",
        "ListParts",
        "PutBucketNotificationConfiguration",
        "PutBucketPolicy",
        "PutBucketTagging",
        "PutObject",
        "PutObjectTagging",
        "PutPublicAccessBlock",
        "UploadPart",
        "UploadPartCopy",
    },
    "sts": {
        "AssumeRole",
        "DecodeAuthorizationMessage",
        "GetAccessKeyInfo",
        "GetCallerIdentity",
        "GetFederationToken",
        "GetSessionToken",
    },
}


@pytest.mark.parametrize(
    ("operation", "method"),
    [
        ("Publish", "publish"),
        ("SendMessageBatch", "send_message_batch"),
        ("GetSMSAttributes", "get_sms_attributes"),
        ("CreateSMSSandboxPhoneNumber", "create_sms_sandbox_phone_number"),
        ("CheckIfPhoneNumberIsOptedOut", "check_if_phone_number_is_opted_out"),
    ],
)
def test_the_method_of_an_operation_has_its_name_in_snake_case(operation: str, method: str) -> None:
    assert snake_case(operation) == method


async def test_no_operation_is_missing() -> None:
    async with stage() as made:
        await made.server.parts.open_all()
        for service in SERVICES:
            expected = OFFERED_IN_PART.get(service, Service.load(service).operation_names)
            assert set(made.facade(service).operations) == expected, service


async def test_every_method_that_looks_like_an_operation_is_one() -> None:
    """A misspelt method would not be offered, and no type checker would say so."""
    async with stage() as made:
        await made.server.parts.open_all()
        for service in SERVICES:
            operations = made.facade(service).operations
            methods = {snake_case(operation) for operation in operations}
            verbs = [inspect.unwrap(verb) for verb in operations.values()]
            for part in {verb.__self__ for verb in verbs if inspect.ismethod(verb)}:
                found = {name for name, _ in inspect.getmembers(part, _takes_a_call) if name[0] != "_"}
                assert found <= methods, service


def _takes_a_call(member: object) -> bool:
    if not inspect.iscoroutinefunction(member):
        return False
    return list(inspect.signature(member).parameters) == ["call", "params"]


async def test_two_methods_for_one_operation_are_refused() -> None:
    async with stage() as made:
        part = made.facade("sqs").operations["ListQueues"].__self__
        with pytest.raises(ValueError, match="sqs CreateQueue has 2 methods create_queue"):
            operations_of("sqs", part, part)

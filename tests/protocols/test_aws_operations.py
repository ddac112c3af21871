"""Each service offers the operations of its published model, each by the method called like it."""

import inspect
import random
from collections.abc import Callable

import pytest

from redrive.endpoints.blob_store import BlobStore
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.cloudwatch.facade import CloudWatch
from redrive.protocols.aws.logs.facade import Logs
from redrive.protocols.aws.operations import operations_of, snake_case
from redrive.protocols.aws.s3.facade import S3
from redrive.protocols.aws.sns.facade import Sns
from redrive.protocols.aws.sns.protection.audit import AuditLog
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.aws.sts.facade import Sts
from redrive.protocols.aws.wire.service import Service
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import SimulatedClock
from tests.protocols.sns.parts import SECRET, sns_parts
from tests.protocols.sns.stage import Stage


async def _settle() -> None:
    pass


def _engine() -> Engine:
    return Engine(SqliteStore(None), Runtime(SimulatedClock(0), random.Random(1), "a"), {}, {})


def _sns() -> Sns:
    engine = _engine()
    parts = sns_parts(engine, AuditLog(Stage(), lambda _: None, random.Random(1), "node"))
    return Sns(engine, parts, SECRET)


def _logs() -> Logs:
    return Logs(_engine(), SqliteStore(None), _settle, {}, open_functions=True)


MADE: dict[str, Callable[[], Facade]] = {
    "cloudwatch": lambda: CloudWatch(SqliteStore(None), _settle),
    "logs": _logs,
    "s3": lambda: S3(_engine(), BlobStore("")),
    "sns": _sns,
    "sqs": lambda: Sqs(_engine(), SECRET),
    "sts": Sts,
}
OFFERED_IN_PART = {
    "sts": {"GetCallerIdentity"},
    "s3": {
        *("CreateBucket", "DeleteBucket", "GetBucketLocation", "HeadBucket", "ListBuckets"),
        *("PutObject", "GetObject", "HeadObject", "DeleteObject", "DeleteObjects"),
        *(
            "ListObjects",
            "ListObjectsV2",
            "CopyObject",
            "CreateMultipartUpload",
            "UploadPart",
            "UploadPartCopy",
        ),
        *("CompleteMultipartUpload", "AbortMultipartUpload", "ListParts"),
    },
    "cloudwatch": {"GetMetricData", "GetMetricStatistics", "ListMetrics", "PutMetricData"},
    "logs": {
        *("CreateLogGroup", "DeleteLogGroup", "DescribeLogGroups"),
        *("CreateLogStream", "DeleteLogStream", "DescribeLogStreams"),
        *("PutRetentionPolicy", "DeleteRetentionPolicy"),
        *("PutLogEvents", "GetLogEvents", "FilterLogEvents"),
        *("ListTagsForResource", "TagResource", "UntagResource"),
        *("ListTagsLogGroup", "TagLogGroup", "UntagLogGroup"),
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


@pytest.mark.parametrize("service", MADE)
def test_no_operation_is_missing(service: str) -> None:
    expected = OFFERED_IN_PART.get(service, Service.load(service).operation_names)
    assert set(MADE[service]().operations) == expected


@pytest.mark.parametrize("service", MADE)
def test_every_method_that_looks_like_an_operation_is_one(service: str) -> None:
    """A misspelt method would not be offered, and no type checker would say so."""
    operations = MADE[service]().operations
    methods = {snake_case(operation) for operation in operations}
    for part in {verb.__self__ for verb in operations.values()}:
        found = {name for name, _ in inspect.getmembers(part, _takes_a_call) if not name.startswith("_")}
        assert found <= methods


def _takes_a_call(member: object) -> bool:
    if not inspect.iscoroutinefunction(member):
        return False
    return list(inspect.signature(member).parameters) == ["call", "params"]


def test_two_methods_for_one_operation_are_refused() -> None:
    part = MADE["sqs"]().operations["ListQueues"].__self__
    with pytest.raises(ValueError, match="sqs CreateQueue has 2 methods create_queue"):
        operations_of("sqs", part, part)

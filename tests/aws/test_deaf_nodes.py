"""Operations on a node that has not heard what another one changed, and remembers what was there before."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest

from redrive import app
from redrive.aws.wire.errors import AwsError
from redrive.model.http import Request, Response
from redrive.model.topic import Topic
from redrive.stores.sqlite.store import SqliteStore
from tests.aws.cloudwatch import stage as stages
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage

ROLE = f"arn:aws:iam::{ACCOUNT}:role/delivery"
BUCKET = {"BucketARN": "arn:aws:s3:::events", "RoleARN": ROLE}
TEMPLATE = '{"Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "%s"}}}}'
HTTP = "https://example.org/hook"
SETTINGS = {"azure_endpoints": "letters=AccountName=letters;AccountKey=aw==", "functions": "on"}


class Shared:
    """A store that outlives the nodes that use it; none of them hears of the others (SQLite tells nobody)."""

    def __init__(self) -> None:
        self.real = SqliteStore(None)

    async def open(self) -> None:
        """Nothing is to be done: the fixture has opened the store."""

    async def close(self) -> None:
        """Nothing is to be done: other nodes use the store still."""

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.real, verb)


@pytest.fixture
async def nodes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Stage, Stage]]:
    """A node that has not heard of anything since it began, and another."""
    shared = Shared()
    monkeypatch.setattr(app, "open_store", lambda *_, **__: shared)
    await shared.real.open()
    async with AsyncExitStack() as opened:
        yield (
            await opened.enter_async_context(stages.stage(**SETTINGS)),
            await opened.enter_async_context(stages.stage(**SETTINGS)),
        )
    await shared.real.close()


async def refused(code: str, call: "asyncio.Future[Any] | Any") -> None:
    with pytest.raises(AwsError) as refusal:
        await call
    assert refusal.value.code == code


# ---- log groups ------------------------------------------------------------------------------------------------


async def made_again(deaf: Stage, other: Stage) -> None:
    """Let a node know a log group with a stream that another node deletes and makes again."""
    await deaf.call("logs", "CreateLogGroup", logGroupName="g")
    await deaf.call("logs", "CreateLogStream", logGroupName="g", logStreamName="s")
    await deaf.call("logs", "DescribeLogStreams", logGroupName="g")
    await other.call("logs", "DeleteLogGroup", logGroupName="g")
    await other.call("logs", "CreateLogGroup", logGroupName="g")
    await other.call("logs", "CreateLogStream", logGroupName="g", logStreamName="s")


async def test_a_log_stream_is_made_in_the_group_that_stands(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await made_again(deaf, other)
    await deaf.call("logs", "CreateLogStream", logGroupName="g", logStreamName="t")
    found = await other.call("logs", "DescribeLogStreams", logGroupName="g")
    assert [stream["logStreamName"] for stream in found["logStreams"]] == ["s", "t"]


async def test_a_log_stream_is_made_in_no_group_that_is_gone(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await made_again(deaf, other)
    await other.call("logs", "DeleteLogGroup", logGroupName="g")
    made = deaf.call("logs", "CreateLogStream", logGroupName="g", logStreamName="t")
    await refused("ResourceNotFoundException", made)


async def test_a_log_stream_that_was_made_again_is_deleted(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await made_again(deaf, other)
    await deaf.call("logs", "DeleteLogStream", logGroupName="g", logStreamName="s")
    found = await other.call("logs", "DescribeLogStreams", logGroupName="g")
    assert found["logStreams"] == []


async def test_a_log_group_that_was_made_again_leaves_no_stream(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await made_again(deaf, other)
    await deaf.call("logs", "DeleteLogGroup", logGroupName="g")
    assert await other.server.core.store.find("log_stream", "") == []


async def test_a_filter_is_of_the_group_that_stands(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await made_again(deaf, other)
    transformation = {"metricName": "m", "metricNamespace": "test", "metricValue": "1"}
    await deaf.call(
        "logs",
        "PutMetricFilter",
        logGroupName="g",
        filterName="f",
        filterPattern="",
        metricTransformations=[transformation],
    )
    found = await other.call("logs", "DescribeMetricFilters", logGroupName="g")
    assert [each["filterName"] for each in found["metricFilters"]] == ["f"]
    await deaf.call("logs", "DeleteMetricFilter", logGroupName="g", filterName="f")


# ---- SNS and SQS -----------------------------------------------------------------------------------------------


async def test_a_subscription_that_another_node_confirmed_can_be_ended(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    topic = await deaf.topic()
    made = await deaf.call(
        "sns", "Subscribe", TopicArn=topic, Protocol="https", Endpoint=HTTP, ReturnSubscriptionArn=True
    )
    arn = made["SubscriptionArn"]
    await deaf.call("sns", "GetSubscriptionAttributes", SubscriptionArn=arn)
    (question,) = await other.server.core.store.find("sns_confirmation", "")
    await other.call("sns", "ConfirmSubscription", TopicArn=topic, Token=question.key)
    await deaf.call("sns", "Unsubscribe", SubscriptionArn=arn)
    listed = await other.call("sns", "ListSubscriptionsByTopic", TopicArn=topic)
    assert listed["Subscriptions"] == []


async def test_the_dead_letter_queue_that_another_node_deleted_is_refused(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    letters = await deaf.queue("letters")
    await deaf.call("sqs", "GetQueueUrl", QueueName="letters")
    await other.call("sqs", "DeleteQueue", QueueUrl=letters)
    policy = f'{{"deadLetterTargetArn":"arn:aws:sqs:{REGION}:{ACCOUNT}:letters","maxReceiveCount":3}}'
    made = deaf.call("sqs", "CreateQueue", QueueName="q", Attributes={"RedrivePolicy": policy})
    await refused("InvalidParameterValueException", made)


async def test_an_archive_that_another_node_began_is_dropped(
    nodes: tuple[Stage, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf, other = nodes
    dropped: list[str] = []

    async def drop(topic: Topic) -> None:
        dropped.append(topic.name.name)

    monkeypatch.setattr(deaf.server.core.engine.operations, "drop_archive", drop)
    topic = await deaf.topic("t.fifo", Attributes={"FifoTopic": "true"})
    await deaf.call("sns", "GetTopicAttributes", TopicArn=topic)
    for node, policy in ((other, '{"MessageRetentionPeriod":"5"}'), (deaf, "{}")):
        await node.call(
            "sns",
            "SetTopicAttributes",
            TopicArn=topic,
            AttributeName="ArchivePolicy",
            AttributeValue=policy,
        )
    assert dropped == ["t.fifo"]


# ---- streams, keys and stacks -----------------------------------------------------------------------------------


async def test_a_change_of_a_delivery_stream_keeps_what_another_node_changed(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    await deaf.call("s3", "CreateBucket", Bucket="events")
    await deaf.call(
        "firehose",
        "CreateDeliveryStream",
        DeliveryStreamName="s",
        ExtendedS3DestinationConfiguration=BUCKET,
    )
    await deaf.call("firehose", "DescribeDeliveryStream", DeliveryStreamName="s")
    for node, version, update in (
        (other, "1", {"Prefix": "orders/"}),
        (deaf, "2", {"ErrorOutputPrefix": "errors/"}),
    ):
        await node.call(
            "firehose",
            "UpdateDestination",
            DeliveryStreamName="s",
            CurrentDeliveryStreamVersionId=version,
            DestinationId="destinationId-000000000001",
            ExtendedS3DestinationUpdate=update,
        )
    shown = await deaf.call("firehose", "DescribeDeliveryStream", DeliveryStreamName="s")
    destination = shown["DeliveryStreamDescription"]["Destinations"][0]["ExtendedS3DestinationDescription"]
    assert (destination["Prefix"], destination["ErrorOutputPrefix"]) == ("orders/", "errors/")


async def test_a_key_that_another_node_schedules_for_deletion_is_not_enabled(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    key = (await deaf.call("kms", "CreateKey"))["KeyMetadata"]["KeyId"]
    await deaf.call("kms", "DescribeKey", KeyId=key)
    await other.call("kms", "ScheduleKeyDeletion", KeyId=key)
    await refused("KMSInvalidStateException", deaf.call("kms", "EnableKey", KeyId=key))
    await deaf.call("kms", "CancelKeyDeletion", KeyId=key)


async def test_an_alias_is_compared_with_the_key_that_another_node_gave_it(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    first, second, signing = [
        (await deaf.call("kms", "CreateKey", **params))["KeyMetadata"]["KeyId"]
        for params in ({}, {}, {"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"})
    ]
    await deaf.call("kms", "CreateAlias", AliasName="alias/a", TargetKeyId=first)
    await other.call("kms", "DeleteAlias", AliasName="alias/a")
    await other.call("kms", "CreateAlias", AliasName="alias/a", TargetKeyId=signing)
    update = deaf.call("kms", "UpdateAlias", AliasName="alias/a", TargetKeyId=second)
    await refused("ValidationException", update)


async def test_a_stack_that_another_node_made_again_is_deleted(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    for node, queue in ((deaf, "first"), (other, "second")):
        await node.call("cloudformation", "CreateStack", StackName="s", TemplateBody=TEMPLATE % queue)
        await node.advance(60)
        if node is deaf:
            await deaf.call("cloudformation", "DescribeStacks", StackName="s")
            await other.call("cloudformation", "DeleteStack", StackName="s")
            await other.advance(60)
    await deaf.call("cloudformation", "DeleteStack", StackName="s")
    await deaf.advance(60)
    assert (await other.call("sqs", "ListQueues")).get("QueueUrls", []) == []


async def test_an_empty_patch_of_an_account_keeps_the_role_that_another_node_set(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    set_role = {"op": "replace", "path": "/cloudwatchRoleArn"}
    await deaf.call("apigateway", "UpdateAccount", patchOperations=[{**set_role, "value": ROLE}])
    await deaf.call("apigateway", "GetAccount")
    await other.call("apigateway", "UpdateAccount", patchOperations=[{**set_role, "value": f"{ROLE}-2"}])
    await deaf.call("apigateway", "UpdateAccount", patchOperations=[])
    assert (await deaf.call("apigateway", "GetAccount"))["cloudwatchRoleArn"] == f"{ROLE}-2"


def function(name: str) -> dict[str, Any]:
    """The parameters that make a function."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("app.py", "def handler(event, context): return event")
    code = {"ZipFile": archive.getvalue()}
    return {
        "FunctionName": name,
        "Runtime": "python3.11",
        "Handler": "app.handler",
        "Role": ROLE,
        "Code": code,
    }


async def test_a_function_that_another_node_deleted_is_made(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await deaf.call("lambda", "CreateFunction", **function("f"))
    await deaf.call("lambda", "GetFunctionConfiguration", FunctionName="f")
    await other.call("lambda", "DeleteFunction", FunctionName="f")
    await deaf.call("lambda", "CreateFunction", **function("f"))


async def test_a_change_of_a_mapping_leaves_it_at_the_function_that_another_node_gave_it(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    await deaf.queue("q")
    for name in ("f", "g"):
        await deaf.call("lambda", "CreateFunction", **function(name))
    source = f"arn:aws:sqs:{REGION}:{ACCOUNT}:q"
    made = await deaf.call(
        "lambda", "CreateEventSourceMapping", FunctionName="f", EventSourceArn=source, Enabled=False
    )
    mapping = made["UUID"]
    await deaf.call("lambda", "GetEventSourceMapping", UUID=mapping)
    await other.call("lambda", "UpdateEventSourceMapping", UUID=mapping, FunctionName="g")
    changed = await deaf.call("lambda", "UpdateEventSourceMapping", UUID=mapping, BatchSize=5)
    assert changed["BatchSize"] == 5
    assert changed["FunctionArn"].endswith(":g")


# ---- Event Grid ------------------------------------------------------------------------------------------------

_GROUP = f"/subscriptions/00000000-0000-0000-0000-{ACCOUNT}/resourceGroups/rg"
_TOPIC = f"{_GROUP}/providers/Microsoft.EventGrid/topics/orders"
_WATCHER = f"{_TOPIC}/eventSubscriptions/watcher"


async def arm(node: Stage, method: str, path: str, document: Any = None) -> tuple[int, Any]:
    """Ask the resource manager for something; the status, and what it answers."""
    headers = {"host": "localhost", "content-type": "application/json", "authorization": "Bearer any"}
    body = b"" if document is None else orjson.dumps(document)
    answer = node.server.router.answer(Request(method, path, "api-version=2025-02-15", headers, body))
    response = answer if isinstance(answer, Response) else await answer
    return response.status, orjson.loads(response.body or b"null")


async def make_topic(node: Stage) -> None:
    assert (await arm(node, "PUT", _TOPIC, {"location": "local"}))[0] == 201


async def make_watcher(node: Stage) -> None:
    """Subscribe a storage account's queue to the topic."""
    queue = {
        "queueName": "events",
        "resourceId": f"{_GROUP}/providers/Microsoft.Storage/storageAccounts/letters",
    }
    destination = {"endpointType": "StorageQueue", "properties": queue}
    asked = {"properties": {"destination": destination, "labels": ["first"]}}
    status, answer = await arm(node, "PUT", _WATCHER, asked)
    assert status == 201, answer


async def test_an_event_grid_topic_that_another_node_made_again_is_deleted(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    await make_topic(deaf)
    assert (await arm(deaf, "GET", _TOPIC))[0] == 200
    await arm(other, "DELETE", _TOPIC)
    await make_topic(other)
    assert (await arm(deaf, "DELETE", _TOPIC))[0] == 204
    assert (await arm(deaf, "GET", _TOPIC))[0] == 404


async def test_an_event_subscription_that_another_node_made_again_is_deleted(
    nodes: tuple[Stage, Stage],
) -> None:
    deaf, other = nodes
    await make_topic(deaf)
    await make_watcher(deaf)
    assert (await arm(deaf, "GET", _WATCHER))[0] == 200
    await arm(other, "DELETE", _WATCHER)
    await make_watcher(other)
    assert (await arm(deaf, "DELETE", _WATCHER))[0] == 204
    assert (await arm(other, "GET", _WATCHER))[0] == 404


async def test_a_patch_keeps_what_another_node_changed(nodes: tuple[Stage, Stage]) -> None:
    deaf, other = nodes
    await make_topic(deaf)
    await make_watcher(deaf)
    assert (await arm(deaf, "GET", _WATCHER))[0] == 200
    assert (await arm(other, "PATCH", _WATCHER, {"labels": ["second"]}))[0] in (200, 201)
    limits = {"retryPolicy": {"maxDeliveryAttempts": 5, "eventTimeToLiveInMinutes": 30}}
    assert (await arm(deaf, "PATCH", _WATCHER, limits))[0] in (200, 201)
    _, shown = await arm(other, "GET", _WATCHER)
    assert shown["properties"]["labels"] == ["second"]
    assert shown["properties"]["retryPolicy"]["maxDeliveryAttempts"] == 5

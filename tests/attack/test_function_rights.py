"""Functions and the rights of their roles: what comes of an event, what a mapping consumes, and what is logged."""

import io
import json
import zipfile
from typing import Any, Final

import pytest

from tests.aws.stage import ACCOUNT, OTHER, REGION, Stage, allow, on_stage, policy

LAMBDA: Final = {"Service": "lambda.amazonaws.com"}
QUEUE: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:prod"
TOPIC: Final = f"arn:aws:sns:{REGION}:{ACCOUNT}:prod"
ADMIN: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:prod-admin"
BUCKET: Final = "arn:aws:s3:::prod"
CONSUMES: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
KEY_FOR_ALL: Final = policy(
    {"Effect": "Allow", "Principal": {"AWS": [ACCOUNT, OTHER]}, "Action": "kms:*", "Resource": "*"}
)
LACKING: Final = "The provided execution role does not have permissions to call"


def code(source: str) -> dict[str, Any]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("f.py", source)
    return {"Code": {"ZipFile": packed.getvalue()}, "Runtime": "python3.12", "Handler": "f.f"}


FAILS: Final = code("def f(event, context):\n    raise ValueError(event)")
PRINTS: Final = code("def f(event, context):\n    print('a line')")


async def queue_url(stage: Stage) -> str:
    url: str = (await stage.call(stage.root, "sqs", "CreateQueue", QueueName="prod"))["QueueUrl"]
    return url


async def waiting(stage: Stage, url: str) -> int:
    """The messages in a queue that nobody has claimed."""
    asked = {"QueueUrl": url, "AttributeNames": ["ApproximateNumberOfMessages"]}
    answer = await stage.call(stage.root, "sqs", "GetQueueAttributes", **asked)
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def test_targets_are_those_that_the_function_s_role_may_hand_over_to() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("weak", LAMBDA, allow("logs:*"))
        await queue_url(stage)
        await stage.call(stage.root, "sns", "CreateTopic", Name="prod")
        await stage.call(
            stage.root, "lambda", "CreateFunction", FunctionName="prod-admin", Role=role, **FAILS
        )
        mine = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:dev-*"
        ann = await stage.user("ann", allow("lambda:*", on=mine), allow("iam:PassRole", on=role))
        await stage.call(ann, "lambda", "CreateFunction", FunctionName="dev-f", Role=role, **FAILS)
        for arn, operation in (
            (QUEUE, "SendMessage"),
            (TOPIC, "Publish"),
            (ADMIN, "InvokeFunction"),
            (BUCKET, "PutObject"),
        ):
            wanted = {"FunctionName": "dev-f", "DestinationConfig": {"OnFailure": {"Destination": arn}}}
            refused = await stage.refusal(ann, "lambda", "PutFunctionEventInvokeConfig", **wanted)
            text = f"The function's execution role does not have permissions to call {operation} on {arn}"
            assert refused == f"InvalidParameterValueException: {text}"
        for arn, words in ((QUEUE, "SendMessage on SQS"), (TOPIC, "Publish on SNS")):
            letters = {"DeadLetterConfig": {"TargetArn": arn}}
            for operation, params in (
                ("CreateFunction", {"FunctionName": "dev-g", "Role": role, **FAILS, **letters}),
                ("UpdateFunctionConfiguration", {"FunctionName": "dev-f", **letters}),
            ):
                refused = await stage.refusal(ann, "lambda", operation, **params)
                assert refused == f"InvalidParameterValueException: {LACKING} {words}"

    on_stage(play, functions="on")


@pytest.mark.parametrize("keeps_right", [True, False], ids=["with the right", "without it"])
def test_letters_and_records_go_where_the_role_may_send_then(*, keeps_right: bool) -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", LAMBDA, allow("sqs:SendMessage", on=QUEUE))
        url = await queue_url(stage)
        letters = {"DeadLetterConfig": {"TargetArn": QUEUE}}
        await stage.call(
            stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **FAILS, **letters
        )
        destination = {"DestinationConfig": {"OnFailure": {"Destination": QUEUE}}, "MaximumRetryAttempts": 0}
        await stage.call(
            stage.root, "lambda", "PutFunctionEventInvokeConfig", FunctionName="f", **destination
        )
        if not keeps_right:
            await stage.call(stage.root, "iam", "DeleteRolePolicy", RoleName="worker", PolicyName="own")
        await stage.call(
            stage.root, "lambda", "Invoke", FunctionName="f", InvocationType="Event", Payload=b"{}"
        )
        await stage.advance(60)
        assert await waiting(stage, url) == (2 if keeps_right else 0)

    on_stage(play, functions="on")


@pytest.mark.parametrize("missing", CONSUMES)
def test_a_mapping_needs_a_role_that_may_consume_the_queue(missing: str) -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", LAMBDA, allow(*(set(CONSUMES) - {missing})))
        await queue_url(stage)
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **PRINTS)
        wanted = {"EventSourceArn": QUEUE, "FunctionName": "f"}
        refused = await stage.refusal(stage.root, "lambda", "CreateEventSourceMapping", **wanted)
        assert refused == f"InvalidParameterValueException: {LACKING} {missing[4:]} on SQS"

    on_stage(play, functions="on")


@pytest.mark.parametrize("loses", ["the queue's policy", "the role's policy", "the role's trust"])
def test_a_mapping_stops_when_its_right_is_taken_away(loses: str) -> None:
    async def play(stage: Stage) -> None:
        url = await queue_url(stage)
        lets_in = {
            "Effect": "Allow",
            "Principal": {"AWS": OTHER},
            "Action": list(CONSUMES),
            "Resource": QUEUE,
        }
        attributes = {"QueueUrl": url, "Attributes": {"Policy": policy(lets_in)}}
        await stage.call(stage.root, "sqs", "SetQueueAttributes", **attributes)
        owner, stage.root = stage.root, stage.stranger  # whose function consumes the queue of another account
        role = await stage.role("worker", LAMBDA, allow("sqs:*"))
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **PRINTS)
        mapping = {"EventSourceArn": QUEUE, "FunctionName": "f"}
        await stage.call(stage.root, "lambda", "CreateEventSourceMapping", **mapping)
        await stage.call(owner, "sqs", "SendMessage", QueueUrl=url, MessageBody="before")
        await stage.advance(30)
        if loses == "the role's policy":
            await stage.call(stage.root, "iam", "DeleteRolePolicy", RoleName="worker", PolicyName="own")
        elif loses == "the role's trust":
            trust = {"Effect": "Allow", "Principal": {"AWS": OTHER}, "Action": "sts:AssumeRole"}
            document = {"RoleName": "worker", "PolicyDocument": policy(trust)}
            await stage.call(stage.root, "iam", "UpdateAssumeRolePolicy", **document)
        else:
            empty = {"QueueUrl": url, "Attributes": {"Policy": ""}}
            await stage.call(owner, "sqs", "SetQueueAttributes", **empty)
        stage.root = owner
        assert await waiting(stage, url) == 0
        await stage.call(owner, "sqs", "SendMessage", QueueUrl=url, MessageBody="after")
        await stage.advance(3600)
        assert await waiting(stage, url) == 1

    on_stage(play, functions="on")


@pytest.mark.parametrize("may_log", [True, False])
def test_a_function_logs_if_its_role_may(*, may_log: bool) -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", LAMBDA, *([allow("logs:*")] if may_log else []))
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **PRINTS)
        answer = await stage.call(
            stage.root, "lambda", "Invoke", FunctionName="f", LogType="Tail", Payload=b"{}"
        )
        assert "LogResult" in answer
        await stage.advance(60)
        groups = (await stage.call(stage.root, "logs", "DescribeLogGroups"))["logGroups"]
        assert [group["logGroupName"] for group in groups] == (["/aws/lambda/f"] if may_log else [])

    on_stage(play, functions="on")


@pytest.mark.parametrize("owner", [ACCOUNT, OTHER], ids=["its own queue", "a queue of another account"])
@pytest.mark.parametrize("has_right", [True, False], ids=["with the right", "without it"])
def test_a_mapping_shows_no_message_whose_key_its_role_may_not_use(owner: str, *, has_right: bool) -> None:
    """A dead-letter queue without a key holds what was sealed in an encrypted queue."""

    async def play(stage: Stage) -> None:
        function_owner = stage.root if owner == ACCOUNT else stage.stranger
        key = (await stage.call(stage.root, "kms", "CreateKey", Policy=KEY_FOR_ALL))["KeyMetadata"]["Arn"]
        url = await queue_url(stage)
        lets_in = {
            "Effect": "Allow",
            "Principal": {"AWS": OTHER},
            "Action": list(CONSUMES),
            "Resource": QUEUE,
        }
        attributes = {"QueueUrl": url, "Attributes": {"Policy": policy(lets_in)}}
        await stage.call(stage.root, "sqs", "SetQueueAttributes", **attributes)
        letters = {"deadLetterTargetArn": QUEUE, "maxReceiveCount": "1"}
        sealed = {"KmsMasterKeyId": key, "VisibilityTimeout": "0", "RedrivePolicy": json.dumps(letters)}
        made = await stage.call(stage.root, "sqs", "CreateQueue", QueueName="sealed", Attributes=sealed)
        await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=made["QueueUrl"], MessageBody="card 4111")
        for _ in range(2):
            await stage.call(stage.root, "sqs", "ReceiveMessage", QueueUrl=made["QueueUrl"])
        stage.root = function_owner
        rights = [allow("sqs:*", "logs:*"), *([allow("kms:Decrypt")] if has_right else [])]
        role = await stage.role("worker", LAMBDA, *rights)
        shows = code("def f(event, context):\n    print(event['Records'][0]['body'])")
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **shows)
        mapping = {"EventSourceArn": QUEUE, "FunctionName": "f"}
        await stage.call(stage.root, "lambda", "CreateEventSourceMapping", **mapping)
        await stage.advance(60)
        groups = (await stage.call(stage.root, "logs", "DescribeLogGroups"))["logGroups"]
        assert bool(groups) is has_right
        if has_right:
            events = await stage.call(stage.root, "logs", "FilterLogEvents", logGroupName="/aws/lambda/f")
            assert "card 4111\n" in [event["message"] for event in events["events"]]

    on_stage(play, functions="on")


FUNCTION: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f"
#: What each changes or tells is the whole function's, whatever alias stands behind its name.
OF_FUNCTIONS: Final[dict[str, dict[str, Any]]] = {
    "UpdateFunctionCode": {**PRINTS["Code"], "Publish": True},
    "UpdateFunctionConfiguration": {"Environment": {"Variables": {"PATH": "/tmp"}}},
    "PublishVersion": {},
    "CreateAlias": {"Name": "more", "FunctionVersion": "1"},
    "UpdateAlias": {"Name": "prod", "FunctionVersion": "$LATEST"},
    "DeleteAlias": {"Name": "prod"},
    "GetAlias": {"Name": "prod"},
    "GetFunctionConcurrency": {},
    "ListAliases": {},
    "ListFunctionEventInvokeConfigs": {},
    "ListFunctionUrlConfigs": {},
    "ListProvisionedConcurrencyConfigs": {},
    "ListVersionsByFunction": {},
}


def test_a_right_to_an_alias_is_none_to_its_function() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", LAMBDA, allow("logs:*"))
        made = {"FunctionName": "f", "Role": role, "Publish": True, **PRINTS}
        await stage.call(stage.root, "lambda", "CreateFunction", **made)
        for name in ("live", "prod"):
            alias = {"FunctionName": "f", "Name": name, "FunctionVersion": "1"}
            await stage.call(stage.root, "lambda", "CreateAlias", **alias)
        statement = {"StatementId": "s", "Action": "lambda:*", "Principal": OTHER}
        await stage.call(
            stage.root, "lambda", "AddPermission", FunctionName="f", Qualifier="live", **statement
        )
        ann = await stage.user("ann", allow("lambda:*", on=f"{FUNCTION}:live"))
        for caller in (ann, stage.stranger):
            for operation, params in OF_FUNCTIONS.items():
                named = {"FunctionName": f"{FUNCTION}:live", **params}
                assert not await stage.may(caller, "lambda", operation, **named), operation
            assert await stage.may(caller, "lambda", "Invoke", FunctionName=f"{FUNCTION}:live")

    on_stage(play, functions="on")


def test_urls_do_not_tell_which_functions_another_account_has() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", LAMBDA, allow("logs:*"))
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **PRINTS)
        for operation, params in (
            ("CreateFunctionUrlConfig", {"AuthType": "NONE"}),
            ("GetFunctionUrlConfig", {}),
            ("ListFunctionUrlConfigs", {}),
        ):
            refusals = [
                await stage.refusal(stage.stranger, "lambda", operation, FunctionName=name, **params)
                for name in (FUNCTION, f"{FUNCTION}-not-there")
            ]
            assert all("is not authorized to perform" in each for each in refusals), operation

    on_stage(play, functions="on")

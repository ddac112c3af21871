"""Resource types: those that wait for somebody's word, nested stacks, and what holds for all of them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from redrive.aws.cloudformation.types.schema import schema_of
from redrive.aws.cloudformation.types.table import KNOWN, type_of
from tests.aws.cloudformation.stage import ACCOUNT, Stage, stage

ROLE = f"arn:aws:iam::{ACCOUNT}:role/r"
WITHOUT_SCHEMA = {
    "AWS::ECR::Repository",
    "AWS::CDK::Metadata",
    "AWS::CloudFormation::CustomResource",
    "Custom::",
}


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def _att(name: str, attribute: str = "Arn") -> dict[str, Any]:
    return {"Fn::GetAtt": [name, attribute]}


@pytest.mark.parametrize("name", sorted(set(KNOWN) - WITHOUT_SCHEMA))
def test_a_type_has_the_schema_that_is_published_for_it(name: str) -> None:
    kind = type_of(name)
    assert not kind.schema.is_open
    assert kind.name_property in {"", *kind.schema.properties}
    assert kind.schema.create_only <= kind.schema.properties.keys()


@pytest.mark.parametrize(
    ("kind", "given", "typed"),
    [
        (
            "AWS::SQS::Queue",
            {"DelaySeconds": "5", "FifoQueue": "true"},
            {"DelaySeconds": 5, "FifoQueue": True},
        ),
        (
            "AWS::SQS::Queue",
            {"RedrivePolicy": {"maxReceiveCount": "3"}},
            {"RedrivePolicy": {"maxReceiveCount": "3"}},
        ),
        ("AWS::SNS::Topic", {"DisplayName": 5}, {"DisplayName": "5"}),
        ("AWS::CloudWatch::Alarm", {"Threshold": "1.5", "Period": 60}, {"Threshold": 1.5, "Period": 60}),
    ],
)
def test_properties_have_the_types_that_services_take(
    kind: str, given: Mapping[str, Any], typed: Mapping[str, Any]
) -> None:
    found = schema_of(kind).typed({**given})
    assert json.dumps(found, sort_keys=True).replace('"3"', "3") == json.dumps(typed, sort_keys=True).replace(
        '"3"', "3"
    )


POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}],
}
TABLE: dict[str, Any] = {
    "Queue": _of("SQS::Queue", FifoQueue=True, ContentBasedDeduplication="true"),
    "Inline": _of("SQS::QueueInlinePolicy", Queue={"Ref": "Queue"}, PolicyDocument=POLICY),
    "Topic": _of("SNS::Topic", FifoTopic="true", Tags=[{"Key": "a", "Value": "b"}]),
    "Function": _of(
        "Lambda::Function",
        Runtime="nodejs20.x",
        Handler="index.handler",
        Role=ROLE,
        Code={"ZipFile": "exports.handler = async () => 1;"},
        ReservedConcurrentExecutions=2,
    ),
    "Version": _of("Lambda::Version", FunctionName={"Ref": "Function"}),
    "Live": _of(
        "Lambda::Alias",
        FunctionName={"Ref": "Function"},
        FunctionVersion=_att("Version", "Version"),
        Name="live",
    ),
    "Invoked": _of(
        "Lambda::EventInvokeConfig",
        FunctionName={"Ref": "Function"},
        Qualifier="live",
        MaximumRetryAttempts=0,
    )
    | {"DependsOn": "Live"},
    "Group": _of("Logs::LogGroup", RetentionInDays="7"),
    "Stream": _of("Logs::LogStream", LogGroupName={"Ref": "Group"}),
    "Bucket": _of("S3::Bucket"),
    "Key": _of("KMS::Key", EnableKeyRotation=True),
    "Name": _of("KMS::Alias", AliasName="alias/orders", TargetKeyId=_att("Key", "KeyId")),
    "Parameter": _of("SSM::Parameter", Name="/shop/key", Type="String", Value=_att("Key")),
    "Alarm": _of(
        "CloudWatch::Alarm",
        Namespace="AWS/SQS",
        MetricName="NumberOfMessagesSent",
        Statistic="Sum",
        Period="60",
        EvaluationPeriods="1",
        Threshold="0",
        ComparisonOperator="GreaterThanThreshold",
    ),
    "Cdk": _of("CDK::Metadata", Analytics="x"),
}


async def test_each_type_is_made_told_apart_from_what_is_there_and_removed() -> None:
    async with stage() as at:
        stack = await at.create("shop", {"Resources": TABLE}, Tags=[{"Key": "team", "Value": "rent"}])
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("shop", "CREATE_FAILED")
        ids = {name: found["PhysicalResourceId"] for name, found in (await at.resources("shop")).items()}
        assert ids["Queue"].endswith(".fifo")
        assert ids["Topic"].endswith(".fifo")
        assert ids["Bucket"] == ids["Bucket"].lower()
        assert ids["Version"].endswith(":1")
        tags = await at.ask("sns", "ListTagsForResource", ResourceArn=ids["Topic"])
        assert {tag["Key"]: tag["Value"] for tag in tags["Tags"]} == {"a": "b", "team": "rent"}
        assert await _drift(at) == {}
        await at.ask(
            "sqs",
            "SetQueueAttributes",
            QueueUrl=ids["Queue"],
            Attributes={"ContentBasedDeduplication": "false"},
        )
        await at.ask("logs", "DeleteLogGroup", logGroupName=ids["Group"])
        assert await _drift(at) == {"Queue": "MODIFIED", "Group": "DELETED"}
        shown = await at.stacks("DescribeStacks", StackName="shop")
        assert shown["Stacks"][0]["DriftInformation"]["StackDriftStatus"] == "DRIFTED"
        await at.delete(stack)
        assert await at.left() == {}


async def _drift(at: Stage) -> dict[str, str]:
    looked = await at.stacks("DetectStackDrift", StackName="shop")
    status = await at.stacks(
        "DescribeStackDriftDetectionStatus", StackDriftDetectionId=looked["StackDriftDetectionId"]
    )
    assert status["DetectionStatus"] == "DETECTION_COMPLETE"
    drifts = (await at.stacks("DescribeStackResourceDrifts", StackName="shop"))["StackResourceDrifts"]
    found = {drift["LogicalResourceId"]: drift["StackResourceDriftStatus"] for drift in drifts}
    return {name: status for name, status in found.items() if status not in ("IN_SYNC", "NOT_CHECKED")}


async def test_a_subscription_without_an_endpoint_fails_and_is_rolled_back() -> None:
    async with stage() as at:
        subscription = _of("SNS::Subscription", TopicArn={"Ref": "T"}, Protocol="sqs")
        stack = await at.create("s", {"Resources": {"T": _of("SNS::Topic"), "S": subscription}})
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"


async def test_properties_that_buckets_have_not_are_refused() -> None:
    async with stage() as at:
        tools = {
            "AccessControl": "Private",
            "VersioningConfiguration": {"Status": "Enabled"},
            "BucketEncryption": {"ServerSideEncryptionConfiguration": []},
            "LifecycleConfiguration": {
                "Rules": [{"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 30}}]
            },
        }
        stack = await at.create("tools", {"Resources": {"Bucket": _of("S3::Bucket", **tools)}})
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        rules = {"Rules": [{"Status": "Enabled", "ExpirationInDays": 3}]}
        others = {
            "AccessControl": "PublicRead",
            "LifecycleConfiguration": rules,
            "WebsiteConfiguration": {"IndexDocument": "a"},
        }
        stack = await at.create("shop", {"Resources": {"Bucket": _of("S3::Bucket", **others)}})
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        reasons = await at.reasons("shop", "CREATE_FAILED")
        assert reasons == {
            "Bucket": "Buckets of this server have no WebsiteConfiguration, AccessControl, ExpirationInDays."
        }


# ---- custom resources ------------------------------------------------------------------------------------------------


def _custom(**properties: Any) -> dict[str, Any]:
    asks = {
        "Protocol": "sqs",
        "TopicArn": {"Ref": "Asked"},
        "Endpoint": _att("Heard"),
        "RawMessageDelivery": True,
    }
    return {
        "Resources": {
            "Asked": _of("SNS::Topic"),
            "Heard": _of("SQS::Queue", QueueName="heard"),
            "Hears": _of("SNS::Subscription", **asks),
            "Thing": {
                "Type": "Custom::Thing",
                "DependsOn": "Hears",
                "Properties": {"ServiceToken": {"Ref": "Asked"}, **properties},
            },
        },
        "Outputs": {"Answer": {"Value": _att("Thing", "Answer")}},
    }


async def _heard(at: Stage) -> dict[str, Any]:
    """The next request for a custom resource."""
    url = f"http://localhost/{ACCOUNT}/heard"
    found: dict[str, Any] = {}
    while not found.get("Messages"):
        await at.operations.until_quiet()
        await at.server.core.engine.until_quiet()
        found = await at.ask("sqs", "ReceiveMessage", QueueUrl=url)
    (message,) = found["Messages"]
    await at.ask("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    event: dict[str, Any] = json.loads(message["Body"])
    return event


async def test_a_custom_resource_is_what_whoever_hears_its_topic_says() -> None:
    async with stage() as at:
        body = _custom(Number=7, List=[True])
        stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=body)
        event = await _heard(at)
        assert (event["RequestType"], event["ResourceType"], event["LogicalResourceId"]) == (
            "Create",
            "Custom::Thing",
            "Thing",
        )
        assert event["ResourceProperties"] == {
            "ServiceToken": event["ServiceToken"],
            "Number": "7",
            "List": ["true"],
        }
        assert await at.put(f"{event['ResponseURL']}x", {}) == 403
        assert (
            await at.put(
                event["ResponseURL"],
                {"Status": "SUCCESS", "PhysicalResourceId": "one", "Data": {"Answer": "a"}},
            )
            == 200
        )
        made = await at.ended(stack["StackId"])
        assert (made["StackStatus"], made["Outputs"][0]["OutputValue"]) == ("CREATE_COMPLETE", "a")
        # Another id on an update: the old one is deleted.
        await at.stacks("UpdateStack", StackName="shop", TemplateBody=_custom(Number=8))
        event = await _heard(at)
        assert (event["RequestType"], event["PhysicalResourceId"]) == ("Update", "one")
        assert event["OldResourceProperties"]["Number"] == "7"
        await at.put(
            event["ResponseURL"], {"Status": "SUCCESS", "PhysicalResourceId": "two", "Data": {"Answer": "b"}}
        )
        event = await _heard(at)
        assert (event["RequestType"], event["PhysicalResourceId"]) == ("Delete", "one")
        await at.put(event["ResponseURL"], {"Status": "SUCCESS"})
        assert (await at.ended(stack["StackId"]))["StackStatus"] == "UPDATE_COMPLETE"
        # A failure takes all back, by a request of its own.
        await at.stacks("UpdateStack", StackName="shop", TemplateBody=_custom(Number=9))
        event = await _heard(at)
        await at.put(event["ResponseURL"], {"Status": "FAILED", "Reason": "no"})
        event = await _heard(at)
        assert event["ResourceProperties"]["Number"] == "8"
        await at.put(
            event["ResponseURL"], {"Status": "SUCCESS", "PhysicalResourceId": "two", "Data": {"Answer": "b"}}
        )
        assert (await at.ended(stack["StackId"]))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        (reason,) = (await at.reasons("shop", "UPDATE_FAILED")).values()
        assert reason.startswith(
            "Received response status [FAILED] from custom resource. Message returned: no (RequestId: "
        )


async def test_a_custom_resource_that_nobody_answers_fails_in_its_time() -> None:
    async with stage() as at:
        stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=_custom(ServiceTimeout=60))
        await _heard(at)
        await at.advance(59)
        assert (await at.resources("shop"))["Thing"]["ResourceStatus"] == "CREATE_IN_PROGRESS"
        await at.advance(2)
        assert (await at.ended(stack["StackId"]))["StackStatus"] == "ROLLBACK_COMPLETE"
        reason = (await at.reasons("shop", "CREATE_FAILED"))["Thing"]
        assert reason.startswith("CloudFormation did not receive a response from your Custom Resource.")


# ---- wait conditions and signals -------------------------------------------------------------------------------------


async def test_a_wait_condition_waits_for_its_signals() -> None:
    resources = {
        "Handle": _of("CloudFormation::WaitConditionHandle"),
        "Wait": _of("CloudFormation::WaitCondition", Handle={"Ref": "Handle"}, Timeout="300", Count=2),
    }
    async with stage() as at:
        body = {"Resources": resources, "Outputs": {"Said": {"Value": _att("Wait", "Data")}}}
        stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=body)
        await at.operations.until_quiet()
        address = (await at.resources("shop"))["Handle"]["PhysicalResourceId"]
        for number in ("1", "1", "2"):
            assert (await at.resources("shop"))["Wait"]["ResourceStatus"] == "CREATE_IN_PROGRESS"
            await at.put(
                address,
                {"Status": "SUCCESS", "UniqueId": number, "Data": f"said {number}", "Reason": "ready"},
            )
        found = await at.ended(stack["StackId"])
        assert json.loads(found["Outputs"][0]["OutputValue"]) == {"1": "said 1", "2": "said 2"}
        ids = {name: found["PhysicalResourceId"] for name, found in (await at.resources("shop")).items()}
        assert ids["Wait"] == f"{stack['StackId']}/Handle"
        late = await at.stacks("CreateStack", StackName="late", TemplateBody=body)
        await at.advance(301)
        assert (await at.ended(late["StackId"]))["StackStatus"] == "ROLLBACK_COMPLETE"
        assert (await at.reasons("late", "CREATE_FAILED"))["Wait"] == (
            "WaitCondition timed out. Received 0 conditions when expecting 2"
        )


async def test_a_creation_policy_waits_for_signal_resource() -> None:
    signals = {"ResourceSignal": {"Count": 1, "Timeout": "PT1M"}}
    async with stage() as at:
        body = {"Resources": {"Queue": {**_of("SQS::Queue"), "CreationPolicy": signals}}}
        stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=body)
        await at.operations.until_quiet()
        await at.stacks(
            "SignalResource", StackName="shop", LogicalResourceId="Queue", UniqueId="a", Status="SUCCESS"
        )
        assert (await at.ended(stack["StackId"]))["StackStatus"] == "CREATE_COMPLETE"


# ---- nested stacks, policies, parameters -----------------------------------------------------------------------------


async def _put_template(at: Stage, name: str, template: Mapping[str, Any]) -> str:
    body = json.dumps(template).encode()
    await at.ask("s3", "PutObject", Bucket="templates", Key=name, Body=body)
    return f"https://s3.us-east-1.amazonaws.com/templates/{name}"


async def test_a_nested_stack_goes_with_its_parent() -> None:
    child = {
        "Parameters": {"Seconds": {"Type": "String"}},
        "Resources": {"Queue": _of("SQS::Queue", DelaySeconds={"Ref": "Seconds"})},
        "Outputs": {"Url": {"Value": {"Ref": "Queue"}}},
    }
    async with stage() as at:
        await at.ask("s3", "CreateBucket", Bucket="templates")
        url = await _put_template(at, "child.json", child)

        def parent(seconds: int) -> dict[str, Any]:
            nested = _of("CloudFormation::Stack", TemplateURL=url, Parameters={"Seconds": seconds})
            return {
                "Resources": {"Child": nested},
                "Outputs": {"Url": {"Value": _att("Child", "Outputs.Url")}},
            }

        stack = await at.create("shop", parent(3))
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        queue = stack["Outputs"][0]["OutputValue"]
        arn = (await at.resources("shop"))["Child"]["PhysicalResourceId"]
        shown = (await at.stacks("DescribeStacks", StackName=arn))["Stacks"][0]
        assert (shown["ParentId"], shown["RootId"]) == (stack["StackId"], stack["StackId"])
        await at.update("shop", parent(4))
        attributes = await at.ask(
            "sqs", "GetQueueAttributes", QueueUrl=queue, AttributeNames=["DelaySeconds"]
        )
        assert attributes["Attributes"] == {"DelaySeconds": "4"}
        assert (await at.update("shop", parent(-1)))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        attributes = await at.ask(
            "sqs", "GetQueueAttributes", QueueUrl=queue, AttributeNames=["DelaySeconds"]
        )
        assert attributes["Attributes"] == {"DelaySeconds": "4"}
        await at.delete(stack)
        assert (await at.ended(arn))["StackStatus"] == "DELETE_COMPLETE"


async def test_a_stack_policy_keeps_resources_from_changing() -> None:
    statements = [
        {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
        {
            "Effect": "Deny",
            "Action": "Update:Replace",
            "Principal": "*",
            "Resource": "LogicalResourceId/Queue",
        },
    ]
    async with stage() as at:
        await at.create("shop", {"Resources": {"Queue": _of("SQS::Queue", QueueName="a", DelaySeconds=1)}})
        await at.stacks(
            "SetStackPolicy", StackName="shop", StackPolicyBody=json.dumps({"Statement": statements})
        )
        modified = await at.update(
            "shop", {"Resources": {"Queue": _of("SQS::Queue", QueueName="a", DelaySeconds=2)}}
        )
        assert modified["StackStatus"] == "UPDATE_COMPLETE"
        replaced = await at.update("shop", {"Resources": {"Queue": _of("SQS::Queue", QueueName="b")}})
        assert replaced["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        (reason,) = (await at.reasons("shop", "UPDATE_FAILED")).values()
        assert reason.startswith("Action denied by stack policy: ")


async def test_parameters_come_from_the_store() -> None:
    body = {
        "Parameters": {"Seconds": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/shop/seconds"}},
        "Resources": {
            "Queue": _of(
                "SQS::Queue",
                DelaySeconds={"Ref": "Seconds"},
                VisibilityTimeout="{{resolve:ssm:/shop/seconds:1}}",
            )
        },
    }
    async with stage() as at:
        assert await at.refused("CreateStack", StackName="shop", TemplateBody=body) == (
            "Unable to fetch parameters [/shop/seconds] from parameter store for this account."
        )
        for value in ("5", "6"):
            await at.ask(
                "ssm", "PutParameter", Name="/shop/seconds", Value=value, Type="String", Overwrite=True
            )
        stack = await at.create("shop", body)
        assert stack["Parameters"] == [
            {"ParameterKey": "Seconds", "ParameterValue": "/shop/seconds", "ResolvedValue": "6"}
        ]
        url = (await at.resources("shop"))["Queue"]["PhysicalResourceId"]
        names = ["DelaySeconds", "VisibilityTimeout"]
        attributes = await at.ask("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=names)
        assert attributes["Attributes"] == {"DelaySeconds": "6", "VisibilityTimeout": "5"}


async def test_a_stack_of_200_resources_is_made_at_once() -> None:
    resources = {f"Queue{number}": _of("SQS::Queue") for number in range(200)}
    async with stage() as at:
        stack = await at.create("large", {"Resources": resources})
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        assert len((await at.left())["queues"]) == 200
        await at.delete(stack)
        assert await at.left() == {}

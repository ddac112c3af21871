"""Types of Firehose, of filters of logs, of access keys, instance profiles and mappings: made, changed and removed."""

from typing import Any

from tests.aws.cloudformation.stage import ACCOUNT, Stage, stage

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "*"}, "Action": "sts:AssumeRole"}],
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "es.amazonaws.com"},
            "Action": "logs:PutLogEvents",
            "Resource": "*",
        }
    ],
}


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def _att(name: str, attribute: str = "Arn") -> dict[str, Any]:
    return {"Fn::GetAtt": [name, attribute]}


def _template(pattern: str, status: str, roles: list[str], **destination: Any) -> dict[str, Any]:
    stream = {"RoleARN": _att("Writer"), "BucketARN": _att("Bucket"), **destination}
    metric = {
        "MetricName": "Errors",
        "MetricNamespace": "app",
        "MetricValue": "1",
        "Dimensions": [{"Key": "where", "Value": "$.where"}],
    }
    group = {"LogGroupName": {"Ref": "Group"}, "FilterPattern": pattern}
    handler = "def handler(event, context):\n    return 1\n"
    resources = {
        "Bucket": _of("S3::Bucket"),
        "Writer": _of("IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Reader": _of("IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Stream": _of(
            "KinesisFirehose::DeliveryStream",
            ExtendedS3DestinationConfiguration=stream,
            Tags=[{"Key": "pattern", "Value": pattern}],
        ),
        "Group": _of("Logs::LogGroup"),
        "Metric": _of("Logs::MetricFilter", **group, MetricTransformations=[metric]),
        "Function": _of(
            "Lambda::Function",
            Runtime="python3.11",
            Handler="index.handler",
            Role=_att("Writer"),
            Code={"ZipFile": handler},
        ),
        "Subscribed": _of("Logs::SubscriptionFilter", **group, DestinationArn=_att("Function")),
        "Writing": _of("Logs::ResourcePolicy", PolicyName="writing", PolicyDocument=POLICY),
        "User": _of("IAM::User"),
        "Key": _of("IAM::AccessKey", UserName={"Ref": "User"}, Status=status),
        "Profile": _of("IAM::InstanceProfile", Roles=[{"Ref": role} for role in roles]),
    }
    outputs = {
        "Secret": {"Value": _att("Key", "SecretAccessKey")},
        "Stream": {"Value": _att("Stream")},
        "Profile": {"Value": _att("Profile")},
    }
    return {"Resources": resources, "Outputs": outputs}


async def _settings(at: Stage, name: str) -> dict[str, Any]:
    shown = (await at.ask("firehose", "DescribeDeliveryStream", DeliveryStreamName=name))[
        "DeliveryStreamDescription"
    ]
    settings: dict[str, Any] = shown["Destinations"][0]["ExtendedS3DestinationDescription"]
    return settings


async def _left(at: Stage) -> list[int]:
    found = [
        (await at.ask("firehose", "ListDeliveryStreams"))["DeliveryStreamNames"],
        (await at.ask("logs", "DescribeMetricFilters"))["metricFilters"],
        (await at.ask("logs", "DescribeResourcePolicies"))["resourcePolicies"],
        (await at.ask("iam", "ListUsers"))["Users"],
        (await at.ask("iam", "ListInstanceProfiles"))["InstanceProfiles"],
        (await at.ask("iam", "ListRoles"))["Roles"],
    ]
    return [len(listed) for listed in found]


async def test_streams_filters_keys_and_profiles_come_change_and_go() -> None:
    async with stage() as at:
        first = _template("ERROR", "Inactive", ["Writer"], Prefix="p/", CompressionFormat="GZIP")
        stack = await at.create("shop", first)
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("shop", "CREATE_FAILED")
        ids = {name: found["PhysicalResourceId"] for name, found in (await at.resources("shop")).items()}
        outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
        stream = ids["Stream"]
        assert outputs["Stream"] == f"arn:aws:firehose:us-east-1:{ACCOUNT}:deliverystream/{stream}"
        assert outputs["Profile"] == f"arn:aws:iam::{ACCOUNT}:instance-profile/{ids['Profile']}"
        assert len(outputs["Secret"]) >= 40
        assert ids["Key"].startswith("AKIA")
        keys = (await at.ask("iam", "ListAccessKeys", UserName=ids["User"]))["AccessKeyMetadata"]
        assert [key["Status"] for key in keys] == ["Inactive"]
        (metric,) = (await at.ask("logs", "DescribeMetricFilters"))["metricFilters"]
        assert metric["filterName"] == ids["Metric"]
        assert metric["metricTransformations"][0]["dimensions"] == {"where": "$.where"}

        changed = await at.update("shop", _template("WARN", "Active", ["Reader"], Prefix="q/"))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons(
            "shop", "UPDATE_ROLLBACK_IN_PROGRESS"
        )
        settings = await _settings(at, stream)
        assert (settings["Prefix"], settings["CompressionFormat"]) == ("q/", "UNCOMPRESSED")
        tags = (await at.ask("firehose", "ListTagsForDeliveryStream", DeliveryStreamName=stream))["Tags"]
        assert {"Key": "pattern", "Value": "WARN"} in tags
        keys = (await at.ask("iam", "ListAccessKeys", UserName=ids["User"]))["AccessKeyMetadata"]
        assert [(key["AccessKeyId"], key["Status"]) for key in keys] == [(ids["Key"], "Active")]
        named = {"InstanceProfileName": ids["Profile"]}
        profile = (await at.ask("iam", "GetInstanceProfile", **named))["InstanceProfile"]
        assert [role["RoleName"] for role in profile["Roles"]] == [ids["Reader"]]
        assert {each["OutputKey"]: each["OutputValue"] for each in changed["Outputs"]} == outputs

        group = (await at.resources("shop"))["Group"]["PhysicalResourceId"]
        found = await at.ask("logs", "DescribeSubscriptionFilters", logGroupName=group)
        assert [each["filterPattern"] for each in found["subscriptionFilters"]] == ["WARN"]
        deleted = await at.delete(stack)
        assert deleted["StackStatus"] == "DELETE_COMPLETE", await at.reasons(
            stack["StackId"], "DELETE_FAILED"
        )
        assert await _left(at) == [0] * 6


async def test_a_mapping_loses_what_its_template_no_longer_says() -> None:
    def template(team: str, **settings: Any) -> dict[str, Any]:
        function = {
            "Runtime": "python3.11",
            "Handler": "index.handler",
            "Role": f"arn:aws:iam::{ACCOUNT}:role/r",
            "Code": {"ZipFile": "def handler(event, context):\n    return 1\n"},
        }
        mapping = {"FunctionName": {"Ref": "Function"}, "EventSourceArn": _att("Queue"), **settings}
        return {
            "Resources": {
                "Queue": _of("SQS::Queue"),
                "Function": _of("Lambda::Function", **function),
                "Mapping": _of(
                    "Lambda::EventSourceMapping", **mapping, Tags=[{"Key": "team", "Value": team}]
                ),
            }
        }

    async with stage() as at:
        filters = {"Filters": [{"Pattern": '{"body": {"paid": [true]}}'}]}
        await at.create("paid", template("cars", FilterCriteria=filters, BatchSize=3))
        changed = await at.update("paid", template("vans"))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("paid", "UPDATE_FAILED")
        (mapping,) = (await at.ask("lambda", "ListEventSourceMappings"))["EventSourceMappings"]
        assert (mapping["BatchSize"], mapping.get("FilterCriteria")) == (10, None)
        tags = (await at.ask("lambda", "ListTags", Resource=mapping["EventSourceMappingArn"]))["Tags"]
        assert tags["team"] == "vans"


async def test_a_subscription_is_made_changed_and_ended_in_the_region_of_its_topic() -> None:
    far = "ap-southeast-1"
    arn = f"arn:aws:sns:{far}:{ACCOUNT}:cars"

    def template(raw: str) -> dict[str, Any]:
        endpoint = {"Protocol": "sqs", "Endpoint": _att("Queue"), "RawMessageDelivery": raw}
        subscription = _of("SNS::Subscription", TopicArn=arn, Region=far, **endpoint)
        return {"Resources": {"Queue": _of("SQS::Queue"), "Far": subscription}}

    async def raw() -> list[str]:
        listed = (await at.ask_in(far, "sns", "ListSubscriptionsByTopic", TopicArn=arn))["Subscriptions"]
        arns = [each["SubscriptionArn"] for each in listed]
        found = [
            await at.ask_in(far, "sns", "GetSubscriptionAttributes", SubscriptionArn=each) for each in arns
        ]
        return [each["Attributes"]["RawMessageDelivery"] for each in found]

    async with stage() as at:
        await at.ask_in(far, "sns", "CreateTopic", Name="cars")
        stack = await at.create("paid", template("true"))
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("paid", "CREATE_FAILED")
        assert await raw() == ["true"]
        drift = await at.stacks("DetectStackResourceDrift", StackName="paid", LogicalResourceId="Far")
        assert drift["StackResourceDrift"]["StackResourceDriftStatus"] == "IN_SYNC"
        changed = await at.update("paid", template("false"))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("paid", "UPDATE_FAILED")
        assert await raw() == ["false"]
        assert (await at.delete(stack))["StackStatus"] == "DELETE_COMPLETE"
        assert await raw() == []


async def _attributes(at: Stage, name: str) -> dict[str, str]:
    """The settings of a queue: all that is neither counted nor a moment."""
    url = (await at.resources("queues"))[name]["PhysicalResourceId"]
    answer = await at.ask("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
    others = ("Approximate", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp")
    return {name: value for name, value in answer["Attributes"].items() if not name.startswith(others)}


async def test_a_queue_has_the_defaults_of_a_new_one_when_its_template_sets_nothing_any_more() -> None:
    new = _of("SQS::Queue", FifoQueue=True)
    changed = _of(
        "SQS::Queue",
        FifoQueue=True,
        ContentBasedDeduplication=True,
        DeduplicationScope="messageGroup",
        DelaySeconds=5,
        FifoThroughputLimit="perMessageGroupId",
        MaximumMessageSize=2048,
        MessageRetentionPeriod=120,
        ReceiveMessageWaitTimeSeconds=3,
        RedriveAllowPolicy={"redrivePermission": "denyAll"},
        RedrivePolicy={"deadLetterTargetArn": _att("New"), "maxReceiveCount": 3},
        SqsManagedSseEnabled=False,
        VisibilityTimeout=7,
    )
    async with stage() as at:
        stack = await at.create("queues", {"Resources": {"New": new, "Changed": changed}})
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("queues", "CREATE_FAILED")
        assert await _attributes(at, "Changed") != await _attributes(at, "New")
        stack = await at.update("queues", {"Resources": {"New": new, "Changed": new}})
        assert stack["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("queues", "UPDATE_FAILED")
        assert await _attributes(at, "Changed") == await _attributes(at, "New")

"""CloudFormation's recorded answers about what stacks make of some types of resources."""

from datetime import UTC
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

from tests.aws.recorded.test_cloudformation import body, described, stack
from tests.aws.recorded.test_lambda import FUNCTION, ROLE
from tests.aws.recorded.test_stack_changes import ask, by_change_set
from tests.aws.stage import ACCOUNT, REGION, Stage, allow, on_stage, policy

_POLICY = orjson.loads(policy({"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}))
_TRUST = orjson.loads(policy({"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}))


def of(kind: str, **properties: Any) -> dict[str, Any]:
    """A resource."""
    return {"Type": f"AWS::{kind}", "Properties": properties}


async def physical_id(stage: Stage, logical_id: str) -> str:
    """The id of a resource of the stack."""
    named = {"StackName": "rental", "LogicalResourceId": logical_id}
    answer = await ask(stage, "DescribeStackResource", **named)
    return str(answer["StackResourceDetail"]["PhysicalResourceId"])


def test_a_policy_for_nobody_fails_and_stays_until_it_is_retained() -> None:
    async def play(stage: Stage) -> None:
        broken = of("IAM::Policy", PolicyName="broken", PolicyDocument=_POLICY)
        template = body(Resources={"BrokenPolicy": broken})
        shown = await by_change_set(stage, template, Capabilities=["CAPABILITY_IAM"])
        reason = "The following resource(s) failed to delete: [BrokenPolicy]. "
        assert (shown["StackStatus"], shown["StackStatusReason"]) == ("ROLLBACK_FAILED", reason)
        assert (shown["EnableTerminationProtection"], "DeletionTime" in shown) == (False, True)
        assert "ChangeSetId" not in shown
        events = (await ask(stage, "DescribeStackEvents", StackName="rental"))["StackEvents"]
        of_policy = [event for event in reversed(events) if event["LogicalResourceId"] == "BrokenPolicy"]
        empty = "At least one of [Groups,Roles,Users] must be non-empty."
        assert [
            (event["ResourceStatus"], bool(event["PhysicalResourceId"]), event.get("ResourceStatusReason"))
            for event in of_policy
        ] == [
            ("CREATE_IN_PROGRESS", False, None),
            ("CREATE_IN_PROGRESS", True, "Resource creation Initiated"),
            ("CREATE_FAILED", True, empty),
            ("DELETE_IN_PROGRESS", True, None),
            ("DELETE_FAILED", True, empty),
        ]
        await ask(stage, "DeleteStack", StackName="rental")
        again = await described(stage)
        assert (again["StackStatus"], again["StackStatusReason"]) == ("DELETE_FAILED", reason)
        assert ("ChangeSetId" in again, "DeletionTime" in again) == (False, True)
        await ask(stage, "DeleteStack", StackName="rental", RetainResources=["BrokenPolicy"])
        assert (await described(stage, shown["StackId"]))["StackStatus"] == "DELETE_COMPLETE"

    on_stage(play, auth="off")


def test_a_policys_id_is_not_its_name_and_a_role_has_a_description() -> None:
    async def play(stage: Stage) -> None:
        role = of("IAM::Role", RoleName="driver", AssumeRolePolicyDocument=_TRUST)
        params = {"PolicyName": "drives", "Roles": [{"Ref": "Role"}], "PolicyDocument": _POLICY}
        template = body(Resources={"Role": role, "Policy": of("IAM::Policy", **params)})
        await stack(stage, TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"])
        policy_id = await physical_id(stage, "Policy")
        assert policy_id.startswith("rental-Policy-")
        inline = await stage.call(stage.root, "iam", "ListRolePolicies", RoleName="driver")
        assert inline["PolicyNames"] == ["drives"]
        shown = (await stage.call(stage.root, "iam", "GetRole", RoleName="driver"))["Role"]
        assert shown["Description"] == ""
        template = template.replace("sqs:*", "sns:*")
        await ask(
            *(stage, "UpdateStack"),
            StackName="rental",
            TemplateBody=template,
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"
        assert await physical_id(stage, "Policy") == policy_id
        named = {"RoleName": "driver", "PolicyName": "drives"}
        changed = await stage.call(stage.root, "iam", "GetRolePolicy", **named)
        assert orjson.loads(unquote(changed["PolicyDocument"])) == orjson.loads(
            orjson.dumps(_POLICY).replace(b"sqs:*", b"sns:*")
        )

    on_stage(play, auth="off")


def test_a_function_has_its_stacks_tags_and_drifts_down_to_single_values() -> None:
    async def play(stage: Stage) -> None:
        variables = {"Variables": {"B1": "1", "A1": "1", "C1": "1"}}
        code = {"ZipFile": "def handler(event, context):\n    return event\n"}
        properties = {"Runtime": "python3.11", "Handler": "index.handler", "Role": ROLE, "Code": code}
        function = of("Lambda::Function", FunctionName="f", Environment=variables, **properties)
        tag = {"Key": "car", "Value": "1"}
        shown = await stack(stage, TemplateBody=body(Resources={"F": function}), Tags=[tag])
        assert shown["StackStatus"] == "CREATE_COMPLETE"
        own = {
            "aws:cloudformation:stack-name": "rental",
            "aws:cloudformation:stack-id": shown["StackId"],
            "aws:cloudformation:logical-id": "F",
        }
        tags = (await stage.call(stage.root, "lambda", "GetFunction", FunctionName="f"))["Tags"]
        assert tags == {"car": "1", **own}
        labels = {"Resource": f"{FUNCTION}:f", "Tags": own}
        refusal = await stage.refusal(stage.root, "lambda", "TagResource", **labels)
        assert refusal.endswith("aws: prefixed tag key names are not allowed for external use.")
        await ask(stage, "UpdateStack", StackName="rental", UsePreviousTemplate=True, Tags=[])
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"
        other = {"Variables": {"B1": "2", "A1": "2", "C1": "1"}}
        await stage.call(
            stage.root, "lambda", "UpdateFunctionConfiguration", FunctionName="f", Environment=other
        )
        drift = (await ask(stage, "DetectStackResourceDrift", StackName="rental", LogicalResourceId="F"))[
            "StackResourceDrift"
        ]
        assert drift["StackResourceDriftStatus"] == "MODIFIED"
        assert drift["PropertyDifferences"] == [
            {
                "PropertyPath": f"/Environment/Variables/{name}",
                "ExpectedValue": "1",
                "ActualValue": "2",
                "DifferenceType": "NOT_EQUAL",
            }
            for name in ("A1", "B1")
        ]
        for told in ("ExpectedProperties", "ActualProperties"):
            assert orjson.loads(drift[told]).keys() == {
                *("Environment", "FunctionName", "Handler", "Role", "Runtime")
            }

    on_stage(play, auth="off", functions="on")


def test_events_are_published_to_the_topics_of_their_stack() -> None:
    async def play(stage: Stage) -> None:
        topic = (await stage.call(stage.root, "sns", "CreateTopic", Name="events"))["TopicArn"]
        url = (await stage.call(stage.root, "sqs", "CreateQueue", QueueName="inbox"))["QueueUrl"]
        params = {"Protocol": "sqs", "Endpoint": f"arn:aws:sqs:{REGION}:{ACCOUNT}:inbox"}
        raw = {"Attributes": {"RawMessageDelivery": "true"}}
        await stage.call(stage.root, "sns", "Subscribe", TopicArn=topic, **params, **raw)
        gone = f"{topic}-gone"  # a topic that is not there keeps nobody from anything
        queue = of("SQS::Queue", QueueName="orders")
        shown = await stack(
            *(stage,),
            TemplateBody=body(Resources={"Orders": queue}),
            NotificationARNs=[gone, topic],
            ClientRequestToken="token",
        )
        assert shown["StackStatus"] == "CREATE_COMPLETE"
        await stage.advance(1)
        received = await stage.call(
            stage.root, "sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        messages = {message["Body"] for message in received["Messages"]}
        events = (await ask(stage, "DescribeStackEvents", StackName="rental"))["StackEvents"]
        assert len(messages) == len(events) == 5
        made = events[1]
        at = made["Timestamp"].astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = {
            "StackId": shown["StackId"],
            "Timestamp": at,
            "EventId": made["EventId"],
            "LogicalResourceId": "Orders",
            "Namespace": ACCOUNT,
            "PhysicalResourceId": made["PhysicalResourceId"],
            "PrincipalId": ACCOUNT,
            "ResourceProperties": '{"QueueName":"orders"}',
            "ResourceStatus": "CREATE_COMPLETE",
            "ResourceStatusReason": "",
            "ResourceType": "AWS::SQS::Queue",
            "StackName": "rental",
            "ClientRequestToken": "token",
        }
        assert "".join(f"{name}='{value}'\n" for name, value in lines.items()) in messages
        assert sum("ResourceProperties='null'" in message for message in messages) == 2

    on_stage(play, auth="off")


def test_events_are_published_with_the_rights_of_whoever_changed_the_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(stage: Stage) -> None:
        topic = (await stage.call(stage.root, "sns", "CreateTopic", Name="events"))["TopicArn"]
        ann = await stage.user("ann", allow("cloudformation:*", "sqs:*"))
        params = {"StackName": "rental", "TemplateBody": body(), "NotificationARNs": [topic]}
        await stage.call(ann, "cloudformation", "CreateStack", **params)
        assert (await described(stage))["StackStatus"] == "CREATE_COMPLETE"
        await stage.advance(1)

    on_stage(play)
    warned = [record.getMessage() for record in caplog.records if "event_unpublished" in record.getMessage()]
    assert len(warned) == 5
    assert "User: arn:aws:iam::111111111111:user/ann is not authorized to perform: SNS:Publish" in warned[0]

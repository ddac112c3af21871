"""CloudFormation's recorded answers."""

from typing import Any, Final

import orjson
import pytest

from redrive.aws.cloudformation.stacks.describing import hash_order
from tests.aws.stage import ACCOUNT, REGION, Refused, Stage, on_stage

QUEUE: Final = {"Type": "AWS::SQS::Queue", "Properties": {}}
TEMPLATE: Final[dict[str, Any]] = {"Resources": {"Orders": QUEUE}}
KEYS: Final = ("Topic1Name", "Topic2Name", "Topic3Name")


def body(**more: Any) -> str:
    """A template's text."""
    return orjson.dumps({**TEMPLATE, **more}).decode()


async def stack(stage: Stage, name: str = "rental", **params: Any) -> dict[str, Any]:
    """A new stack, as it is described once it stands."""
    params.setdefault("TemplateBody", body())
    await stage.call(stage.root, "cloudformation", "CreateStack", StackName=name, **params)
    return await described(stage, name)


async def described(stage: Stage, name: str = "rental") -> dict[str, Any]:
    """A stack, as it is described."""
    for _ in range(50):
        answer = await stage.call(stage.root, "cloudformation", "DescribeStacks", StackName=name)
        (shown,) = answer["Stacks"]
        if not shown["StackStatus"].endswith("IN_PROGRESS") or shown["StackStatus"] == "REVIEW_IN_PROGRESS":
            break
        await stage.advance(1)
    result: dict[str, Any] = shown
    return result


def test_empty_members_of_a_stack_are_absent() -> None:
    async def play(stage: Stage) -> None:
        never = {"Never": {"Fn::Equals": ["a", "b"]}}
        outputs = {"Absent": {"Value": "x", "Condition": "Never"}}
        shown = await stack(stage, TemplateBody=body(Conditions=never, Outputs=outputs))
        assert not {"Parameters", "Outputs", "Capabilities"} & shown.keys()
        assert (shown["Tags"], shown["NotificationARNs"], shown["RollbackConfiguration"]) == ([], [], {})
        assert "LastUpdatedTime" not in shown
        await stage.call(stage.root, "cloudformation", "DeleteStack", StackName="rental")
        gone = await described(stage, shown["StackId"])
        assert (gone["StackStatus"], "DeletionTime" in gone) == ("DELETE_COMPLETE", True)
        assert not {"EnableTerminationProtection", "ChangeSetId", "LastUpdatedTime"} & gone.keys()

    on_stage(play, auth="off")


def test_empty_members_of_a_change_set_are_absent() -> None:
    async def play(stage: Stage) -> None:
        params = {
            "StackName": "rental",
            "ChangeSetName": "first",
            "ChangeSetType": "CREATE",
            "TemplateBody": body(),
        }
        await stage.call(stage.root, "cloudformation", "CreateChangeSet", **params)
        named = {"StackName": "rental", "ChangeSetName": "first"}
        shown = await stage.call(stage.root, "cloudformation", "DescribeChangeSet", **named)
        assert not {"Parameters", "Tags"} & shown.keys()
        assert (shown["Capabilities"], shown["NotificationARNs"]) == ([], [])
        assert (shown["RollbackConfiguration"], shown["IncludeNestedStacks"]) == ({}, False)
        await stage.call(stage.root, "cloudformation", "ExecuteChangeSet", **named)
        assert "LastUpdatedTime" in await described(stage)
        again = {**params, "ChangeSetName": "same", "ChangeSetType": "UPDATE"}
        await stage.call(stage.root, "cloudformation", "CreateChangeSet", **again)
        named["ChangeSetName"] = "same"
        failed = await stage.call(stage.root, "cloudformation", "DescribeChangeSet", **named)
        assert (failed["Status"], failed["Changes"], failed["Capabilities"]) == ("FAILED", [], [])
        assert not {"Parameters", "Tags"} & failed.keys()

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    "names",
    [
        ["BucketName", "EnvType"],
        ["Topic2Name", "Topic1Name", "Topic3Name"],
        ["ParameterValue", "Toggle"],
        ["KinesisRoleName", "DeliveryStreamName", "KinesisStreamName"],
    ],
)
def test_names_have_the_order_of_a_hash_table(names: list[str]) -> None:
    assert hash_order(sorted(names)) == hash_order(names[::-1]) == names


def test_parameters_are_in_the_order_of_a_hash_table() -> None:
    async def play(stage: Stage) -> None:
        declared = {name: {"Type": "String", "Default": "x"} for name in KEYS}
        shown = await stack(stage, TemplateBody=body(Parameters=declared))
        order = ["Topic2Name", "Topic1Name", "Topic3Name"]
        assert [each["ParameterKey"] for each in shown["Parameters"]] == order
        empty = await stage.call(stage.root, "cloudformation", "GetTemplateSummary", TemplateBody=body())
        assert empty["Parameters"] == []
        template = body(Parameters=declared)
        summary = await stage.call(stage.root, "cloudformation", "GetTemplateSummary", TemplateBody=template)
        assert [each["ParameterKey"] for each in summary["Parameters"]] == order
        assert "DeclaredTransforms" not in summary

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    ("operation", "params", "text"),
    [
        ("GetTemplate", {}, "StackName is required if ChangeSetName is not specified."),
        ("GetTemplate", {"ChangeSetName": "first"}, "StackName is a required parameter."),
        ("GetTemplate", {"StackName": "absent"}, "Stack with id absent does not exist"),
        (
            "DescribeStackResource",
            {"StackName": "absent", "LogicalResourceId": "Orders"},
            "Stack 'absent' does not exist",
        ),
    ],
)
def test_each_operation_refuses_an_absent_stack_in_its_own_words(
    operation: str, params: dict[str, str], text: str
) -> None:
    async def play(stage: Stage) -> None:
        refusal = await stage.refusal(stage.root, "cloudformation", operation, **params)
        assert refusal == f"ValidationError: {text}"

    on_stage(play, auth="off")


def test_a_resource_is_told_with_its_metadata_and_a_missing_one_with_the_stacks_arn() -> None:
    async def play(stage: Stage) -> None:
        shown = await stack(stage)
        named = {"StackName": "rental", "LogicalResourceId": "Orders"}
        resource = await stage.call(stage.root, "cloudformation", "DescribeStackResource", **named)
        assert resource["StackResourceDetail"]["Metadata"] == "{}"
        named["LogicalResourceId"] = "Absent"
        refusal = await stage.refusal(stage.root, "cloudformation", "DescribeStackResource", **named)
        assert refusal == f"ValidationError: Resource Absent does not exist for stack {shown['StackId']}"
        assert shown["StackId"].startswith(f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/rental/")

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    "policy",
    [
        "no JSON",
        "[]",
        '{"Version": "1"}',
        '{"Statement": [{"Effect": "Allow", "Action": "Delete:*", "Principal": "*", "Resource": "*"}]}',
        '{"Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "me", "Resource": "*"}]}',
    ],
)
def test_every_bad_stack_policy_has_one_message(policy: str) -> None:
    async def play(stage: Stage) -> None:
        await stack(stage)
        params = {"StackName": "rental", "StackPolicyBody": policy}
        refusal = await stage.refusal(stage.root, "cloudformation", "SetStackPolicy", **params)
        assert refusal == "ValidationError: Error validating stack policy: Invalid stack policy"

    on_stage(play, auth="off")


def test_an_empty_stack_policy_allows_all() -> None:
    async def play(stage: Stage) -> None:
        await stack(stage)
        named = {"StackName": "rental"}
        await stage.call(stage.root, "cloudformation", "SetStackPolicy", **named, StackPolicyBody="{}")
        answer = await stage.call(stage.root, "cloudformation", "GetStackPolicy", **named)
        assert answer["StackPolicyBody"] == "{}"
        changed = body(Resources={"Orders": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 5}}})
        await stage.call(stage.root, "cloudformation", "UpdateStack", **named, TemplateBody=changed)
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"
        with pytest.raises(Refused, match="You cannot specify both StackPolicyURL and StackPolicyBody"):
            await stage.call(
                *(stage.root, "cloudformation", "SetStackPolicy"),
                **named,
                StackPolicyBody="{}",
                StackPolicyURL="https://s3.amazonaws.com/b/k",
            )

    on_stage(play, auth="off")


def test_a_previous_value_may_stand_beside_an_empty_one() -> None:
    async def play(stage: Stage) -> None:
        declared = {"Delay": {"Type": "Number", "Default": "5"}}
        properties = {"DelaySeconds": {"Ref": "Delay"}}
        resources = {"Orders": {"Type": "AWS::SQS::Queue", "Properties": properties}}
        template = body(Parameters=declared, Resources=resources)
        await stack(
            stage, TemplateBody=template, Parameters=[{"ParameterKey": "Delay", "ParameterValue": "7"}]
        )
        resources["Orders"]["Properties"] = {**properties, "VisibilityTimeout": 9}
        kept = [{"ParameterKey": "Delay", "UsePreviousValue": True, "ParameterValue": ""}]
        template = body(Parameters=declared, Resources=resources)
        changed = {"StackName": "rental", "TemplateBody": template}
        both = [{**kept[0], "ParameterValue": "8"}]
        refusal = await stage.refusal(stage.root, "cloudformation", "UpdateStack", **changed, Parameters=both)
        assert refusal == (
            "ValidationError: Invalid input for parameter key Delay. Cannot specify usePreviousValue as true and non"
            " empty value for a parameter"
        )
        await stage.call(
            *(stage.root, "cloudformation", "UpdateStack"),
            StackName="rental",
            TemplateBody=template,
            Parameters=kept,
        )
        shown = await described(stage)
        assert (shown["StackStatus"], shown["Parameters"][0]["ParameterValue"]) == ("UPDATE_COMPLETE", "7")

    on_stage(play, auth="off")

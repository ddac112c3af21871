"""CloudFormation's recorded answers about changes: change sets, updates, events and templates' texts."""

from typing import Any, Final

import orjson
import pytest

from tests.aws.recorded.test_cloudformation import QUEUE, body, described, stack
from tests.aws.recorded.test_lambda import new_function
from tests.aws.stage import ACCOUNT, REGION, Stage, on_stage

_DENIES: Final = (
    '{"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}'
)
_ALARM: Final = {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:slow", "Type": "AWS::CloudWatch::Alarm"}
_PARAMETERS: Final = {
    "Delay": {"Type": "Number", "Default": "5"},
    "Word": {"Type": "String", "NoEcho": True, "Default": "secret"},
    "Kept": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/kept"},
}


async def ask(stage: Stage, operation: str, **params: Any) -> dict[str, Any]:
    """The answer to a call."""
    return await stage.call(stage.root, "cloudformation", operation, **params)


def with_delay(**more: Any) -> str:
    """A template of a queue whose delay is a parameter."""
    properties = {"DelaySeconds": {"Ref": "Delay"}, "VisibilityTimeout": {"Ref": "Delay"}, **more}
    queue = {"Type": "AWS::SQS::Queue", "Metadata": {"delay": {"Ref": "Delay"}}, "Properties": properties}
    return body(Parameters=_PARAMETERS, Resources={"Orders": queue})


async def by_change_set(stage: Stage, template: str, **params: Any) -> dict[str, Any]:
    """A new stack that a change set makes, as it is described once that is over."""
    named = {"StackName": "rental", "ChangeSetName": "first"}
    await ask(stage, "CreateChangeSet", **named, ChangeSetType="CREATE", TemplateBody=template, **params)
    await ask(stage, "ExecuteChangeSet", **named)
    return await described(stage)


async def template_text(stage: Stage) -> str:
    """The text of the stack's template."""
    return str((await ask(stage, "GetTemplate", StackName="rental"))["TemplateBody"])


def delay(seconds: int) -> dict[str, Any]:
    """The parameters of that template."""
    return {"Parameters": [{"ParameterKey": "Delay", "ParameterValue": str(seconds)}]}


def test_a_change_set_masks_what_is_hidden_and_is_executed_when_its_stack_stands() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "ssm", "PutParameter", Name="/kept", Value="found", Type="String")
        named = {"StackName": "rental", "ChangeSetName": "first"}
        made = await ask(stage, "CreateChangeSet", **named, ChangeSetType="CREATE", TemplateBody=with_delay())
        shown = await ask(stage, "DescribeChangeSet", **named)
        by_key = {each.pop("ParameterKey"): each for each in shown["Parameters"]}
        assert by_key["Word"] == {"ParameterValue": "****"}
        assert by_key["Kept"] == {"ParameterValue": "/kept", "ResolvedValue": "found"}
        await ask(stage, "ExecuteChangeSet", **named)
        running = await ask(stage, "DescribeChangeSet", **named)
        assert (running["Status"], running["ExecutionStatus"]) == ("CREATE_COMPLETE", "EXECUTE_IN_PROGRESS")
        assert (await described(stage))["ChangeSetId"] == made["Id"]
        done = await ask(stage, "DescribeChangeSet", **named)
        assert done["ExecutionStatus"] == "EXECUTE_COMPLETE"
        assert (await ask(stage, "ListChangeSets", StackName="rental"))["Summaries"] == []
        detail = await ask(stage, "DescribeStackResource", StackName="rental", LogicalResourceId="Orders")
        assert orjson.loads(detail["StackResourceDetail"]["Metadata"]) == {"delay": "5"}
        await ask(stage, "DeleteStack", StackName="rental")
        gone = await described(stage, made["StackId"])
        assert gone["StackStatus"] == "DELETE_COMPLETE"
        again = await ask(stage, "CreateChangeSet", **named, ChangeSetType="CREATE", TemplateBody=body())
        assert again["StackId"] != made["StackId"]
        after = await ask(stage, "DescribeChangeSet", ChangeSetName=made["Id"])
        assert (after["StackId"], after["ExecutionStatus"]) == (made["StackId"], "EXECUTE_COMPLETE")
        (change,) = after["Changes"]
        assert (after["Status"], change["ResourceChange"]["Action"]) == ("CREATE_COMPLETE", "Add")
        refusal = await stage.refusal(
            *(stage.root, "cloudformation", "CreateChangeSet"),
            StackName=made["StackId"],
            ChangeSetName="second",
            ChangeSetType="CREATE",
            TemplateBody=with_delay(),
        )
        assert refusal == (
            f"ValidationError: Stack [{made['StackId']}] already exists and cannot be created again with the changeSet"
            " [second]."
        )

    on_stage(play, auth="off")


def test_a_parameter_that_changes_is_told_as_a_reference_and_as_a_change() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "ssm", "PutParameter", Name="/kept", Value="found", Type="String")
        await stack(stage, TemplateBody=with_delay())
        named = {"StackName": "rental", "ChangeSetName": "slower"}
        await ask(stage, "CreateChangeSet", **named, TemplateBody=with_delay(), **delay(9))
        (change,) = (await ask(stage, "DescribeChangeSet", **named))["Changes"]
        assert change["ResourceChange"]["Scope"] == ["Metadata", "Properties"]
        details = change["ResourceChange"]["Details"]
        assert details[0]["Target"] == {"Attribute": "Metadata", "RequiresRecreation": "Never"}
        assert [
            (
                each["Target"].get("Name"),
                each["Evaluation"],
                each["ChangeSource"],
                each.get("CausingEntity"),
            )
            for each in details
        ] == [
            (None, "Static", "ParameterReference", "Delay"),
            ("DelaySeconds", "Static", "ParameterReference", "Delay"),
            ("VisibilityTimeout", "Static", "ParameterReference", "Delay"),
            (None, "Dynamic", "DirectModification", None),
            ("DelaySeconds", "Dynamic", "DirectModification", None),
            ("VisibilityTimeout", "Dynamic", "DirectModification", None),
        ]
        named["ChangeSetName"] = "shown"
        metadata = with_delay().replace('"NoEcho":true', '"NoEcho":false').replace('"delay"', '"seconds"')
        await ask(stage, "CreateChangeSet", **named, TemplateBody=metadata)
        described_set = await ask(stage, "DescribeChangeSet", **named)
        (change,) = described_set["Changes"]
        assert (change["ResourceChange"]["Scope"], change["ResourceChange"]["Replacement"]) == (
            ["Metadata"],
            "False",
        )
        # What is masked is as the template of the change set says; the stack's own goes on masking.
        for source, text in ((described_set, "secret"), (await described(stage), "****")):
            (word,) = [each for each in source["Parameters"] if each["ParameterKey"] == "Word"]
            assert word["ParameterValue"] == text

    on_stage(play, auth="off")


def test_a_stack_under_review_can_be_created_without_its_change_set() -> None:
    async def play(stage: Stage) -> None:
        named = {"StackName": "rental", "ChangeSetName": "first"}
        made = await ask(stage, "CreateChangeSet", **named, ChangeSetType="CREATE", TemplateBody=body())
        created = await ask(stage, "CreateStack", StackName="rental", TemplateBody=body())
        assert created["StackId"] == made["StackId"]
        shown = await described(stage)
        assert shown["StackStatus"] == "CREATE_COMPLETE"
        assert not {"ChangeSetId", "LastUpdatedTime"} & shown.keys()
        waiting = await ask(stage, "DescribeChangeSet", **named)
        assert (waiting["Status"], waiting["ExecutionStatus"]) == ("CREATE_COMPLETE", "OBSOLETE")

    on_stage(play, auth="off")


def test_an_update_shows_what_it_leads_to_and_keeps_capabilities() -> None:
    async def play(stage: Stage) -> None:
        named = {"StackName": "rental", "ChangeSetName": "first"}
        capable = {"Capabilities": ["CAPABILITY_IAM"]}
        await ask(stage, "CreateChangeSet", **named, ChangeSetType="CREATE", TemplateBody=body(), **capable)
        await ask(stage, "ExecuteChangeSet", **named)
        assert "ChangeSetId" in await described(stage)
        await ask(
            *(stage, "UpdateStack"),
            StackName="rental",
            UsePreviousTemplate=True,
            Tags=[{"Key": "car", "Value": "1"}],
            NotificationARNs=["arn:aws:sns:us-east-1:111111111111:events"],
            RollbackConfiguration={"RollbackTriggers": [_ALARM], "MonitoringTimeInMinutes": 123},
        )
        (shown,) = (await ask(stage, "DescribeStacks", StackName="rental"))["Stacks"]
        assert shown["StackStatus"] == "UPDATE_IN_PROGRESS"
        assert shown["Tags"] == [{"Key": "car", "Value": "1"}]
        assert shown["NotificationARNs"] == ["arn:aws:sns:us-east-1:111111111111:events"]
        shown = await described(stage)
        assert shown["RollbackConfiguration"] == {
            "RollbackTriggers": [_ALARM],
            "MonitoringTimeInMinutes": 123,
        }
        assert (shown["Capabilities"], "ChangeSetId" in shown) == (["CAPABILITY_IAM"], False)
        kept = {**QUEUE, "DeletionPolicy": "Retain"}
        for changed in (
            {"UsePreviousTemplate": True, "RollbackConfiguration": {"MonitoringTimeInMinutes": 3}},
            {"TemplateBody": body(Resources={"Orders": kept})},
            {"TemplateBody": body(Resources={"Orders": {**kept, "UpdateReplacePolicy": "Retain"}})},
        ):
            await ask(stage, "UpdateStack", StackName="rental", **changed)
            assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"
        named["ChangeSetName"] = "second"
        await ask(stage, "CreateChangeSet", **named, TemplateBody=body())
        assert (await described(stage))["Capabilities"] == ["CAPABILITY_IAM"]
        await ask(stage, "ExecuteChangeSet", **named)
        assert "Capabilities" not in await described(stage)

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"ResourceTypes": ["AWS::EC2::*"]},
            "Resource type AWS::SQS::Queue is not allowed by parameter ResourceTypes [AWS::EC2::*]",
        ),
        (
            {"RollbackConfiguration": {"RollbackTriggers": [{"Arn": "arn", "Type": "AWS::SNS::Topic"}]}},
            "Rollback Trigger Type not supported",
        ),
        (
            {"RollbackConfiguration": {"RollbackTriggers": [{"Arn": "a", "Type": "AWS::CloudWatch::Alarm"}]}},
            "RelativeId of a Rollback Trigger's ARN is incorrect",
        ),
        (
            {"StackPolicyDuringUpdateBody": "{", "UsePreviousTemplate": True},
            "Error validating stack policy: Invalid stack policy",
        ),
        (
            {"StackPolicyBody": "{}", "StackPolicyURL": "https://s3.amazonaws.com/b/k"},
            "You cannot specify both StackPolicyURL and StackPolicyBody",
        ),
        (
            {"UsePreviousTemplate": False, "TemplateURL": "s3://cars/template"},
            "S3 error: Domain name specified in cars is not a valid S3 domain",
        ),
    ],
)
def test_an_update_that_is_refused_begins_nothing(params: dict[str, Any], text: str) -> None:
    async def play(stage: Stage) -> None:
        await stack(stage)
        changed = {"StackName": "rental", "UsePreviousTemplate": True, "Tags": [], **params}
        refusal = await stage.refusal(stage.root, "cloudformation", "UpdateStack", **changed)
        assert refusal == f"ValidationError: {text}"
        assert (await described(stage))["StackStatus"] == "CREATE_COMPLETE"

    on_stage(play, auth="off")


def test_a_policy_during_an_update_binds_that_update_alone() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "ssm", "PutParameter", Name="/kept", Value="found", Type="String")
        await stack(stage, TemplateBody=with_delay())
        changed = {"StackName": "rental", "UsePreviousTemplate": True}
        await ask(stage, "UpdateStack", **changed, **delay(7), StackPolicyDuringUpdateBody=_DENIES)
        during = await ask(stage, "GetStackPolicy", StackName="rental")
        assert during["StackPolicyBody"] == _DENIES
        assert (await described(stage))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        assert "StackPolicyBody" not in await ask(stage, "GetStackPolicy", StackName="rental")
        await ask(stage, "UpdateStack", **changed, **delay(7))
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"

    on_stage(play, auth="off")


def test_a_failed_creation_counts_as_a_deletion_and_leaves_nothing_to_delete() -> None:
    async def play(stage: Stage) -> None:
        group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "no name!"}}
        shown = await by_change_set(stage, body(Resources={"Lines": group, "Orders": QUEUE}))
        assert (shown["StackStatus"], "DeletionTime" in shown) == ("ROLLBACK_COMPLETE", True)
        assert (shown["EnableTerminationProtection"], "ChangeSetId" in shown) == (False, False)
        events = (await ask(stage, "DescribeStackEvents", StackName="rental"))["StackEvents"]
        moments = [event["Timestamp"] for event in reversed(events)]
        assert moments == sorted(set(moments))
        assert events[0]["ResourceStatus"] == "ROLLBACK_COMPLETE"

    on_stage(play, auth="off")


def test_policies_and_names_may_be_functions_and_a_parameter_that_is_no_value() -> None:
    async def play(stage: Stage) -> None:
        group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": {"Ref": "Name"}}}
        parameter = {
            "Type": "AWS::SSM::Parameter",
            "DeletionPolicy": {"Fn::If": ["AWS::NoValue", "Retain", "Delete"]},
            "UpdateReplacePolicy": {"Ref": "Kept"},
            "Properties": {"Type": "String", "Value": "x"},
        }
        made = await stack(
            stage,
            TemplateBody=body(
                Parameters={
                    "Name": {"Type": "String", "Default": "AWS::NoValue"},
                    "Kept": {"Type": "String", "Default": "Retain"},
                },
                Conditions={"AWS::NoValue": {"Fn::Equals": ["a", "a"]}},
                Resources={"Lines": group, "Setting": parameter},
            ),
        )
        resources = (await ask(stage, "DescribeStackResources", StackName="rental"))["StackResources"]
        ids = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources}
        assert ids["Lines"].startswith("rental-Lines-")
        assert ids["Setting"].startswith("CFN-Setting-")
        assert len(ids["Setting"]) == len("CFN-Setting-") + 12
        replaced = (await template_text(stage)).replace('"Value":"x"', '"Value":"x","Name":"other"')
        await ask(stage, "UpdateStack", StackName="rental", TemplateBody=replaced)
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"
        await ask(stage, "DeleteStack", StackName="rental")
        assert (await described(stage, made["StackId"]))["StackStatus"] == "DELETE_COMPLETE"
        events = (await ask(stage, "DescribeStackEvents", StackName=made["StackId"]))["StackEvents"]
        skipped = [event for event in events if event["ResourceStatus"] == "DELETE_SKIPPED"]
        assert [event["PhysicalResourceId"] for event in skipped] == ["other"]
        for name in (ids["Setting"], "other"):  # replaced and removed, and left alone both times
            await stage.call(stage.root, "ssm", "GetParameter", Name=name)

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"no JSON"="x"}', "Template format error: JSON not well-formed. (line 1, column 12)"),
        (
            '{"Resources": "", "Outputs": ""}',
            "Template format error: Any Resources member must be an object.",
        ),
        ('{"Resources": {"Orders": {"Type": "AWS::SQS::Queue",}}}', ""),
        ("{'Resources': {'Orders': {'Type': 'AWS::SQS::Queue'}}}", ""),
    ],
)
def test_text_in_braces_may_be_yaml(text: str, refusal: str) -> None:
    async def play(stage: Stage) -> None:
        if refusal:
            said = await stage.refusal(stage.root, "cloudformation", "ValidateTemplate", TemplateBody=text)
            assert said == f"ValidationError: {refusal}"
        else:
            assert (await ask(stage, "ValidateTemplate", TemplateBody=text))["Parameters"] == []

    on_stage(play, auth="off")


def test_a_summary_names_what_resources_are_imported_by() -> None:
    async def play(stage: Stage) -> None:
        resources = {"Orders": QUEUE, "Setting": {"Type": "AWS::SSM::Parameter"}}
        summary = await ask(
            stage, "GetTemplateSummary", TemplateBody=body(Resources=resources, Metadata={"a": 1})
        )
        assert summary["Metadata"] == '{"a":1}'
        assert summary["ResourceIdentifierSummaries"] == [
            {
                "ResourceType": "AWS::SQS::Queue",
                "LogicalResourceIds": ["Orders"],
                "ResourceIdentifiers": ["QueueUrl"],
            },
            {
                "ResourceType": "AWS::SSM::Parameter",
                "LogicalResourceIds": ["Setting"],
                "ResourceIdentifiers": ["Name"],
            },
        ]

    on_stage(play, auth="off")


@pytest.mark.parametrize("keys", [({"Ref": "Stage"}, "seconds"), ("live", {"Ref": "Stage"})])
def test_a_mapping_without_the_key_of_a_parameter_is_refused_at_once(keys: tuple[Any, Any]) -> None:
    async def play(stage: Stage) -> None:
        delays = {"Fn::FindInMap": ["Delays", *keys]}
        template = body(
            Parameters={"Stage": {"Type": "String", "Default": "test"}},
            Mappings={"Delays": {"live": {"seconds": 5}}},
            Resources={"Orders": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": delays}}},
        )
        params = {"StackName": "rental", "ChangeSetName": "first", "ChangeSetType": "CREATE"}
        refusal = await stage.refusal(
            stage.root, "cloudformation", "CreateChangeSet", **params, TemplateBody=template
        )
        told = "::".join("test" if isinstance(key, dict) else key for key in keys)
        assert refusal == f"ValidationError: Template error: Unable to get mapping for Delays::{told}"

    on_stage(play, auth="off")


def test_an_archive_policy_has_texts_and_an_alias_its_provisioned_concurrency() -> None:
    async def play(stage: Stage) -> None:
        made = await new_function(stage, Publish=True)
        alias = {"FunctionName": "f", "FunctionVersion": made["Version"], "Name": "live"}
        provided = {"ProvisionedConcurrencyConfig": {"ProvisionedConcurrentExecutions": 1}}
        await stage.call(
            stage.root, "lambda", "UpdateFunctionConfiguration", FunctionName="f", Description="second"
        )
        archive = {"FifoTopic": True, "ArchivePolicy": {"MessageRetentionPeriod": 30}}
        resources = {
            "Live": {"Type": "AWS::Lambda::Alias", "Properties": {**alias, **provided}},
            "Second": {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": "f", **provided}},
            "Events": {"Type": "AWS::SNS::Topic", "Properties": archive},
        }
        assert (await stack(stage, TemplateBody=body(Resources=resources)))[
            "StackStatus"
        ] == "CREATE_COMPLETE"
        for qualifier in ("live", "2"):
            named = {"FunctionName": "f", "Qualifier": qualifier}
            kept = await stage.call(stage.root, "lambda", "GetProvisionedConcurrencyConfig", **named)
            assert kept["RequestedProvisionedConcurrentExecutions"] == 1
        topic = await ask(stage, "DescribeStackResource", StackName="rental", LogicalResourceId="Events")
        arn = topic["StackResourceDetail"]["PhysicalResourceId"]
        shown = await stage.call(stage.root, "sns", "GetTopicAttributes", TopicArn=arn)
        assert shown["Attributes"]["ArchivePolicy"] == '{"MessageRetentionPeriod":"30"}'

    on_stage(play, auth="off", functions="on")

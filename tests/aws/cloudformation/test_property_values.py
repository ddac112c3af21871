"""Values of properties in change sets: before and after, and not those that are not to be shown."""

import json
from typing import Any

from tests.aws.cloudformation.stage import Stage, stage


def _template(delay: int, queue: str = "first", **others: Any) -> dict[str, Any]:
    secret = {"Type": "String", "Default": "open sesame", "NoEcho": True}
    properties = {"QueueName": queue, "DelaySeconds": delay, **others}
    hidden = {"Type": "String", "Value": {"Ref": "Secret"}, "Description": f"after {delay}"}
    return {
        "Parameters": {"Secret": secret},
        "Resources": {
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": properties},
            "Hidden": {"Type": "AWS::SSM::Parameter", "Properties": hidden},
        },
    }


async def _changes(at: Stage, template: dict[str, Any], **asked: bool) -> dict[str, Any]:
    named = {"StackName": "shop", "ChangeSetName": "change"}
    await at.stacks("CreateChangeSet", **named, TemplateBody=template)
    found = await at.stacks("DescribeChangeSet", **named, **asked)
    await at.stacks("DeleteChangeSet", **named)
    return {
        change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"] for change in found["Changes"]
    }


async def test_values_are_shown_to_who_asks_and_secrets_to_nobody() -> None:
    async with stage() as at:
        assert (await at.create("shop", _template(1)))["StackStatus"] == "CREATE_COMPLETE"
        tags = [{"Key": "a", "Value": "b"}]
        found = await _changes(at, _template(2, Tags=tags), IncludePropertyValues=True)
        delay, tagged = found["Queue"]["Details"]
        assert delay["Target"] == {
            "Attribute": "Properties",
            "Name": "DelaySeconds",
            "RequiresRecreation": "Never",
            "Path": "/Properties/DelaySeconds",
            "BeforeValue": "1",
            "AfterValue": "2",
            "AttributeChangeType": "Modify",
        }
        assert tagged["Target"]["AfterValue"] == '[{"Key":"a","Value":"b"}]'
        assert (tagged["Target"]["AttributeChangeType"], "BeforeValue" in tagged["Target"]) == ("Add", False)
        assert json.loads(found["Queue"]["BeforeContext"]) == {
            "Properties": {"QueueName": "first", "DelaySeconds": 1}
        }
        assert json.loads(found["Hidden"]["AfterContext"])["Properties"]["Value"] == "****"
        assert json.loads(found["Hidden"]["BeforeContext"])["Properties"]["Value"] == "****"
        only = {name: part for name, part in _template(1).items() if name != "Resources"}
        kept = {"Kept": {"Type": "AWS::SQS::Queue"}}
        gone = await _changes(at, {**only, "Resources": kept}, IncludePropertyValues=True)
        unset = {"Type": "String", "Value": "****", "Description": "after 1"}
        assert json.loads(gone["Hidden"]["BeforeContext"]) == {"Properties": unset}
        assert "AfterContext" not in gone["Hidden"]
        found = await _changes(at, _template(2, Tags=tags))
        assert "BeforeContext" not in found["Queue"]
        assert set(found["Queue"]["Details"][0]["Target"]) == {"Attribute", "Name", "RequiresRecreation"}


async def test_references_of_a_resource_that_goes_are_not_told() -> None:
    text = {"Fn::Sub": "${Queue.Arn}"}
    reader = {"Type": "String", "Value": {"Fn::Join": ["", ["a", "b"]]}, "Tags": {"arn": text, "car": "1"}}
    queue = {"Queue": {"Type": "AWS::SQS::Queue"}}
    async with stage() as at:
        both = {**queue, "Reader": {"Type": "AWS::SSM::Parameter", "Properties": reader}}
        assert (await at.create("shop", {"Resources": both}))["StackStatus"] == "CREATE_COMPLETE"
        found = await _changes(at, {"Resources": queue}, IncludePropertyValues=True)
        tags = {"arn": "{{changeSet:KNOWN_AFTER_APPLY}}", "car": "1"}
        assert json.loads(found["Reader"]["BeforeContext"]) == {
            "Properties": {"Type": "String", "Value": "ab", "Tags": tags}
        }
        assert (found["Reader"]["Action"], found.keys()) == ("Remove", {"Reader"})
        found = await _changes(at, {"Resources": queue})
        assert "BeforeContext" not in found["Reader"]

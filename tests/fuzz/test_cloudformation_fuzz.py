"""Requests to CloudFormation that were right once: each is answered below 500, and a refusal changes nothing."""

import asyncio
import json
import logging
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.aws.cloudformation.service import SERVICE
from redrive.model.http import Request
from tests.aws.cloudformation.stage import Stage, stage
from tests.aws.wire.clients import Client
from tests.fuzz.spoiling import TEXTS, spoilt, spoilt_forms
from tests.fuzz.watched import Complaints

CLIENT: Final = Client("cloudformation", "query")
TEMPLATE: Final[dict[str, Any]] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "spoilt",
    "Transform": "AWS::LanguageExtensions",
    "Parameters": {
        "Seconds": {"Type": "Number", "Default": 3, "MinValue": 1, "AllowedPattern": "[0-9]+"},
        "Names": {"Type": "CommaDelimitedList", "Default": "a,b"},
    },
    "Mappings": {"Map": {"a": {"b": "c"}}},
    "Conditions": {
        "Yes": {"Fn::And": [{"Fn::Equals": [{"Ref": "Seconds"}, "3"]}, {"Fn::Not": [{"Fn::Equals": [1, 2]}]}]}
    },
    "Rules": {"Rule": {"Assertions": [{"Assert": {"Fn::Contains": [["3"], {"Ref": "Seconds"}]}}]}},
    "Resources": {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Condition": "Yes",
            "Properties": {"VisibilityTimeout": {"Ref": "Seconds"}, "Tags": [{"Key": "a", "Value": "b"}]},
        },
        "Fn::ForEach::Loop": ["N", {"Ref": "Names"}, {"Topic${N}": {"Type": "AWS::SNS::Topic"}}],
        "Policy": {
            "Type": "AWS::SQS::QueuePolicy",
            "DeletionPolicy": "Delete",
            "Properties": {
                "Queues": [{"Fn::If": ["Yes", {"Ref": "Queue"}, {"Ref": "AWS::NoValue"}]}],
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": "*",
                            "Action": "sqs:SendMessage",
                            "Resource": {"Fn::GetAtt": ["Queue", "Arn"]},
                        }
                    ],
                },
            },
        },
        "Parameter": {
            "Type": "AWS::SSM::Parameter",
            "DependsOn": ["Queue"],
            "Properties": {
                "Type": "String",
                "Value": {
                    "Fn::Join": ["-", [{"Fn::Sub": "${AWS::Region}"}, {"Fn::FindInMap": ["Map", "a", "b"]}]]
                },
            },
        },
    },
    "Outputs": {
        "Url": {"Value": {"Fn::Select": [0, {"Fn::Split": [",", "a,b"]}]}, "Export": {"Name": "url"}}
    },
}
_BODY: Final = {"TemplateBody": json.dumps(TEMPLATE)}
_STACK: Final = {"StackName": "shop"}
_SET: Final = {**_STACK, "ChangeSetName": "change"}
RIGHT: Final[list[tuple[str, dict[str, Any]]]] = [
    (
        "CreateStack",
        {"StackName": "new", **_BODY, "Capabilities": ["CAPABILITY_AUTO_EXPAND"], "TimeoutInMinutes": 5},
    ),
    (
        "UpdateStack",
        {**_STACK, **_BODY, "Capabilities": ["CAPABILITY_AUTO_EXPAND"], "Tags": [{"Key": "a", "Value": "b"}]},
    ),
    ("CreateChangeSet", {**_SET, **_BODY, "ChangeSetName": "other", "ChangeSetType": "UPDATE"}),
    ("ValidateTemplate", _BODY),
    ("GetTemplateSummary", _BODY),
    ("GetTemplateSummary", _STACK),
    ("DeleteStack", _STACK),
    ("DescribeStacks", {**_STACK, "NextToken": "MTAw"}),
    ("ListStacks", {"StackStatusFilter": ["CREATE_COMPLETE"]}),
    ("DescribeStackEvents", _STACK),
    ("DescribeStackResource", {**_STACK, "LogicalResourceId": "Queue"}),
    ("DescribeStackResources", _STACK),
    ("ListStackResources", _STACK),
    ("GetTemplate", {**_STACK, "TemplateStage": "Processed"}),
    ("DescribeChangeSet", _SET),
    ("ListChangeSets", _STACK),
    ("ExecuteChangeSet", _SET),
    ("DeleteChangeSet", _SET),
    ("ListExports", {}),
    ("ListImports", {"ExportName": "url"}),
    (
        "SetStackPolicy",
        {**_STACK, "StackPolicyBody": json.dumps({"Statement": [{"Effect": "Allow", "Action": "*"}]})},
    ),
    ("GetStackPolicy", _STACK),
    ("UpdateTerminationProtection", {**_STACK, "EnableTerminationProtection": True}),
    ("CancelUpdateStack", _STACK),
    ("ContinueUpdateRollback", {**_STACK, "ResourcesToSkip": ["Queue"]}),
    ("RollbackStack", _STACK),
    ("SignalResource", {**_STACK, "LogicalResourceId": "Queue", "UniqueId": "a", "Status": "SUCCESS"}),
    ("DetectStackDrift", {**_STACK, "LogicalResourceIds": ["Queue"]}),
    ("DescribeStackResourceDrifts", _STACK),
]


@dataclass(frozen=True)
class Sent:
    """A request: its operation, and its form."""

    operation: str
    body: bytes


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """A request whose parameters, template or form were spoilt."""
    operation, params = deepcopy(draw(st.sampled_from(RIGHT)))
    if "TemplateBody" in params and draw(st.integers(0, 4)):
        template = deepcopy(TEMPLATE)
        for _ in range(draw(st.integers(1, 3))):
            template = spoilt(draw, template)
        params["TemplateBody"] = json.dumps(template)
    elif draw(st.booleans()):
        name = draw(st.sampled_from([*params, "StackName"]))
        form = CLIENT.request(operation, {key: value for key, value in params.items() if key != name}).body
        text = draw(TEXTS)
        return Sent(operation, form + f"&{name}={quote_plus(text, errors='replace')}".encode())
    else:
        return Sent(operation, draw(spoilt_forms(CLIENT.request(operation, params).body)))
    return Sent(operation, CLIENT.request(operation, params).body)


async def tell(all_sent: list[Sent]) -> None:
    """Ask one after the other, of a world of their own."""
    complaints = Complaints()
    logging.getLogger("redrive").addHandler(complaints)
    try:
        async with stage() as at:
            await at.create("shop", TEMPLATE)
            await at.stacks(
                "CreateChangeSet",
                **_SET,
                TemplateBody={**TEMPLATE, "Resources": {"Q": {"Type": "AWS::SQS::Queue"}}},
            )
            for sent in all_sent:
                before = await _everything(at)
                response = await at.server.router.answer(_request(sent))
                assert response.status < 500, (sent, response.body)
                ET.fromstring(response.body)
                await at.operations.until_quiet()
                if response.status >= 400:
                    assert await _everything(at) == before, (sent, response.body)
                assert not complaints.heard, (sent, complaints.heard)
            shown = await at.stacks("DescribeStacks")
            assert not [one for one in shown["Stacks"] if one["StackStatus"].endswith("FAILED")], all_sent
    finally:
        logging.getLogger("redrive").removeHandler(complaints)


def _request(sent: Sent) -> Request:
    asked = CLIENT.request(sent.operation, {})
    return Request("POST", "/", "", {**asked.headers, "host": "127.0.0.1:4566"}, sent.body)


async def _everything(at: Stage) -> list[Any]:
    documents = at.server.core.engine.resources.documents
    return [await documents.entries(kind) for kind in SERVICE.documents]


@settings(max_examples=12)
@given(st.lists(requests(), min_size=1, max_size=6))
def test_a_refusal_changes_nothing_and_nothing_fails(all_sent: list[Sent]) -> None:
    asyncio.run(tell(all_sent))

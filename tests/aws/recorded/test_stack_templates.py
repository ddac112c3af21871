"""CloudFormation's recorded answers about templates that are put together: includes, language extensions."""

from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.aws.recorded.test_cloudformation import QUEUE, body, described, stack
from tests.aws.recorded.test_stack_changes import ask
from tests.aws.stage import Refused, Stage, on_stage

_EXPANDS: Final = {"Capabilities": ["CAPABILITY_AUTO_EXPAND"]}
_PARTS: Final = {
    "delay.json": '{"DelaySeconds": 7, "VisibilityTimeout": 9}',
    "queue.yaml": "Type: AWS::SQS::Queue\nProperties:\n  DelaySeconds: 5\n",
    "policy.json": '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:111111111111:dead", "maxReceiveCount": 3}',
    "list.yaml": "[1, 2]",
    "large.yaml": "x" * 100_000,
}


def include(location: Any) -> dict[str, Any]:
    """The function that includes a part."""
    return {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": location}}}


async def template_of(stage: Stage, **params: str) -> Any:
    """The template of the stack."""
    return orjson.loads((await ask(stage, "GetTemplate", StackName="rental", **params))["TemplateBody"])


async def with_bucket(stage: Stage) -> None:
    """Put the parts into a bucket."""
    await stage.call(stage.root, "s3", "CreateBucket", Bucket="cars")
    for name, text in _PARTS.items():
        await stage.call(stage.root, "s3", "PutObject", Bucket="cars", Key=name, Body=text.encode())


def test_a_template_includes_properties_resources_and_values_from_buckets(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await with_bucket(stage)
        named = {"Fn::Sub": "s3://${Bucket}/delay.json"}
        properties = {**include(named), "RedrivePolicy": include("s3://cars/policy.json"), "DelaySeconds": 3}
        text = body(
            Parameters={"Bucket": {"Type": "String", "Default": "cars"}},
            Resources={
                "Orders": {
                    "Type": "AWS::SQS::Queue",
                    "DependsOn": "Dead",
                    "Properties": {"QueueName": "orders", **properties},
                },
                "Bills": include("s3://cars/queue.yaml"),
                "Dead": {**QUEUE, "Properties": {"QueueName": "dead"}},
            },
        )
        assert (await ask(stage, "GetTemplateSummary", TemplateBody=text))["ResourceTypes"] == [
            "AWS::SQS::Queue"
        ]
        shown = await stack(stage, TemplateBody=text, **_EXPANDS)
        assert shown["StackStatus"] == "CREATE_COMPLETE"
        url = (await stage.call(stage.root, "sqs", "GetQueueUrl", QueueName="orders"))["QueueUrl"]
        every = {"QueueUrl": url, "AttributeNames": ["All"]}
        made = (await stage.call(stage.root, "sqs", "GetQueueAttributes", **every))["Attributes"]
        assert (made["DelaySeconds"], made["VisibilityTimeout"]) == ("3", "9")  # its own member wins
        assert orjson.loads(made["RedrivePolicy"])["maxReceiveCount"] == 3
        assert await template_of(stage) == orjson.loads(text)
        processed = await template_of(stage, TemplateStage="Processed")
        assert list(processed) == ["Parameters", "Resources"]
        assert list(processed["Resources"]) == ["Bills", "Dead", "Orders"]
        assert processed["Resources"]["Bills"] == {
            "Properties": {"DelaySeconds": 5},
            "Type": "AWS::SQS::Queue",
        }
        assert processed["Resources"]["Orders"]["Properties"]["VisibilityTimeout"] == 9

    on_stage(play, auth="off", blob_store=str(tmp_path))


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            {"Fn::Transform": {"Name": "Mine", "Parameters": {}}},
            "No transform named Mine found.",
        ),
        (
            include("https://cars.s3.amazonaws.com/delay.json"),
            "Transform AWS::Include failed with: The location parameter is not a valid S3 uri.",
        ),
        (
            include("s3://cars/absent"),
            "Transform AWS::Include failed with: S3 error: The specified key does not exist.",
        ),
        (
            {**include("s3://cars/list.yaml"), "DelaySeconds": 3},
            "Transform AWS::Include failed with: What is included beside other members must be an object.",
        ),
        (
            {f"A{number}": include("s3://cars/large.yaml") for number in range(200)},
            "Template error: its functions make more than 200000 values or 12800000 characters.",
        ),
        (
            {f"A{number}": include(f"s3://cars/{number}") for number in range(101)},
            "Transform AWS::Include failed with: A template includes at most 100 objects.",
        ),
        (
            {"Fn::Transform": []},
            "Template error: every Fn::Transform object requires a Name, and Parameters.",
        ),
    ],
)
def test_a_part_that_cannot_be_included_is_refused_at_once(
    properties: dict[str, Any], text: str, tmp_path: Path
) -> None:
    async def play(stage: Stage) -> None:
        await with_bucket(stage)
        template = body(Resources={"Orders": {**QUEUE, "Properties": properties}})
        for operation, more in (
            ("CreateStack", {"StackName": "rental", **_EXPANDS}),
            ("ValidateTemplate", {}),
        ):
            refusal = await stage.refusal(
                stage.root, "cloudformation", operation, TemplateBody=template, **more
            )
            assert refusal == f"ValidationError: {text}"
        with pytest.raises(Refused, match="does not exist"):
            await described(stage)

    on_stage(play, auth="off", blob_store=str(tmp_path))


def test_a_template_that_includes_parts_needs_the_capability(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await with_bucket(stage)
        template = body(Resources={"Orders": include("s3://cars/queue.yaml")})
        params = {"StackName": "rental", "TemplateBody": template}
        refusal = await stage.refusal(stage.root, "cloudformation", "CreateStack", **params)
        assert refusal == (
            "InsufficientCapabilitiesException: Requires capabilities : [CAPABILITY_AUTO_EXPAND]"
        )

    on_stage(play, auth="off", blob_store=str(tmp_path))


def test_extensions_are_carried_out_in_the_processed_template_as_far_as_they_can_be() -> None:
    async def play(stage: Stage) -> None:
        secret = {"Fn::ToJsonString": {"word": {"Ref": "Secret"}}}
        of_queue = {"Fn::ToJsonString": {"queue": {"Ref": "Orders"}}}
        texts = {
            "Length": {"Fn::Length": {"Ref": "Places"}},
            "Json": {"Fn::ToJsonString": {"stage": {"Ref": "Stage"}}},
            "Joined": {"Fn::Join": ["-", ["a", "b"]]},
            "Sub": {"Fn::Sub": "plain"},
            "Referring": {"Fn::Sub": "${Stage}-x"},
            "Secret": secret,
            "OfQueue": of_queue,
        }
        outputs = {name: {"Value": value} for name, value in texts.items()}
        template = body(
            Transform="AWS::LanguageExtensions",
            Parameters={
                "Places": {"Type": "CommaDelimitedList", "Default": "a,b,c"},
                "Stage": {"Type": "String", "Default": "live"},
                "Secret": {"Type": "String", "Default": "sesame", "NoEcho": True},
            },
            Outputs=outputs,
        )
        await stack(stage, TemplateBody=template, **_EXPANDS)
        processed = await template_of(stage, TemplateStage="Processed")
        assert "Transform" not in processed
        assert {name: output["Value"] for name, output in processed["Outputs"].items()} == {
            "Length": 3,
            "Json": '{"stage":"live"}',
            "Joined": "a-b",
            "Sub": "plain",
            "Referring": {"Fn::Sub": "${Stage}-x"},
            "Secret": secret,
            "OfQueue": of_queue,
        }
        assert (await template_of(stage))["Transform"] == "AWS::LanguageExtensions"
        # The transform is carried out anew: the same template once more is an update.
        await ask(stage, "UpdateStack", StackName="rental", UsePreviousTemplate=True, **_EXPANDS)
        assert (await described(stage))["StackStatus"] == "UPDATE_COMPLETE"

    on_stage(play, auth="off")

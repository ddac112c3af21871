"""Tags of parameters, as Terraform reads and writes them."""

import pytest

from redrive.aws.wire.errors import AwsError
from tests.aws.cloudformation.stage import stage

NAME = "/rental/queue"


async def test_tags_of_a_parameter_come_and_go() -> None:
    async with stage() as at:
        first = [{"Key": "team", "Value": "rental"}]
        await at.ask("ssm", "PutParameter", Name=NAME, Type="String", Value="v", Tags=first)
        named = {"ResourceType": "Parameter", "ResourceId": NAME}
        assert (await at.ask("ssm", "ListTagsForResource", **named))["TagList"] == first
        await at.ask("ssm", "AddTagsToResource", **named, Tags=[{"Key": "a", "Value": "b"}])
        await at.ask("ssm", "RemoveTagsFromResource", **named, TagKeys=["team"])
        assert (await at.ask("ssm", "ListTagsForResource", **named))["TagList"] == [
            {"Key": "a", "Value": "b"}
        ]
        many = [{"Key": str(number), "Value": ""} for number in range(50)]
        for operation, params in (
            ("AddTagsToResource", {**named, "Tags": many}),
            ("ListTagsForResource", {**named, "ResourceId": "/none"}),
            ("ListTagsForResource", {**named, "ResourceType": "Document"}),
        ):
            with pytest.raises(AwsError):
                await at.ask("ssm", operation, **params)

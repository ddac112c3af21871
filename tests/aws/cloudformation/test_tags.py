"""Tags of resources: a stack keeps them as its template has them, in every service that has tags."""

from typing import Any

from tests.aws.cloudformation.stage import ACCOUNT, Stage, stage


def _template(*teams: str) -> dict[str, Any]:
    tags = [{"Key": "team", "Value": team} for team in teams]
    by_key = {tag["Key"]: tag["Value"] for tag in tags}
    resources = {
        "Key": (
            "KMS::Key",
            {"EnableKeyRotation": True, "RotationPeriodInDays": 100 + len(teams), "Tags": tags},
        ),
        "Group": ("Logs::LogGroup", {"LogGroupName": "cars", "Tags": tags}),
        "Parameter": ("SSM::Parameter", {"Type": "String", "Name": "cars", "Value": "1", "Tags": by_key}),
        "Bucket": ("S3::Bucket", {"BucketName": "cars", "Tags": tags}),
    }
    return {
        "Resources": {
            name: {"Type": f"AWS::{kind}", "Properties": properties}
            for name, (kind, properties) in resources.items()
        }
    }


async def _teams(at: Stage) -> list[str | None]:
    key = (await at.resources("fleet"))["Key"]["PhysicalResourceId"]
    of_key = (await at.ask("kms", "ListResourceTags", KeyId=key))["Tags"]
    arn = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:cars"
    named = {"ResourceType": "Parameter", "ResourceId": "cars"}
    found = [
        {tag["TagKey"]: tag["TagValue"] for tag in of_key},
        (await at.ask("logs", "ListTagsForResource", resourceArn=arn)).get("tags") or {},
        {
            tag["Key"]: tag["Value"]
            for tag in (await at.ask("ssm", "ListTagsForResource", **named))["TagList"]
        },
    ]
    if any("team" in tags for tags in found):  # S3 has an error for a bucket without any
        of_bucket = (await at.ask("s3", "GetBucketTagging", Bucket="cars"))["TagSet"]
        found.append({tag["Key"]: tag["Value"] for tag in of_bucket})
    return [tags.get("team") for tags in found]


async def test_tags_come_change_and_go_with_the_template() -> None:
    async with stage() as at:
        made = await at.create("fleet", _template("cars"))
        assert made["StackStatus"] == "CREATE_COMPLETE", await at.reasons("fleet", "CREATE_FAILED")
        assert await _teams(at) == ["cars"] * 4
        for teams, wanted in ((("vans",), ["vans"] * 4), ((), [None] * 3)):
            changed = await at.update("fleet", _template(*teams))
            assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("fleet", "UPDATE_FAILED")
            assert await _teams(at) == wanted
        key = (await at.resources("fleet"))["Key"]["PhysicalResourceId"]
        rotation = await at.ask("kms", "GetKeyRotationStatus", KeyId=key)
        assert rotation["RotationPeriodInDays"] == 100

"""STS's recorded answers."""

import pytest

from tests.aws.iam.stage import ACCOUNT, Stage, allow, on_stage


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::not-an-account:role/x",
        "arn:aws:iam:::role/x",
        "arn:aws:iam::12345:role/x",
        f"arn:aws:iam:us-east-1:{ACCOUNT}:role/x",
        f"arn:aws:iam::{ACCOUNT}:role/",
        f"arn:aws:iam::{ACCOUNT}:role/demo:bad",
    ],
)
def test_a_role_that_is_no_role_is_refused(arn: str) -> None:
    async def play(stage: Stage) -> None:
        params = {"RoleArn": arn, "RoleSessionName": "session"}
        refusal = await stage.refusal(stage.root, "sts", "AssumeRole", **params)
        assert refusal == f"ValidationError: {arn} is invalid"

    on_stage(play, auth="off")


def test_a_role_may_have_a_path() -> None:
    async def play(stage: Stage) -> None:
        arn = f"arn:aws:iam::{ACCOUNT}:role/teams/cars/driver"
        params = {"RoleArn": arn, "RoleSessionName": "session"}
        answer = await stage.call(stage.root, "sts", "AssumeRole", **params)
        assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/driver/session"

    on_stage(play, auth="off")


def test_tags_of_sessions_are_the_same_in_any_case() -> None:
    async def play(stage: Stage) -> None:
        arn = await stage.role("driver", {"AWS": ACCOUNT}, allow("*"))
        asked = {"RoleArn": arn, "RoleSessionName": "session"}
        twice = [{"Key": "Car", "Value": "1"}, {"Key": "car", "Value": "2"}]
        refusal = await stage.refusal(stage.root, "sts", "AssumeRole", **asked, Tags=twice)
        assert refusal.endswith("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
        session = await stage.assume(stage.root, arn, Tags=twice[:1], TransitiveTagKeys=["CAR"])
        refusal = await stage.refusal(session, "sts", "AssumeRole", **asked, Tags=twice[1:])
        assert refusal.endswith(
            "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from"
            " the calling session."
        )

    on_stage(play)

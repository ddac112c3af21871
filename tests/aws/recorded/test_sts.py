"""STS's recorded answers."""

import pytest

from tests.aws.iam.stage import ACCOUNT, Stage, on_stage


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

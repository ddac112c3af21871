"""STS's recorded answers."""

import pytest

from tests.aws.stage import ACCOUNT, Stage, allow, key_of, on_stage, policy


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


def test_a_federated_user_may_do_what_its_policy_and_its_users_allow() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("sqs:ListQueues", "sts:GetFederationToken"))
        own = allow("sqs:ListQueues", "sns:ListTopics", "sts:GetFederationToken")
        asked = {"Name": "bob", "Policy": policy(own)}
        answer = await stage.call(ann, "sts", "GetFederationToken", **asked)
        arn = f"arn:aws:sts::{ACCOUNT}:federated-user/bob"
        assert answer["FederatedUser"] == {"Arn": arn, "FederatedUserId": f"{ACCOUNT}:bob"}
        assert answer["PackedPolicySize"] > 0
        bob = key_of(answer["Credentials"])
        identity = await stage.call(bob, "sts", "GetCallerIdentity")
        assert (identity["Arn"], identity["UserId"]) == (arn, f"{ACCOUNT}:bob")
        assert await stage.may(bob, "sqs", "ListQueues")
        assert not await stage.may(bob, "sns", "ListTopics")  # which ann may not either
        refusal = await stage.refusal(bob, "sts", "GetFederationToken", Name="eve")
        assert refusal == "AccessDenied: Cannot call GetFederationToken with session credentials"
        await stage.call(stage.root, "iam", "DeleteUserPolicy", UserName="ann", PolicyName="own")
        assert not await stage.may(bob, "sqs", "ListQueues")
        assert not await stage.may(ann, "sts", "GetFederationToken", Name="bob")

    on_stage(play)


def test_a_federated_user_of_an_account_has_its_policy_alone() -> None:
    async def play(stage: Stage) -> None:
        asked = {"Name": "bob", "DurationSeconds": 7200}
        answer = await stage.call(stage.root, "sts", "GetFederationToken", **asked)
        assert answer["PackedPolicySize"] == 0
        assert not await stage.may(key_of(answer["Credentials"]), "sqs", "ListQueues")
        answer = await stage.call(
            stage.root, "sts", "GetFederationToken", **asked, Policy=policy(allow("sqs:ListQueues"))
        )
        bob = key_of(answer["Credentials"])
        assert await stage.may(bob, "sqs", "ListQueues")
        assert not await stage.may(bob, "sns", "ListTopics")
        await stage.advance(3601)  # an account's ends after an hour
        refusal = await stage.refusal(bob, "sqs", "ListQueues")
        assert refusal.startswith("ExpiredToken")

    on_stage(play)

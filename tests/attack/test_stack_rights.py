"""Stacks and the rights that they are changed with: those of who changes them now, or of a role of their own account."""

import json
from functools import partial
from typing import Any, Final

import pytest

from tests.aws.stage import ACCOUNT, REGION, Key, Refused, Stage, allow, on_stage, policy

CLOUDFORMATION: Final = {"Service": "cloudformation.amazonaws.com"}
OWN: Final = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
QUEUE: Final = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "theirs"}}
ADMINISTRATOR: Final = {
    "Type": "AWS::IAM::User",
    "Properties": {
        "UserName": "taken",
        "Policies": [{"PolicyName": "a", "PolicyDocument": json.loads(policy(allow("*")))}],
    },
}
NAMED: Final = ["CAPABILITY_NAMED_IAM"]


def template(**resources: Any) -> str:
    return json.dumps({"Resources": resources})


async def status(stage: Stage, key: Key, name: str = "s") -> str:
    """The status that a stack comes to."""
    await stage.advance(60)
    answer = await stage.call(key, "cloudformation", "DescribeStacks", StackName=name)
    return str(answer["Stacks"][0]["StackStatus"])


async def there(stage: Stage) -> set[str]:
    """The users and queues of the account that somebody tried to make or to delete."""
    users = (await stage.call(stage.root, "iam", "ListUsers"))["Users"]
    queues = (await stage.call(stage.root, "sqs", "ListQueues")).get("QueueUrls") or []
    return {user["UserName"] for user in users} & {"taken"} | {url.rpartition("/")[2] for url in queues}


@pytest.mark.parametrize("trusted", [OWN, CLOUDFORMATION], ids=["its account", "CloudFormation"])
def test_a_stack_does_not_act_as_a_role_of_another_account(trusted: Any) -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("admin", trusted, allow("*"))
        cloudformation = partial(stage.refusal, stage.stranger, "cloudformation")
        body = {"TemplateBody": template(U=ADMINISTRATOR), "Capabilities": NAMED}
        await stage.call(
            stage.stranger, "cloudformation", "CreateStack", StackName="own", TemplateBody=template(Q=QUEUE)
        )
        await stage.advance(60)
        for operation, params in (
            ("CreateStack", {"StackName": "s", **body}),
            ("UpdateStack", {"StackName": "own", **body}),
            ("CreateChangeSet", {"StackName": "own", "ChangeSetName": "c", **body}),
            ("DeleteStack", {"StackName": "own"}),
        ):
            refused = await cloudformation(operation, RoleARN=role, **params)
            assert "Cross-account pass role is not allowed." in refused
        assert await there(stage) == set()

    on_stage(play)


def test_a_stack_acts_only_as_roles_that_trust_cloudformation() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", OWN, allow("*"))
        create = {"StackName": "s", "TemplateBody": template(Q=QUEUE), "RoleARN": role}
        refused = await stage.refusal(stage.root, "cloudformation", "CreateStack", **create)
        assert refused == f"ValidationError: Role {role} is invalid or cannot be assumed"
        trusts = {"Effect": "Allow", "Principal": CLOUDFORMATION, "Action": "sts:AssumeRole"}
        document = {"RoleName": "worker", "PolicyDocument": policy(trusts)}
        await stage.call(stage.root, "iam", "UpdateAssumeRolePolicy", **document)
        await stage.call(stage.root, "cloudformation", "CreateStack", **create)
        assert await status(stage, stage.root) == "CREATE_COMPLETE"
        # It is asked again at each change: the trust may be gone.
        document["PolicyDocument"] = policy({**trusts, "Principal": OWN})
        await stage.call(stage.root, "iam", "UpdateAssumeRolePolicy", **document)
        await stage.call(stage.root, "cloudformation", "DeleteStack", StackName="s")
        assert await status(stage, stage.root) == "DELETE_FAILED"
        assert await there(stage) == {"theirs"}

    on_stage(play)


CHANGES: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "an update": (
        "UpdateStack",
        {"TemplateBody": template(Q=QUEUE, U=ADMINISTRATOR), "Capabilities": NAMED},
        "UPDATE_ROLLBACK_COMPLETE",
    ),
    "a deletion": ("DeleteStack", {}, "DELETE_FAILED"),
    "a change set of somebody else": ("ExecuteChangeSet", {"ChangeSetName": "c"}, "UPDATE_ROLLBACK_COMPLETE"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stack_is_changed_with_the_rights_of_who_changes_it(change: str) -> None:
    operation, params, ending = CHANGES[change]

    async def play(stage: Stage) -> None:
        root = partial(stage.call, stage.root, "cloudformation")
        await root("CreateStack", StackName="s", TemplateBody=template(Q=QUEUE))
        await stage.advance(60)
        added = {"TemplateBody": template(Q=QUEUE, U=ADMINISTRATOR), "Capabilities": NAMED}
        await root("CreateChangeSet", StackName="s", ChangeSetName="c", **added)
        ann = await stage.user("ann", allow("cloudformation:*"))
        await stage.call(ann, "cloudformation", operation, StackName="s", **params)
        assert await status(stage, stage.root) == ending
        assert await there(stage) == {"theirs"}
        await root("DeleteStack", StackName="s")  # and root's rights are root's again
        await stage.advance(60)
        assert await there(stage) == set()

    on_stage(play)


def test_a_rollback_is_made_with_the_rights_of_who_asks_for_it() -> None:
    async def play(stage: Stage) -> None:
        topic = f"arn:aws:sns:us-east-1:{ACCOUNT}:missing"
        endpoint = f"arn:aws:sqs:us-east-1:{ACCOUNT}:theirs"
        broken = {
            "Type": "AWS::SNS::Subscription",
            "Properties": {"TopicArn": topic, "Protocol": "sqs", "Endpoint": endpoint},
        }
        await stage.call(
            stage.root,
            "cloudformation",
            "CreateStack",
            StackName="s",
            TemplateBody=template(Q=QUEUE, S={**broken, "DependsOn": "Q"}),
            DisableRollback=True,
        )
        assert await status(stage, stage.root) == "CREATE_FAILED"
        ann = await stage.user("ann", allow("cloudformation:*"))
        await stage.call(ann, "cloudformation", "RollbackStack", StackName="s")
        assert await status(stage, stage.root) == "ROLLBACK_FAILED"
        assert await there(stage) == {"theirs"}

    on_stage(play)


def test_a_stack_of_a_session_is_bound_by_the_session_s_policy() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("strong", OWN, allow("*"))
        bob = await stage.user("bob", allow("*"))
        narrow = await stage.assume(bob, role, Policy=policy(allow("cloudformation:*", "sqs:*")))
        create = {"StackName": "s", "TemplateBody": template(U=ADMINISTRATOR), "Capabilities": NAMED}
        await stage.call(narrow, "cloudformation", "CreateStack", **create)
        assert (await status(stage, stage.root)).startswith("ROLLBACK_")
        assert await there(stage) == set()
        # What the policy allows is made, also by a stack within the stack.
        await stage.call(stage.root, "s3", "CreateBucket", Bucket="templates")
        body = template(Q=QUEUE, U={**ADMINISTRATOR, "DependsOn": "Q"}).encode()
        await stage.call(stage.root, "s3", "PutObject", Bucket="templates", Key="inner", Body=body)
        reads = await stage.assume(bob, role, Policy=policy(allow("cloudformation:*", "sqs:*", "s3:*")))
        url = "https://s3.amazonaws.com/templates/inner"
        inner = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
        outer = {
            "StackName": "o",
            "TemplateBody": template(N=inner),
            "DisableRollback": True,
            "Capabilities": NAMED,
        }
        await stage.call(reads, "cloudformation", "CreateStack", **outer)
        assert await status(stage, stage.root, "o") == "CREATE_FAILED"
        assert await there(stage) == {"theirs"}

    on_stage(play)


def test_a_deleted_user_has_no_rights_in_a_stack() -> None:
    """A user who was deleted may do nothing any more, and a new one of the same name is somebody else."""

    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("*"))
        waits = {
            "Type": "AWS::CloudFormation::WaitCondition",
            "Properties": {"Handle": {"Ref": "H"}, "Timeout": "600"},
        }
        handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
        late = template(
            H=handle, W=waits, Q={**QUEUE, "DependsOn": "H"}, U={**ADMINISTRATOR, "DependsOn": "W"}
        )
        create = {"StackName": "s", "TemplateBody": late, "Capabilities": NAMED}
        await stage.call(ann, "cloudformation", "CreateStack", **create)
        await stage.advance(1)
        assert await there(stage) == {"theirs"}
        await stage.call(stage.root, "iam", "DeleteAccessKey", UserName="ann", AccessKeyId=ann.id)
        await stage.call(stage.root, "iam", "DeleteUserPolicy", UserName="ann", PolicyName="own")
        await stage.call(stage.root, "iam", "DeleteUser", UserName="ann")
        await stage.user("ann", allow("*"))
        assert (await status(stage, stage.root)).endswith("_IN_PROGRESS")
        await stage.advance(700)
        assert await status(stage, stage.root) == "ROLLBACK_FAILED"
        assert await there(stage) == {"theirs"}

    on_stage(play)


def test_drift_is_looked_for_with_the_rights_of_who_looks() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(
            stage.root, "cloudformation", "CreateStack", StackName="s", TemplateBody=template(Q=QUEUE)
        )
        await stage.advance(60)
        ann = await stage.user("ann", allow("cloudformation:*"))
        looked = {"StackName": "s", "LogicalResourceId": "Q"}
        for key, expected in ((ann, "NOT_CHECKED"), (stage.root, "IN_SYNC")):
            answer = await stage.call(key, "cloudformation", "DetectStackResourceDrift", **looked)
            assert answer["StackResourceDrift"]["StackResourceDriftStatus"] == expected

    on_stage(play)


def test_a_refusal_names_who_was_refused() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("cloudformation:*"))
        role = await stage.role("worker", CLOUDFORMATION, allow("*"))
        create = {"StackName": "s", "TemplateBody": template(Q=QUEUE), "RoleARN": role}
        with pytest.raises(Refused, match="iam:PassRole on resource") as refused:
            await stage.call(ann, "cloudformation", "CreateStack", **create)
        assert "AccessDenied" in refused.value.code

    on_stage(play)


TAKEN: Final[dict[str, dict[str, Any]]] = {
    "AWS::Logs::LogGroup": {"LogGroupName": "theirs"},
    "AWS::SSM::Parameter": {"Name": "theirs", "Type": "String", "Value": "new"},
    "AWS::IAM::ManagedPolicy": {
        "ManagedPolicyName": "theirs",
        "PolicyDocument": json.loads(policy(allow("sqs:*"))),
    },
    "AWS::KMS::Alias": {"AliasName": "alias/theirs"},
}


@pytest.mark.parametrize("is_update", [False, True], ids=["creation", "replacement"])
@pytest.mark.parametrize("kind", TAKEN)
def test_a_rollback_leaves_what_the_stack_did_not_create(kind: str, *, is_update: bool) -> None:
    """A name that is taken fails the stack: what has it is somebody else's, with all that is in it."""

    async def play(stage: Stage) -> None:
        key = (await stage.call(stage.root, "kms", "CreateKey"))["KeyMetadata"]["KeyId"]
        theirs = {
            "logs": ("CreateLogGroup", {"logGroupName": "theirs"}),
            "ssm": ("PutParameter", {"Name": "theirs", "Type": "String", "Value": "old"}),
            "iam": ("CreatePolicy", {"PolicyName": "theirs", "PolicyDocument": policy(allow("sns:*"))}),
            "kms": ("CreateAlias", {"AliasName": "alias/theirs", "TargetKeyId": key}),
        }
        for service, (operation, params) in theirs.items():
            await stage.call(stage.root, service, operation, **params)
        properties = TAKEN[kind] | ({"TargetKeyId": key} if kind == "AWS::KMS::Alias" else {})
        name = next(iter(properties))
        own = {**properties, name: f"{properties[name]}-not"}
        for operation, first in (
            ("CreateStack", own if is_update else properties),
            ("UpdateStack", properties),
        ):
            body = template(X={"Type": kind, "Properties": first})
            stack = {"StackName": "s", "TemplateBody": body, "Capabilities": NAMED}
            await stage.call(stage.root, "cloudformation", operation, **stack)
            reached = await status(stage, stage.root)
            if not is_update:
                break
        assert reached == ("UPDATE_ROLLBACK_COMPLETE" if is_update else "ROLLBACK_COMPLETE")
        for service, operation, params in (
            (
                "logs",
                "ListTagsForResource",
                {"resourceArn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:theirs"},
            ),
            ("ssm", "GetParameter", {"Name": "theirs"}),
            ("iam", "GetPolicy", {"PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/theirs"}),
            ("kms", "DescribeKey", {"KeyId": "alias/theirs"}),
        ):
            await stage.call(stage.root, service, operation, **params)  # none of them is gone

    on_stage(play)


def test_events_and_drift_mask_parameters_with_no_echo() -> None:
    """AWS masks it "for any calls that describe the stack or stack events" (Parameters, user guide)."""

    async def play(stage: Stage) -> None:
        made = {"Name": "x", "Type": "String", "Value": {"Fn::Sub": "word=${Word}"}}
        document = {
            "Parameters": {"Word": {"Type": "String", "NoEcho": True}},
            "Resources": {"X": {"Type": "AWS::SSM::Parameter", "Properties": made}},
        }
        for operation, word in (("CreateStack", "sesame-1"), ("UpdateStack", "sesame-2")):
            parameters = [{"ParameterKey": "Word", "ParameterValue": word}]
            stack = {"StackName": "s", "TemplateBody": json.dumps(document), "Parameters": parameters}
            await stage.call(stage.root, "cloudformation", operation, **stack)
            assert (await status(stage, stage.root)).endswith("_COMPLETE")
        stored = await stage.call(stage.root, "ssm", "GetParameter", Name="x")
        assert stored["Parameter"]["Value"] == "word=sesame-2"
        changed = {"Name": "x", "Type": "String", "Value": "other", "Overwrite": True}
        await stage.call(stage.root, "ssm", "PutParameter", **changed)
        await stage.call(stage.root, "cloudformation", "DetectStackDrift", StackName="s")
        resource = {"StackName": "s", "LogicalResourceId": "X"}
        answers = [
            await stage.call(stage.root, "cloudformation", operation, **params)
            for operation, params in (
                ("DetectStackResourceDrift", resource),
                ("DescribeStackResourceDrifts", {"StackName": "s"}),
            )
        ]
        arn = answers[0]["StackResourceDrift"]["StackId"]
        assert "MODIFIED" in str(answers[1])
        await stage.call(stage.root, "cloudformation", "DeleteStack", StackName="s")
        await stage.advance(60)
        answers += [await stage.call(stage.root, "cloudformation", "DescribeStackEvents", StackName=arn)]
        assert "sesame" not in str(answers)
        properties = [each.get("ResourceProperties") for each in answers[2]["StackEvents"]]
        assert '{"Name":"x","Type":"String","Value":"****"}' in properties

    on_stage(play)

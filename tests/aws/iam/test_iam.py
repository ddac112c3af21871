"""IAM: what is made is shown as it was given, and what cannot be is refused in the words that were recorded."""

from typing import Any, Final
from urllib.parse import unquote

import orjson
import pytest

from redrive.access.identities import aws_managed
from redrive.access.policy_document import Form, parse_policy
from tests.aws.stage import ACCOUNT, OTHER, Stage, allow, on_stage, policy

AMAZON: Final = "arn:aws:iam::aws:policy"
TRUST: Final = policy(
    {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
)
READS: Final = policy(allow("sqs:ReceiveMessage"))


def arn(word: str, name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:{word}/{name}"


async def iam(stage: Stage, operation: str, /, **params: Any) -> dict[str, Any]:
    return await stage.call(stage.root, "iam", operation, **params)


async def made(stage: Stage) -> None:
    """A user, a group, a role, a policy and a profile, tied together."""
    await iam(stage, "CreateUser", UserName="ann", Path="/team/")
    await iam(stage, "CreateGroup", GroupName="readers")
    await iam(stage, "AddUserToGroup", GroupName="readers", UserName="ann")
    await iam(stage, "CreateRole", RoleName="worker", AssumeRolePolicyDocument=TRUST)
    await iam(stage, "CreatePolicy", PolicyName="reads", PolicyDocument=READS)
    await iam(stage, "CreateInstanceProfile", InstanceProfileName="machine")
    await iam(stage, "AddRoleToInstanceProfile", InstanceProfileName="machine", RoleName="worker")
    for word, name in (("User", "ann"), ("Group", "readers"), ("Role", "worker")):
        named = {f"{word}Name": name}
        await iam(stage, f"Put{word}Policy", **named, PolicyName="own", PolicyDocument=READS)
        await iam(stage, f"Attach{word}Policy", **named, PolicyArn=arn("policy", "reads"))


REFUSALS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "EntityAlreadyExists: User with name ANN already exists.": ("CreateUser", {"UserName": "ANN"}),
    "EntityAlreadyExists: Group with name readers already exists.": ("CreateGroup", {"GroupName": "readers"}),
    "EntityAlreadyExists: Role with name worker already exists.": (
        "CreateRole",
        {"RoleName": "worker", "AssumeRolePolicyDocument": TRUST},
    ),
    "EntityAlreadyExists: A policy called reads already exists. Duplicate names are not allowed.": (
        "CreatePolicy",
        {"PolicyName": "reads", "PolicyDocument": READS},
    ),
    "NoSuchEntity: The user with name bob cannot be found.": ("GetUser", {"UserName": "bob"}),
    "NoSuchEntity: The group with name x cannot be found.": ("GetGroup", {"GroupName": "x"}),
    "NoSuchEntity: The role with name x cannot be found.": ("GetRole", {"RoleName": "x"}),
    "NoSuchEntity: The role policy with name x cannot be found.": (
        "GetRolePolicy",
        {"RoleName": "worker", "PolicyName": "x"},
    ),
    "NoSuchEntity: The user policy with name x cannot be found.": (
        "DeleteUserPolicy",
        {"UserName": "ann", "PolicyName": "x"},
    ),
    f"NoSuchEntity: Policy {arn('policy', 'x')} was not found.": (
        "GetPolicy",
        {"PolicyArn": arn("policy", "x")},
    ),
    f"NoSuchEntity: Policy {AMAZON}/NoSuchPolicy does not exist or is not attachable.": (
        "AttachRolePolicy",
        {"RoleName": "worker", "PolicyArn": f"{AMAZON}/NoSuchPolicy"},
    ),
    f"NoSuchEntity: Policy {AMAZON}/AdministratorAccess was not found.": (
        "DetachRolePolicy",
        {"RoleName": "worker", "PolicyArn": f"{AMAZON}/AdministratorAccess"},
    ),
    "ValidationError: Invalid ARN:  Could not be parsed!": (
        "AttachUserPolicy",
        {"UserName": "ann", "PolicyArn": "this-is-no-arn-at-all"},
    ),
    "DeleteConflict: Cannot delete entity, must detach all policies first.": (
        "DeleteRole",
        {"RoleName": "worker"},
    ),
    "DeleteConflict: Cannot delete a policy attached to entities.": (
        "DeletePolicy",
        {"PolicyArn": arn("policy", "reads")},
    ),
    "DeleteConflict: Cannot delete entity, must remove roles from instance profile first.": (
        "DeleteInstanceProfile",
        {"InstanceProfileName": "machine"},
    ),
    "DeleteConflict: Cannot delete the default version of a policy.": (
        "DeletePolicyVersion",
        {"PolicyArn": arn("policy", "reads"), "VersionId": "v1"},
    ),
    "MalformedPolicyDocument: This policy contains invalid Json": (
        "UpdateAssumeRolePolicy",
        {"RoleName": "worker", "PolicyDocument": "{"},
    ),
    "MalformedPolicyDocument: Policy document must be version 2012-10-17 or greater.": (
        "CreatePolicy",
        {"PolicyName": "p", "PolicyDocument": policy(allow("*")).replace("2012", "2008")},
    ),
    "MalformedPolicyDocument: Syntax errors in policy.": (
        "CreatePolicy",
        {"PolicyName": "p", "PolicyDocument": policy({"Effect": "Perhaps"})},
    ),
    "MalformedPolicyDocument: Policy document should not specify a principal.": (
        "CreatePolicy",
        {"PolicyName": "p", "PolicyDocument": policy(allow("*", Principal="*"))},
    ),
    "MalformedPolicyDocument: Has prohibited field Resource": (
        "UpdateAssumeRolePolicy",
        {"RoleName": "worker", "PolicyDocument": policy(allow("sts:AssumeRole", Principal="*"))},
    ),
    "LimitExceeded: Cannot exceed quota for PolicySize: 6144": (
        "CreatePolicy",
        {"PolicyName": "p", "PolicyDocument": policy(allow(*(f"sqs:{n:0100}" for n in range(70))))},
    ),
    "LimitExceeded: Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1": (
        "AddRoleToInstanceProfile",
        {"RoleName": "worker", "InstanceProfileName": "machine"},
    ),
    "InvalidInput: Duplicate tag keys found. Please note that Tag keys are case insensitive.": (
        "TagRole",
        {"RoleName": "worker", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "A", "Value": "2"}]},
    ),
    "NoSuchEntity: Login Profile for User ann cannot be found.": ("GetLoginProfile", {"UserName": "ann"}),
    "ValidationError: Must specify userName when calling with non-User credentials": ("ListAccessKeys", {}),
    f"NoSuchEntity: Policy arn:aws:iam::{OTHER}:policy/theirs was not found.": (
        "GetPolicy",
        {"PolicyArn": f"arn:aws:iam::{OTHER}:policy/theirs"},
    ),
    f"NoSuchEntity: Policy arn:aws:iam::{OTHER}:policy/theirs does not exist or is not attachable.": (
        "AttachRolePolicy",
        {"RoleName": "worker", "PolicyArn": f"arn:aws:iam::{OTHER}:policy/theirs"},
    ),
}


def test_refusals_are_worded_as_recorded() -> None:
    async def play(stage: Stage) -> None:
        await made(stage)
        await stage.call(stage.stranger, "iam", "CreatePolicy", PolicyName="theirs", PolicyDocument=READS)
        for said, (operation, params) in REFUSALS.items():
            assert await stage.refusal(stage.root, "iam", operation, **params) == said, operation

    on_stage(play)


def test_entities_go_when_nothing_hangs_on_them() -> None:
    async def play(stage: Stage) -> None:
        await made(stage)
        key = (await iam(stage, "CreateAccessKey", UserName="ann"))["AccessKey"]["AccessKeyId"]
        steps: list[tuple[str, dict[str, Any], str]] = [
            ("DeleteUser", {"UserName": "ann"}, "must detach all policies"),
            ("DetachUserPolicy", {"UserName": "ann", "PolicyArn": arn("policy", "reads")}, ""),
            ("DeleteUser", {"UserName": "ann"}, "must delete policies"),
            ("DeleteUserPolicy", {"UserName": "ann", "PolicyName": "own"}, ""),
            ("DeleteUser", {"UserName": "ann"}, "must remove referenced objects"),
            ("RemoveUserFromGroup", {"UserName": "ann", "GroupName": "readers"}, ""),
            ("DeleteUser", {"UserName": "ann"}, "must delete access keys"),
            ("DeleteAccessKey", {"UserName": "ann", "AccessKeyId": key}, ""),
            ("DeleteUser", {"UserName": "ann"}, ""),
            ("DetachGroupPolicy", {"GroupName": "readers", "PolicyArn": arn("policy", "reads")}, ""),
            ("DeleteGroupPolicy", {"GroupName": "readers", "PolicyName": "own"}, ""),
            ("DeleteGroup", {"GroupName": "readers"}, ""),
            ("DetachRolePolicy", {"RoleName": "worker", "PolicyArn": arn("policy", "reads")}, ""),
            ("DeleteRole", {"RoleName": "worker"}, "must delete policies"),
            ("DeleteRolePolicy", {"RoleName": "worker", "PolicyName": "own"}, ""),
            ("DeleteRole", {"RoleName": "worker"}, "must remove roles from instance profile"),
            (
                "RemoveRoleFromInstanceProfile",
                {"InstanceProfileName": "machine", "RoleName": "worker"},
                "",
            ),
            ("DeleteRole", {"RoleName": "worker"}, ""),
            ("DeleteInstanceProfile", {"InstanceProfileName": "machine"}, ""),
            ("DeletePolicy", {"PolicyArn": arn("policy", "reads")}, ""),
        ]
        for operation, params, refused in steps:
            if refused:
                assert refused in await stage.refusal(stage.root, "iam", operation, **params)
            else:
                await iam(stage, operation, **params)
        summary = (await iam(stage, "GetAccountSummary"))["SummaryMap"]
        assert {summary[name] for name in ("Users", "Groups", "Roles", "Policies", "InstanceProfiles")} == {0}

    on_stage(play)


def test_roles_are_read_back_as_terraform_compares_them() -> None:
    async def play(stage: Stage) -> None:
        await iam(stage, "CreatePolicy", PolicyName="limits", Path="/own/", PolicyDocument=READS)
        boundary = arn("policy", "own/limits")
        tags = [{"Key": "team", "Value": "blue"}]
        given = {
            "RoleName": "worker",
            "Path": "/team/",
            "AssumeRolePolicyDocument": TRUST,
            "Description": "works",
            "MaxSessionDuration": 7200,
            "PermissionsBoundary": boundary,
            "Tags": tags,
        }
        created = (await iam(stage, "CreateRole", **given))["Role"]
        role = (await iam(stage, "GetRole", RoleName="worker"))["Role"]
        assert role.pop("RoleLastUsed") == {}
        assert role == {**created, "MaxSessionDuration": 7200}
        assert orjson.loads(unquote(role["AssumeRolePolicyDocument"])) == orjson.loads(TRUST)
        assert role["Arn"] == arn("role", "team/worker")
        assert (role["Description"], role["MaxSessionDuration"], role["Tags"]) == ("works", 7200, tags)
        assert role["PermissionsBoundary"] == {
            "PermissionsBoundaryType": "Policy",
            "PermissionsBoundaryArn": boundary,
        }
        assert role["RoleId"].startswith("AROA")
        await iam(stage, "UpdateRole", RoleName="worker", Description="rests")
        await iam(stage, "DeleteRolePermissionsBoundary", RoleName="worker")
        await iam(stage, "UntagRole", RoleName="worker", TagKeys=["TEAM"])
        role = (await iam(stage, "GetRole", RoleName="worker"))["Role"]
        assert (role["Description"], role["MaxSessionDuration"]) == ("rests", 7200)
        assert not {"Tags", "PermissionsBoundary"} & role.keys()
        for listing, member in (
            ("ListRolePolicies", "PolicyNames"),
            ("ListAttachedRolePolicies", "AttachedPolicies"),
            ("ListInstanceProfilesForRole", "InstanceProfiles"),
            ("ListRoleTags", "Tags"),
        ):
            assert (await iam(stage, listing, RoleName="worker"))[member] == []
        policy_ = (await iam(stage, "GetPolicy", PolicyArn=boundary))["Policy"]
        assert policy_["PermissionsBoundaryUsageCount"] == 0

    on_stage(play)


def test_lists_have_pages_and_paths() -> None:
    async def play(stage: Stage) -> None:
        for number in range(7):
            path = "/odd/" if number % 2 else "/even/"
            await iam(stage, "CreateUser", UserName=f"u{number}", Path=path)
        found, marker = [], {}
        while True:
            page = await iam(stage, "ListUsers", MaxItems=3, **marker)
            found += [user["UserName"] for user in page["Users"]]
            if not page["IsTruncated"]:
                break
            marker = {"Marker": page["Marker"]}
        assert found == [f"u{number}" for number in range(7)]
        odd = await iam(stage, "ListUsers", PathPrefix="/odd/")
        assert [user["UserName"] for user in odd["Users"]] == ["u1", "u3", "u5"]
        assert (await stage.call(stage.stranger, "iam", "ListUsers"))["Users"] == []
        refusal = await stage.refusal(stage.root, "iam", "ListUsers", Marker="~")
        assert refusal == "ValidationError: Invalid Marker: ~"

    on_stage(play)


def test_policies_have_five_versions_of_which_one_counts() -> None:
    async def play(stage: Stage) -> None:
        here = {"PolicyArn": arn("policy", "reads")}
        await iam(stage, "CreatePolicy", PolicyName="reads", PolicyDocument=READS)
        sends = policy(allow("sqs:SendMessage"))
        made_ = await iam(stage, "CreatePolicyVersion", **here, PolicyDocument=sends, SetAsDefault=True)
        assert (made_["PolicyVersion"]["VersionId"], made_["PolicyVersion"]["IsDefaultVersion"]) == (
            "v2",
            True,
        )
        for _ in range(3):
            await iam(stage, "CreatePolicyVersion", **here, PolicyDocument=READS)
        refusal = await stage.refusal(stage.root, "iam", "CreatePolicyVersion", **here, PolicyDocument=READS)
        assert refusal.startswith("LimitExceeded: A managed policy can have up to 5 versions.")
        await iam(stage, "DeletePolicyVersion", **here, VersionId="v1")
        made_ = await iam(stage, "CreatePolicyVersion", **here, PolicyDocument=READS)
        assert made_["PolicyVersion"]["VersionId"] == "v6"
        versions = (await iam(stage, "ListPolicyVersions", **here))["Versions"]
        assert [each["VersionId"] for each in versions] == ["v6", "v5", "v4", "v3", "v2"]
        shown = (await iam(stage, "GetPolicyVersion", **here, VersionId="v2"))["PolicyVersion"]
        assert orjson.loads(unquote(shown["Document"])) == orjson.loads(sends)
        assert "has more than one version" in await stage.refusal(stage.root, "iam", "DeletePolicy", **here)
        await iam(stage, "SetDefaultPolicyVersion", **here, VersionId="v6")
        assert (await iam(stage, "GetPolicy", **here))["Policy"]["DefaultVersionId"] == "v6"
        for version in ("v2", "v3", "v4", "v5"):
            await iam(stage, "DeletePolicyVersion", **here, VersionId=version)
        await iam(stage, "DeletePolicy", **here)

    on_stage(play)


def test_amazons_policies_are_attached_and_listed() -> None:
    async def play(stage: Stage) -> None:
        await iam(stage, "CreateRole", RoleName="worker", AssumeRolePolicyDocument=TRUST)
        basic = f"{AMAZON}/service-role/AWSLambdaBasicExecutionRole"
        for _ in range(2):  # again is no error
            await iam(stage, "AttachRolePolicy", RoleName="worker", PolicyArn=basic)
        attached = (await iam(stage, "ListAttachedRolePolicies", RoleName="worker"))["AttachedPolicies"]
        assert attached == [{"PolicyName": "AWSLambdaBasicExecutionRole", "PolicyArn": basic}]
        assert (await iam(stage, "GetPolicy", PolicyArn=basic))["Policy"]["AttachmentCount"] == 1
        everyones = (await iam(stage, "ListPolicies", Scope="AWS", MaxItems=1000))["Policies"]
        assert {"AdministratorAccess", "AmazonSQSFullAccess", "AmazonSNSFullAccess", "ReadOnlyAccess"} <= {
            each["PolicyName"] for each in everyones
        }
        assert (await iam(stage, "ListPolicies", Scope="Local"))["Policies"] == []
        used = (await iam(stage, "ListPolicies", OnlyAttached=True))["Policies"]
        assert [each["Arn"] for each in used] == [basic]
        entities = await iam(stage, "ListEntitiesForPolicy", PolicyArn=basic)
        assert [each["RoleName"] for each in entities["PolicyRoles"]] == ["worker"]
        refusal = await stage.refusal(
            stage.root, "iam", "CreatePolicyVersion", PolicyArn=basic, PolicyDocument=READS
        )
        assert refusal.startswith("AccessDenied")

    on_stage(play)


def test_amazons_policies_say_what_amazons_say() -> None:
    logs = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}
    expected = {
        "service-role/AWSLambdaBasicExecutionRole": ("v1", logs),
        "service-role/AWSLambdaSQSQueueExecutionRole": (
            "v1",
            {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", *logs},
        ),
        "service-role/AWSLambdaDynamoDBExecutionRole": (
            "v1",
            {
                *(
                    f"dynamodb:{name}"
                    for name in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
                ),
                *logs,
            },
        ),
        "AmazonAPIGatewayInvokeFullAccess": (
            "v2",
            {"execute-api:Invoke", "execute-api:ManageConnections"},
        ),
        "AmazonSQSReadOnlyAccess": (
            "v4",
            {
                *("sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListDeadLetterSourceQueues"),
                *("sqs:ListMessageMoveTasks", "sqs:ListQueues", "sqs:ListQueueTags"),
            },
        ),
    }

    async def play(stage: Stage) -> None:
        for name, (version, actions) in expected.items():
            arn = f"{AMAZON}/{name}"
            policy = (await iam(stage, "GetPolicy", PolicyArn=arn))["Policy"]
            assert policy["DefaultVersionId"] == version
            found = await iam(stage, "GetPolicyVersion", PolicyArn=arn, VersionId=version)
            (statement,) = orjson.loads(unquote(found["PolicyVersion"]["Document"]))["Statement"]
            assert (set(statement["Action"]), statement["Effect"]) == (actions, "Allow")

    on_stage(play)
    for each in aws_managed().values():  # and each can be asked
        assert parse_policy(each.text, Form.IDENTITY).statements


def test_an_accounts_root_is_as_old_as_the_store() -> None:
    async def play(stage: Stage) -> None:
        root = (await iam(stage, "GetUser"))["User"]
        assert root["Arn"] == f"arn:aws:iam::{ACCOUNT}:root"
        assert root["CreateDate"].timestamp() * 1000 == stage.server.core.pair.made_at

    on_stage(play)


def test_renamed_users_and_groups_keep_what_is_theirs() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("iam:GetUser", "iam:ListGroupsForUser"))
        await iam(stage, "CreateGroup", GroupName="readers")
        await iam(stage, "AddUserToGroup", GroupName="readers", UserName="ann")
        await iam(stage, "UpdateUser", UserName="ann", NewUserName="anna", NewPath="/team/")
        await iam(stage, "UpdateGroup", GroupName="readers", NewGroupName="writers")
        await stage.settle_keys()
        shown = (await stage.call(ann, "iam", "GetUser"))["User"]
        assert shown["Arn"] == arn("user", "team/anna")
        groups = (await iam(stage, "ListGroupsForUser", UserName="anna"))["Groups"]
        assert [group["GroupName"] for group in groups] == ["writers"]
        members = (await iam(stage, "GetGroup", GroupName="writers"))["Users"]
        assert [user["UserName"] for user in members] == ["anna"]
        assert "ann cannot be found" in await stage.refusal(stage.root, "iam", "GetUser", UserName="ann")

    on_stage(play)


def test_two_keys_of_a_user_count_until_they_do_not() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("iam:*"))
        second = (await stage.call(ann, "iam", "CreateAccessKey"))["AccessKey"]
        assert "AccessKeysPerUser: 2" in await stage.refusal(ann, "iam", "CreateAccessKey")
        listed = (await stage.call(ann, "iam", "ListAccessKeys"))["AccessKeyMetadata"]
        assert {each["AccessKeyId"] for each in listed} == {ann.id, second["AccessKeyId"]}
        assert not any("SecretAccessKey" in each for each in listed)
        await iam(stage, "UpdateAccessKey", UserName="ann", AccessKeyId=ann.id, Status="Inactive")
        refusal = await stage.refusal(ann, "sts", "GetCallerIdentity")
        assert refusal.startswith("InvalidClientTokenId")
        await iam(stage, "UpdateAccessKey", UserName="ann", AccessKeyId=ann.id, Status="Active")
        await stage.call(ann, "sts", "GetCallerIdentity")
        await iam(stage, "DeleteAccessKey", UserName="ann", AccessKeyId=ann.id)
        assert (await stage.refusal(ann, "sts", "GetCallerIdentity")).startswith("InvalidClientTokenId")
        refusal = await stage.refusal(
            stage.root, "iam", "DeleteAccessKey", UserName="ann", AccessKeyId=ann.id
        )
        assert refusal == f"NoSuchEntity: The Access Key with id {ann.id} cannot be found."

    on_stage(play)


@pytest.mark.parametrize("wanted", ["", "User", "Role", "Group", "LocalManagedPolicy", "AWSManagedPolicy"])
def test_authorization_details_show_all_that_there_is(wanted: str) -> None:
    members = {
        "User": "UserDetailList",
        "Role": "RoleDetailList",
        "Group": "GroupDetailList",
        "LocalManagedPolicy": "Policies",
    }

    async def play(stage: Stage) -> None:
        await made(stage)
        details = await iam(
            stage, "GetAccountAuthorizationDetails", **({"Filter": [wanted]} if wanted else {})
        )
        found = {member for member in set(members.values()) if details[member]}
        assert found == (
            {members[wanted]} if wanted in members else set(members.values()) if not wanted else set()
        )
        for user in details["UserDetailList"]:
            assert user["GroupList"] == ["readers"]
            assert user["UserPolicyList"][0]["PolicyName"] == "own"

    on_stage(play)

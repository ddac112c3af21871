"""IAM's recorded answers."""

import re
from typing import Any, Final
from urllib.parse import unquote

import orjson
import pytest

from redrive.aws.iam.simulating import statement_places
from tests.aws.stage import ACCOUNT, Stage, allow, on_stage, policy

_TRUST: Final = policy({"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"})
_SYNTAX: Final = "Syntax errors in policy."
_VERSION: Final = "Policy document must be version 2012-10-17 or greater."
_LEGACY: Final = "The policy failed legacy parsing"
_PATHS: Final = (
    "user/, federated-user/, role/, group/, instance-profile/, mfa/, server-certificate/, policy/, sms-mfa/,"
    " saml-provider/, oidc-provider/, report/, access-report/"
)


def of_statement(**changes: Any) -> str:
    """A policy of one statement with changes; None takes an element out."""
    statement = {**allow("s3:ListBucket", on="arn:aws:s3:::cars"), **changes}
    return policy({name: value for name, value in statement.items() if value is not None})


def of_document(**changes: Any) -> str:
    """A policy with changes of the document."""
    return orjson.dumps({**orjson.loads(of_statement()), **changes}).decode()


def on_resource(resource: str) -> str:
    """A policy about a resource."""
    return of_statement(Resource=resource)


def with_condition(operator: str, value: Any) -> str:
    """A policy with a condition."""
    return of_statement(Condition={operator: {"aws:CurrentTime": value}})


# In the order in which they are looked for.
_FAULTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        _SYNTAX,
        (
            *("no JSON", "[]", of_document(Extra=1), of_document(Id=1), of_document(Version="2013-10-17")),
            *(of_document(Statement=[]), of_document(Statement=["allow"]), of_document(Statement=None)),
            *(of_statement(Extra=1), of_statement(Sid=1), of_statement(Effect=None)),
            *(of_statement(Effect="perhaps"), of_statement(NotAction=[]), of_statement(NotResource=[])),
            *(of_statement(Action=1), of_statement(Action=[1]), of_statement(Resource={})),
            *(of_statement(Condition="none"), of_statement(Condition={"StringEquals": "cars"})),
            *(with_condition("Equals", "x"), with_condition("ForAnyValue::StringEquals", "x")),
            with_condition("StringEquals", {"x": "y"}),
        ),
    ),
    (
        _VERSION,
        (of_document(Version="2008-10-17"), orjson.dumps({"Statement": allow("*")}).decode()),
    ),
    (
        _LEGACY,
        (
            *(of_statement(Effect="allow"), of_statement(Effect="denY")),
            *map(on_resource, ("arn:aws:s3::cars", "arn:aws::cars", "arn:aws::::cars")),
            of_statement(Resource=None, NotResource="arn:aws:s3::cars"),
            *(with_condition("DateLessThan", "soon"), with_condition("DateEquals", str(2**63))),
        ),
    ),
    (
        "Statement IDs (SID) in a single policy must be unique.",
        (policy(allow("*", Sid="a"), allow("*", Sid="a")),),
    ),
    (
        "Policy statement must contain actions.",
        (of_statement(Action=None), policy(allow("*"), {**allow(), "Resource": "*"})),
    ),
    ('Resource cars must be in ARN format or "*".', (on_resource("cars"),)),
    ('Resource  must be in ARN format or "*".', (on_resource(""),)),
    ('Partition "b" is not valid for resource "arn:b:c:d:e:f:g:h".', (on_resource("a:b:c:d:e:f:g:h"),)),
    ('Partition "s3" is not valid for resource "arn:s3:::x:*".', (on_resource("aws:s3:::x"),)),
    (
        "Resource vendor must be fully qualified and cannot contain regexes.",
        (on_resource("arn:aws"),),
    ),
    (
        f'IAM resource path must either be "*" or start with {_PATHS}.',
        (on_resource(f"arn:aws:iam::{ACCOUNT}:cars"),),
    ),
    (
        "IAM resource arn:aws:iam:us-east-1::user/ann cannot contain region information.",
        (on_resource("arn:aws:iam:us-east-1::user/ann"),),
    ),
    (
        "Resource arn:aws:s3:us-east-1::cars can not contain region information.",
        (on_resource("arn:aws:s3:us-east-1::cars"),),
    ),
    (
        "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.",
        (of_statement(Action="ListBucket"), of_statement(Action="")),
    ),
    ("Actions/Condition can contain only one colon.", (of_statement(Action="s3:List:Bucket"),)),
    ("Vendor a a is not valid", (of_statement(Action="a a:List"),)),
    ("Policy statement must contain resources.", (of_statement(Resource=None), of_statement(Resource=[]))),
)


def test_each_fault_of_a_policy_has_its_sentence() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "iam", "CreateUser", UserName="ann")
        for text, documents in _FAULTS:
            for document in documents:
                params = {"PolicyName": "p", "PolicyDocument": document}
                refusal = await stage.refusal(stage.root, "iam", "CreatePolicy", **params)
                assert refusal == f"MalformedPolicyDocument: {text}", document
                if text != _VERSION:  # which an inline policy need not name
                    again = await stage.refusal(stage.root, "iam", "PutUserPolicy", UserName="ann", **params)
                    assert again == refusal

    on_stage(play)


@pytest.mark.parametrize("effect", ["ALLOW", "allow"])
def test_a_trust_policy_has_its_effect_in_any_case(effect: str) -> None:
    async def play(stage: Stage) -> None:
        trust = _TRUST.replace("Allow", effect)
        params = {"RoleName": "driver", "AssumeRolePolicyDocument": trust}
        made = (await stage.call(stage.root, "iam", "CreateRole", **params))["Role"]
        assert not {"MaxSessionDuration", "RoleLastUsed"} & made.keys()
        shown = (await stage.call(stage.root, "iam", "GetRole", RoleName="driver"))["Role"]
        assert (shown["MaxSessionDuration"], shown["RoleLastUsed"]) == (3600, {})
        assert await stage.assume(stage.root, made["Arn"])

    on_stage(play)


def test_each_answer_about_a_managed_policy_has_its_members() -> None:
    async def play(stage: Stage) -> None:
        named = {"PolicyName": "p", "PolicyDocument": of_statement(), "Description": "cars"}
        made = (await stage.call(stage.root, "iam", "CreatePolicy", **named))["Policy"]
        assert not {"Description", "Tags"} & made.keys()
        shown = (await stage.call(stage.root, "iam", "GetPolicy", PolicyArn=made["Arn"]))["Policy"]
        assert (shown["Description"], shown["Tags"]) == ("cars", [])
        (listed,) = (await stage.call(stage.root, "iam", "ListPolicies", Scope="Local"))["Policies"]
        assert not {"Description", "Tags"} & listed.keys()

    on_stage(play)


def test_a_tag_has_letters_digits_blanks_and_eight_signs() -> None:
    async def play(stage: Stage) -> None:
        params = {"PolicyName": "p", "PolicyDocument": of_statement()}
        tags = [{"Key": "größe", "Value": "a b"}, {"Key": "a", "Value": "no!"}]
        refusal = await stage.refusal(stage.root, "iam", "CreatePolicy", **params, Tags=tags)
        assert refusal == (
            "ValidationError: 1 validation error detected: Value 'no!' at 'tags.2.member.value' failed to satisfy"
            r" constraint: Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]*"
        )
        await stage.call(stage.root, "iam", "CreatePolicy", **params, Tags=tags[:1])

    on_stage(play)


def test_the_groups_of_a_user_are_in_the_order_in_which_it_joined_them() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "iam", "CreateUser", UserName="ann")
        for name in ("readers", "drivers"):
            await stage.call(stage.root, "iam", "CreateGroup", GroupName=name)
            await stage.call(stage.root, "iam", "AddUserToGroup", GroupName=name, UserName="ann")
        pages: list[str] = []
        marker: dict[str, str] = {}
        for _ in range(2):
            page = await stage.call(
                *(stage.root, "iam", "ListGroupsForUser"), UserName="ann", MaxItems=1, **marker
            )
            pages += [group["GroupName"] for group in page["Groups"]]
            marker = {"Marker": page.get("Marker", "")}
        assert pages == ["readers", "drivers"]

    on_stage(play)


def test_a_simulation_answers_each_resource_once_more() -> None:
    async def play(stage: Stage) -> None:
        await stage.user("ann", allow("s3:GetObject"))
        arn = f"arn:aws:iam::{ACCOUNT}:user/ann"
        params = {"PolicySourceArn": arn, "ActionNames": ["s3:GetObject"]}
        answer = await stage.call(stage.root, "iam", "SimulatePrincipalPolicy", **params)
        (result,) = answer["EvaluationResults"]
        assert result["EvalDecisionDetails"] == {}
        assert result["OrganizationsDecisionDetail"] == {"AllowedByOrganizations": True}
        (of_resource,) = result["ResourceSpecificResults"]
        assert (of_resource["EvalResourceName"], of_resource["EvalResourceDecision"]) == ("*", "allowed")
        assert of_resource["MatchedStatements"] == result["MatchedStatements"]
        (matched,) = result["MatchedStatements"]
        assert matched["StartPosition"] == {"Line": 1, "Column": 39}
        assert matched["EndPosition"]["Column"] == len(policy(allow("s3:GetObject"))) - 1

    on_stage(play)


def test_a_statement_stands_between_its_braces() -> None:
    # AWS's own example, of a policy with 167 characters
    condition = '{"DateGreaterThan":{"aws:CurrentTime":"2018-08-16T12:00:00Z"}}'
    single = f'{{"Effect":"Allow","Action":"dynamodb:*","Resource":"*","Condition":{condition}}}'
    assert statement_places(f'{{"Version":"2012-10-17","Statement":{single}}}') == [
        {"StartPosition": {"Line": 1, "Column": 38}, "EndPosition": {"Line": 1, "Column": 167}}
    ]
    several = '{"Id":"{\\"[",\n"Statement": [{"Effect":"allow"},\n {"Effect":"Deny","Resource":["a{"]}]\n}'
    assert statement_places(several) == [  # what denies is first, as it is looked at
        {"StartPosition": {"Line": 3, "Column": 3}, "EndPosition": {"Line": 3, "Column": 37}},
        {"StartPosition": {"Line": 2, "Column": 16}, "EndPosition": {"Line": 2, "Column": 33}},
    ]


def test_a_session_of_a_role_has_no_user_of_its_own() -> None:
    async def play(stage: Stage) -> None:
        session = await stage.assume(
            stage.root, await stage.role("driver", {"AWS": ACCOUNT}, allow("iam:GetUser"))
        )
        refusal = await stage.refusal(session, "iam", "GetUser")
        assert refusal == "ValidationError: Must specify userName when calling with non-User credentials"

    on_stage(play)


@pytest.mark.parametrize(
    ("service", "suffix", "name", "attached"),
    [
        ("batch", "", "AWSServiceRoleForBatch", "BatchServiceRolePolicy"),
        (
            "ec2.application-autoscaling",
            "",
            "AWSServiceRoleForApplicationAutoScaling_EC2SpotFleetRequest",
            "AWSApplicationAutoscalingEC2SpotFleetRequestPolicy",
        ),
        ("lexv2", "cars", "AWSServiceRoleForLexV2Bots_cars", "AmazonLexV2BotPolicy"),
        ("wafv2", "", "AWSServiceRoleForWAFV2Logging", "WAFV2LoggingServiceRolePolicy"),
    ],
)
def test_a_service_has_a_role_that_it_alone_changes(
    service: str, suffix: str, name: str, attached: str
) -> None:
    async def play(stage: Stage) -> None:
        host = f"{service}.amazonaws.com"
        asked = {"AWSServiceName": host, **({"CustomSuffix": suffix} if suffix else {})}
        made = (await stage.call(stage.root, "iam", "CreateServiceLinkedRole", **asked))["Role"]
        assert made["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{host}/{name}"
        shown = (await stage.call(stage.root, "iam", "GetRole", RoleName=name))["Role"]
        assert (shown["Path"], shown["MaxSessionDuration"]) == (f"/aws-service-role/{host}/", 3600)
        assert shown["RoleLastUsed"] == {}
        trust = orjson.loads(unquote(shown["AssumeRolePolicyDocument"]))
        assert trust == orjson.loads(
            policy({"Effect": "Allow", "Principal": {"Service": host}, "Action": "sts:AssumeRole"})
        )
        inline = await stage.call(stage.root, "iam", "ListRolePolicies", RoleName=name)
        assert inline["PolicyNames"] == []
        listed = await stage.call(stage.root, "iam", "ListAttachedRolePolicies", RoleName=name)
        arn = f"arn:aws:iam::aws:policy/aws-service-role/{attached}"
        assert listed["AttachedPolicies"] == [{"PolicyName": attached, "PolicyArn": arn}]
        again = await stage.refusal(stage.root, "iam", "CreateServiceLinkedRole", **asked)
        taken = f"Service role name {name} has been taken in this account, please try a different suffix."
        assert again == f"InvalidInput: {taken}"
        for operation, more in (("DeleteRole", {}), ("DetachRolePolicy", {"PolicyArn": arn})):
            refusal = await stage.refusal(stage.root, "iam", operation, RoleName=name, **more)
            assert refusal == (
                f"UnmodifiableEntity: Cannot perform the operation on the protected role '{name}' - this role is only"
                " modifiable by AWS"
            )
        deletion = await stage.call(stage.root, "iam", "DeleteServiceLinkedRole", RoleName=name)
        task = deletion["DeletionTaskId"]
        assert re.fullmatch(f"task/aws-service-role/{host}/{name}/[0-9a-f-]{{36}}", task)
        status = await stage.call(
            stage.root, "iam", "GetServiceLinkedRoleDeletionStatus", DeletionTaskId=task
        )
        assert status["Status"] == "SUCCEEDED"
        assert (await stage.refusal(stage.root, "iam", "GetRole", RoleName=name)).startswith("NoSuchEntity")

    on_stage(play)


def test_a_role_that_is_no_services_is_refused_by_name_and_suffix() -> None:
    async def play(stage: Stage) -> None:
        await stage.role("driver", {"AWS": ACCOUNT})
        batch = {"AWSServiceName": "batch.amazonaws.com"}
        for operation, params, text in (
            (
                "CreateServiceLinkedRole",
                {**batch, "CustomSuffix": "x"},
                "InvalidInput: Custom suffix is not allowed for batch.amazonaws.com",
            ),
            (
                "CreateServiceLinkedRole",
                {"AWSServiceName": "cars.amazonaws.com"},
                "InvalidInput: Service-linked roles of cars.amazonaws.com are not offered.",
            ),
            (
                "DeleteServiceLinkedRole",
                {"RoleName": "driver"},
                "InvalidInput: driver is not a service-linked role.",
            ),
            (
                "GetServiceLinkedRoleDeletionStatus",
                {"DeletionTaskId": "task/aws-service-role/batch.amazonaws.com/x/1"},
                "NoSuchEntity: Deletion task task/aws-service-role/batch.amazonaws.com/x/1 cannot be found.",
            ),
        ):
            assert await stage.refusal(stage.root, "iam", operation, **params) == text
        roles = (await stage.call(stage.root, "iam", "ListRoles"))["Roles"]
        assert [role["RoleName"] for role in roles] == ["driver"]

    on_stage(play)


def test_policies_say_which_services_roles_a_caller_may_make() -> None:
    async def play(stage: Stage) -> None:
        own = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role"
        of_batch = {"StringEquals": {"iam:AWSServiceName": "batch.amazonaws.com"}}
        ann = await stage.user(
            "ann",
            allow("iam:CreateServiceLinkedRole", on=f"{own}/batch.amazonaws.com/*", Condition=of_batch),
            allow("iam:GetServiceLinkedRoleDeletionStatus", on=f"{own}/batch.amazonaws.com/*"),
        )
        named = {"RoleName": "AWSServiceRoleForBatch"}
        assert await stage.may(ann, "iam", "CreateServiceLinkedRole", AWSServiceName="batch.amazonaws.com")
        assert not await stage.may(ann, "iam", "CreateServiceLinkedRole", AWSServiceName="ecs.amazonaws.com")
        assert not await stage.may(ann, "iam", "DeleteServiceLinkedRole", **named)
        task = (await stage.call(stage.root, "iam", "DeleteServiceLinkedRole", **named))["DeletionTaskId"]
        assert await stage.may(ann, "iam", "GetServiceLinkedRoleDeletionStatus", DeletionTaskId=task)

    on_stage(play)

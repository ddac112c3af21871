"""Policies of users and roles at work: over the whole server, with refusals in each service's own words."""

from typing import Any, Final

import pytest

from tests.aws.iam.test_closed_by_default import archive
from tests.aws.stage import ACCOUNT, HOST, OTHER, REGION, Stage, allow, deny, on_stage, policy

QUEUE: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
TOPIC: Final = f"arn:aws:sns:{REGION}:{ACCOUNT}:rentals"
ANN: Final = f"arn:aws:iam::{ACCOUNT}:user/ann"
URL: Final = f"http://{HOST}/{ACCOUNT}/orders"
ROOT: Final = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
SEND: Final[dict[str, Any]] = {"QueueUrl": URL, "MessageBody": "m"}
LAMBDA: Final = {"Service": "lambda.amazonaws.com"}
TRUST: Final = policy({"Effect": "Allow", "Principal": ROOT, "Action": "sts:AssumeRole"})


async def queue_and_topic(stage: Stage, **attributes: str) -> None:
    await stage.call(stage.root, "sqs", "CreateQueue", QueueName="orders", Attributes=attributes)
    await stage.call(stage.root, "sns", "CreateTopic", Name="rentals")


def test_an_action_is_refused_in_the_words_of_its_service() -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName="g")
        ann = await stage.user("ann")
        by = f"User: {ANN} is not authorized to perform:"
        no = "because no identity-based policy allows the"
        for service, operation, params, said in (
            ("sqs", "SendMessage", SEND, f"sqs:sendmessage on resource: {QUEUE} {no} sqs:sendmessage action"),
            (
                "sns",
                "Publish",
                {"TopicArn": TOPIC, "Message": "m"},
                f"SNS:Publish on resource: {TOPIC} {no} SNS:Publish action",
            ),
            ("iam", "ListUsers", {}, f"iam:ListUsers on resource: * {no} iam:ListUsers action"),
            (
                "iam",
                "DeleteUser",
                {"UserName": "ann"},
                f"iam:DeleteUser on resource: {ANN} {no} iam:DeleteUser action",
            ),
            (
                "sqs",
                "CreateQueue",
                {"QueueName": "q"},
                f"sqs:CreateQueue on resource: {QUEUE[:-6]}q {no} sqs:CreateQueue action",
            ),
            (
                "cloudwatch",
                "ListMetrics",
                {},
                f"cloudwatch:ListMetrics on resource: * {no} cloudwatch:ListMetrics action",
            ),
        ):
            refusal = await stage.refusal(ann, service, operation, **params)
            code, _, text = refusal.partition(": ")
            assert text == f"{by} {said}"
            assert code == ("AuthorizationError" if service == "sns" else "AccessDenied")

    on_stage(play)


def test_an_explicit_denial_says_where_it_stands() -> None:
    async def play(stage: Stage) -> None:
        shut = deny("sqs:PurgeQueue", on=QUEUE, Principal="*")
        await queue_and_topic(stage, Policy=policy(shut))
        ann = await stage.user("ann", allow("*"), deny("sqs:SendMessage"))
        refusal = await stage.refusal(ann, "sqs", "SendMessage", **SEND)
        assert refusal.endswith("with an explicit deny in an identity-based policy")
        refusal = await stage.refusal(ann, "sqs", "PurgeQueue", QueueUrl=URL)
        assert refusal.endswith("with an explicit deny in a resource-based policy")
        role = await stage.role("worker", ROOT, allow("*"))
        bounded = await stage.assume(stage.root, role, Policy=policy(allow("*"), deny("sqs:*")))
        refusal = await stage.refusal(bounded, "sqs", "SendMessage", **SEND)
        assert refusal.endswith("with an explicit deny in a session policy")
        narrow = await stage.assume(stage.root, role, Policy=policy(allow("sns:*")))
        refusal = await stage.refusal(narrow, "sqs", "SendMessage", **SEND)
        assert refusal.endswith("because no session policy allows the sqs:sendmessage action")

    on_stage(play)


def test_policies_come_from_groups_attachments_and_versions_and_count_at_once() -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        root = stage.root
        ann = await stage.user("ann")

        async def may() -> bool:
            return await stage.may(ann, "sqs", "SendMessage", **SEND)

        assert not await may()
        await stage.call(root, "iam", "CreateGroup", GroupName="senders")
        await stage.own_policy("Group", "senders", allow("sqs:SendMessage", on=QUEUE))
        assert not await may()
        await stage.call(root, "iam", "AddUserToGroup", GroupName="senders", UserName="ann")
        assert await may()
        await stage.call(root, "iam", "DeleteGroupPolicy", GroupName="senders", PolicyName="own")
        assert not await may()
        full = "arn:aws:iam::aws:policy/AmazonSQSFullAccess"
        await stage.call(root, "iam", "AttachGroupPolicy", GroupName="senders", PolicyArn=full)
        assert await may()
        limits = f"arn:aws:iam::{ACCOUNT}:policy/limits"
        await stage.call(
            root, "iam", "CreatePolicy", PolicyName="limits", PolicyDocument=policy(allow("sqs:Get*"))
        )
        await stage.call(
            root, "iam", "PutUserPermissionsBoundary", UserName="ann", PermissionsBoundary=limits
        )
        refusal = await stage.refusal(ann, "sqs", "SendMessage", **SEND)
        assert refusal.endswith("because no permissions boundary allows the sqs:sendmessage action")
        await stage.call(
            root,
            "iam",
            "CreatePolicyVersion",
            PolicyArn=limits,
            PolicyDocument=policy(allow("sqs:*")),
            SetAsDefault=True,
        )
        assert await may()
        await stage.call(root, "iam", "SetDefaultPolicyVersion", PolicyArn=limits, VersionId="v1")
        assert not await may()

    on_stage(play)


def test_a_queues_policy_lets_in_whom_it_names() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann")
        bob = await stage.user("bob")
        worker = await stage.assume(stage.root, await stage.role("worker", ROOT))
        named = [ANN, f"arn:aws:iam::{ACCOUNT}:role/worker"]
        await queue_and_topic(
            stage, Policy=policy(allow("sqs:SendMessage", on=QUEUE, Principal={"AWS": named}))
        )
        assert await stage.may(ann, "sqs", "SendMessage", **SEND)
        assert await stage.may(worker, "sqs", "SendMessage", **SEND)
        assert not await stage.may(bob, "sqs", "SendMessage", **SEND)
        assert not await stage.may(ann, "sqs", "ReceiveMessage", QueueUrl=URL)

    on_stage(play)


def test_another_accounts_role_needs_both_sides() -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        trusting = {"AWS": f"arn:aws:iam::{OTHER}:root"}
        ours, stage.root = stage.root, stage.stranger
        theirs = await stage.role("worker", trusting, allow("sqs:SendMessage"))
        silent = await stage.role("silent", trusting)
        stage.root = ours
        keys = [await stage.assume(stage.stranger, role) for role in (theirs, silent)]
        assert [await stage.may(key, "sqs", "SendMessage", **SEND) for key in keys] == [False, False]
        opened = {"Policy": policy(allow("sqs:*", on=QUEUE, Principal=trusting))}
        await stage.call(ours, "sqs", "SetQueueAttributes", QueueUrl=URL, Attributes=opened)
        assert [await stage.may(key, "sqs", "SendMessage", **SEND) for key in keys] == [True, False]

    on_stage(play)


def test_a_role_is_passed_to_lambda_by_who_may_and_if_it_trusts_lambda() -> None:
    async def play(stage: Stage) -> None:
        worker = await stage.role("worker", LAMBDA)
        mistrusting = await stage.role("mistrusting", ROOT)
        absent = f"arn:aws:iam::{ACCOUNT}:role/absent"
        code = {"Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f"}
        only_lambda = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
        ann = await stage.user("ann", allow("lambda:*"))
        bob = await stage.user(
            "bob", allow("lambda:*"), allow("iam:PassRole", on=worker, Condition=only_lambda)
        )
        refusal = await stage.refusal(ann, "lambda", "CreateFunction", FunctionName="f", Role=worker, **code)
        assert refusal == (
            f"AccessDeniedException: User: {ANN} is not authorized to perform: iam:PassRole on resource: {worker}"
            " because no identity-based policy allows the iam:PassRole action"
        )
        await stage.call(bob, "lambda", "CreateFunction", FunctionName="f", Role=worker, **code)
        for key, role in ((stage.root, mistrusting), (stage.root, absent)):
            refusal = await stage.refusal(
                key, "lambda", "CreateFunction", FunctionName="g", Role=role, **code
            )
            assert refusal == (
                "InvalidParameterValueException: The role defined for the function cannot be assumed by Lambda."
            )
        change = {"FunctionName": "f", "Role": mistrusting}
        assert not await stage.may(bob, "lambda", "UpdateFunctionConfiguration", **change)

    on_stage(play, functions="on")


def test_without_users_and_roles_a_function_may_have_any_role() -> None:
    async def play(stage: Stage) -> None:
        role = f"arn:aws:iam::{ACCOUNT}:role/made-up"
        code = {"Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f"}
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", Role=role, **code)

    on_stage(play, functions="on")


def test_rights_to_iam_are_bounded_by_paths_and_boundaries() -> None:
    """The delegation that the user guide shows: whoever makes users must give them a boundary."""

    async def play(stage: Stage) -> None:
        limits = f"arn:aws:iam::{ACCOUNT}:policy/limits"
        await stage.call(
            stage.root, "iam", "CreatePolicy", PolicyName="limits", PolicyDocument=policy(allow("sqs:*"))
        )
        bounded = {"StringEquals": {"iam:PermissionsBoundary": limits}}
        lead = await stage.user(
            "lead",
            allow("iam:CreateUser", on=f"arn:aws:iam::{ACCOUNT}:user/team/*", Condition=bounded),
            allow(
                "iam:AttachUserPolicy",
                Condition={"ArnLike": {"iam:PolicyARN": "arn:aws:iam::aws:policy/AmazonSQS*"}},
            ),
        )
        for params, may in (
            ({"Path": "/team/", "PermissionsBoundary": limits}, True),
            ({"Path": "/team/"}, False),
            ({"PermissionsBoundary": limits}, False),
        ):
            assert await stage.may(lead, "iam", "CreateUser", UserName="new", **params) is may
        for name, may in (("AmazonSQSFullAccess", True), ("AdministratorAccess", False)):
            attached = {"UserName": "new", "PolicyArn": f"arn:aws:iam::aws:policy/{name}"}
            assert await stage.may(lead, "iam", "AttachUserPolicy", **attached) is may

    on_stage(play)


@pytest.mark.parametrize(
    ("word", "params"),
    [
        ("User", {"UserName": "new"}),
        ("Role", {"RoleName": "new", "AssumeRolePolicyDocument": TRUST}),
        ("Policy", {"PolicyName": "new", "PolicyDocument": policy(allow("*"))}),
        ("InstanceProfile", {"InstanceProfileName": "new"}),
    ],
)
def test_a_creation_with_tags_needs_the_right_to_tag(word: str, params: dict[str, str]) -> None:
    """A user with a key has its tags in `aws:PrincipalTag`, by which policies may tell teams apart."""

    async def play(stage: Stage) -> None:
        tags = [{"Key": "team", "Value": "red"}]
        ann = await stage.user("ann", allow("*"), deny(f"iam:Tag{word}"))
        assert not await stage.may(ann, "iam", f"Create{word}", **params, Tags=tags)
        assert await stage.may(ann, "iam", f"Create{word}", **params)
        bob = await stage.user("bob", allow("*"))
        name = next(iter(params))
        assert await stage.may(bob, "iam", f"Create{word}", **{**params, name: "other"}, Tags=tags)

    on_stage(play)


def test_an_object_with_tags_needs_the_right_to_tag() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "s3", "CreateBucket", Bucket="files")
        ann = await stage.user("ann", allow("s3:*"), deny("s3:PutObjectTagging"))
        content = {"Bucket": "files", "Key": "k", "Body": b"x"}
        refused = await stage.refusal(ann, "s3", "PutObject", **content, Tagging="team=red")
        assert refused == "AccessDenied: Access Denied"
        await stage.call(ann, "s3", "PutObject", **content)

    on_stage(play)


@pytest.mark.parametrize("word", ["User", "Group"])
def test_a_move_to_another_path_needs_the_right_there(word: str) -> None:
    """A path is what `aws:PrincipalArn` and delegations tell teams apart by."""

    async def play(stage: Stage) -> None:
        beginning = f"arn:aws:iam::{ACCOUNT}:{word.lower()}"
        lead = await stage.user("lead", allow("iam:*", on=f"{beginning}/dev/*"))
        named = {f"{word}Name": "new"}
        await stage.call(stage.root, "iam", f"Create{word}", **named, Path="/dev/")
        assert not await stage.may(lead, "iam", f"Update{word}", **named, NewPath="/admin/")
        assert await stage.may(lead, "iam", f"Update{word}", **named, NewPath="/dev/more/")
        assert await stage.may(lead, "iam", f"Update{word}", **named, **{f"New{word}Name": "newer"})

    on_stage(play)


@pytest.mark.parametrize("auth", ["required", "off"])
def test_a_subscription_shows_the_user_who_made_it(auth: str) -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        ann = await stage.user("ann", allow("sns:*"))
        made = await stage.call(ann, "sns", "Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=QUEUE)
        shown = await stage.call(
            stage.root, "sns", "GetSubscriptionAttributes", SubscriptionArn=made["SubscriptionArn"]
        )
        assert shown["Attributes"]["SubscriptionPrincipal"] == ANN

    on_stage(play, auth=auth)


@pytest.mark.parametrize(
    ("against", "may_list", "may_list_others"),
    [
        (deny("sqs:*", on=QUEUE), False, True),
        (deny("*", on=QUEUE), False, True),
        (deny("*", on="arn:aws:s3:::secret/*"), True, True),
        (deny("sqs:DeleteQueue", on=QUEUE), True, True),
        (deny("sqs:*", on=f"arn:aws:sqs:{REGION}:{ACCOUNT}:other-*"), False, False),
        (deny("sqs:*", on=QUEUE, Condition={"Bool": {"aws:SecureTransport": "true"}}), True, True),
        ({"Effect": "Deny", "Action": "sqs:*", "NotResource": "*"}, True, True),
        (
            {"Effect": "Deny", "Action": "sqs:*", "NotResource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:other*"},
            False,
            True,
        ),
    ],
)
def test_a_list_is_refused_by_a_deny_of_any_of_it_and_by_no_other(
    against: dict[str, Any], may_list: bool, may_list_others: bool
) -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        ann = await stage.user("ann", allow("*"), against)
        asked = {"PolicySourceArn": ANN, "ActionNames": ["sqs:ListQueues"], "ResourceArns": ["*"]}
        answer = await stage.call(stage.root, "iam", "SimulatePrincipalPolicy", **asked)
        (told,) = answer["EvaluationResults"]
        assert (told["EvalDecision"] == "allowed") is may_list
        assert told["MatchedStatements"][0]["SourcePolicyId"] == "user_ann_own"
        assert await stage.may(ann, "sqs", "ListQueues") is may_list
        assert await stage.may(ann, "sqs", "ListQueues", QueueNamePrefix="other") is may_list_others

    on_stage(play)


def test_policies_are_simulated_as_they_are_enforced() -> None:
    async def play(stage: Stage) -> None:
        await queue_and_topic(stage)
        ann = await stage.user("ann", allow("sqs:Send*", on=QUEUE), deny("sqs:Purge*"))
        asked = {
            "PolicySourceArn": ANN,
            "ActionNames": ["sqs:SendMessage", "sqs:PurgeQueue", "sqs:ReceiveMessage"],
            "ResourceArns": [QUEUE],
        }
        results = (await stage.call(stage.root, "iam", "SimulatePrincipalPolicy", **asked))[
            "EvaluationResults"
        ]
        told = {each["EvalActionName"]: each["EvalDecision"] for each in results}
        assert told == {
            "sqs:SendMessage": "allowed",
            "sqs:PurgeQueue": "explicitDeny",
            "sqs:ReceiveMessage": "implicitDeny",
        }
        assert results[0]["MatchedStatements"][0]["SourcePolicyId"] == "user_ann_own"
        for operation, params in (("SendMessage", SEND), ("PurgeQueue", {"QueueUrl": URL})):
            assert await stage.may(ann, "sqs", operation, **params) is (told[f"sqs:{operation}"] == "allowed")
        condition = {"StringEquals": {"aws:SourceAccount": "1"}}
        custom = {
            "PolicyInputList": [policy(allow("s3:GetObject", Condition=condition))],
            "ActionNames": ["s3:GetObject"],
        }
        entry = {"ContextKeyName": "aws:SourceAccount", "ContextKeyValues": ["1"], "ContextKeyType": "string"}
        for entries, decision, missing in (
            ([], "implicitDeny", ["aws:sourceaccount"]),
            ([entry], "allowed", []),
        ):
            answer = await stage.call(
                stage.root, "iam", "SimulateCustomPolicy", **custom, ContextEntries=entries
            )
            (result,) = answer["EvaluationResults"]
            assert (result["EvalDecision"], result["MissingContextValues"]) == (decision, missing)
        asked = {
            "PolicyInputList": [policy(allow("s3:*"))],
            "ResourceArns": [f"arn:{n}" for n in range(2_000)],
        }
        asked["ActionNames"] = [f"s3:Get{n}" for n in range(2_000)]
        places, marker = [], {}
        for _ in range(3):
            answer = await stage.call(
                stage.root, "iam", "SimulateCustomPolicy", **asked, **marker, MaxItems=1_000
            )
            places += [
                (each["EvalActionName"], each["EvalResourceName"]) for each in answer["EvaluationResults"]
            ]
            marker = {"Marker": answer["Marker"]}
        assert places[:2] == [("s3:Get0", "arn:0"), ("s3:Get0", "arn:1")]
        assert len(places) == len(set(places)), "each question once, of 4,000,000"
        bounds = [policy(allow("sqs:*"))]
        answer = await stage.call(
            stage.root,
            "iam",
            "SimulateCustomPolicy",
            PolicyInputList=[policy(allow("*"))],
            PermissionsBoundaryPolicyInputList=bounds,
            ActionNames=["sns:Publish"],
        )
        (result,) = answer["EvaluationResults"]
        assert result["EvalDecision"] == "implicitDeny"
        assert result["PermissionsBoundaryDecisionDetail"] == {"AllowedByPermissionsBoundary": False}
        keys = await stage.call(
            stage.root, "iam", "GetContextKeysForCustomPolicy", PolicyInputList=custom["PolicyInputList"]
        )
        assert keys["ContextKeyNames"] == ["aws:sourceaccount"]

    on_stage(play)

"""STS: who a caller is, whom roles trust, how long sessions live, and what becomes of tokens that are tampered with."""

from urllib.parse import urlencode

import pytest

from redrive.access.secret import account_in, lasting_key_id, temporary_key_id
from redrive.functions.environment import RENEWED_MS
from redrive.model.http import Request
from redrive.model.names import ResourceName
from tests.aws.stage import ACCOUNT, HOST, OTHER, REGION, Key, Stage, allow, key_of, on_stage, policy, signed

LONGEST_SECONDS = 900  # of an invocation
ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
STRANGERS = {"AWS": f"arn:aws:iam::{OTHER}:root"}
SERVICE = {"Service": "lambda.amazonaws.com"}
INVALID = "InvalidClientTokenId: The security token included in the request is invalid."
EXPIRED = "ExpiredToken: The security token included in the request is expired"


async def who(stage: Stage, key: Key | None) -> tuple[str, str, str]:
    answer = await stage.call(key, "sts", "GetCallerIdentity")
    return answer["Account"], answer["Arn"], answer["UserId"]


def denied(caller: str, role: str, action: str = "sts:AssumeRole") -> str:
    text = f"User: {caller} is not authorized to perform: {action} on resource: {role}"
    return f"AccessDenied: {text}"


def test_accounts_users_and_sessions_know_who_they_are() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", allow("iam:GetUser"))
        role = await stage.role("worker", ROOT)
        session = await stage.assume(stage.root, role, "night-shift")
        assert await who(stage, stage.root) == (ACCOUNT, f"arn:aws:iam::{ACCOUNT}:root", ACCOUNT)
        arn = f"arn:aws:iam::{ACCOUNT}:user/ann"
        unique_id = (await stage.call(ann, "iam", "GetUser"))["User"]["UserId"]
        assert await who(stage, ann) == (ACCOUNT, arn, unique_id)
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/night-shift"
        unique_id = (await stage.call(stage.root, "iam", "GetRole", RoleName="worker"))["Role"]["RoleId"]
        assert await who(stage, session) == (ACCOUNT, arn, f"{unique_id}:night-shift")

    on_stage(play)


def test_a_roles_trust_says_who_may_assume_it() -> None:
    async def play(stage: Stage) -> None:
        ours, theirs = await stage.role("ours", ROOT), await stage.role("theirs", STRANGERS)
        service = await stage.role("service", SERVICE)
        ann = await stage.user("ann")
        bea = await stage.user("bea", {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": ours})
        named = await stage.role("named", {"AWS": f"arn:aws:iam::{ACCOUNT}:user/ann"})
        absent = f"arn:aws:iam::{ACCOUNT}:role/absent"
        root, stranger, user = (
            f"arn:aws:iam::{who_}" for who_ in (f"{ACCOUNT}:root", f"{OTHER}:root", f"{ACCOUNT}:user/ann")
        )
        refusals = {
            (stage.root, theirs): root,
            (stage.root, service): root,
            (stage.root, named): root,
            (stage.root, absent): root,
            (stage.stranger, ours): stranger,
            (ann, ours): user,  # the account is trusted, and ann's policies are silent
            (bea, theirs): f"arn:aws:iam::{ACCOUNT}:user/bea",
        }
        for (key, role), caller in refusals.items():
            asked = {"RoleArn": role, "RoleSessionName": "run"}
            assert await stage.refusal(key, "sts", "AssumeRole", **asked) == denied(caller, role)
        for key, role in ((stage.root, ours), (stage.stranger, theirs), (bea, ours), (ann, named)):
            await stage.assume(key, role)

    on_stage(play)


def test_a_trust_policys_conditions_count() -> None:
    async def play(stage: Stage) -> None:
        conditions = {
            "external": {"StringEquals": {"sts:ExternalId": "e-1"}},
            "session": {"StringLike": {"sts:RoleSessionName": "ci-*"}},
            "source": {"StringEquals": {"sts:SourceIdentity": "ann"}},
            "late": {"DateGreaterThan": {"aws:CurrentTime": "2999-01-01T00:00:00Z"}},
        }
        roles = {name: await stage.role(name, ROOT, trust={"Condition": c}) for name, c in conditions.items()}
        await stage.assume(stage.root, roles["external"], ExternalId="e-1")
        await stage.assume(stage.root, roles["session"], "ci-7")
        await stage.assume(stage.root, roles["source"], SourceIdentity="ann")
        for name, params in {
            "external": {"ExternalId": "e-2"},
            "session": {},
            "source": {"SourceIdentity": "bob"},
            "late": {},
        }.items():
            asked = {"RoleArn": roles[name], "RoleSessionName": "run", **params}
            assert "sts:AssumeRole" in await stage.refusal(stage.root, "sts", "AssumeRole", **asked)
        plain = {"RoleArn": roles["external"], "RoleSessionName": "run"}
        assert "sts:AssumeRole" in await stage.refusal(stage.root, "sts", "AssumeRole", **plain)

    on_stage(play)


def test_source_identities_and_tags_have_actions_of_their_own() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("plain", ROOT, trust={"Action": "sts:AssumeRole"})
        caller = f"arn:aws:iam::{ACCOUNT}:root"
        asked = {"RoleArn": role, "RoleSessionName": "run"}
        for action, params in {
            "sts:SetSourceIdentity": {"SourceIdentity": "ann"},
            "sts:TagSession": {"Tags": [{"Key": "team", "Value": "blue"}]},
        }.items():
            refusal = await stage.refusal(stage.root, "sts", "AssumeRole", **asked, **params)
            assert refusal == denied(caller, role, action)

    on_stage(play)


def test_sessions_end_by_the_engines_clock() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", ROOT, MaxSessionDuration=7200)
        asked = {"RoleArn": role, "RoleSessionName": "run"}
        answer = await stage.call(stage.root, "sts", "AssumeRole", **asked, DurationSeconds=7200)
        now = stage.server.core.runtime.clock.now()
        assert answer["Credentials"]["Expiration"].timestamp() * 1000 == pytest.approx(now + 7_200_000)
        short, long = await stage.assume(stage.root, role), key_of(answer["Credentials"])
        await stage.advance(3599)
        await who(stage, short)
        await stage.advance(1)
        assert await stage.refusal(short, "sts", "GetCallerIdentity") == EXPIRED
        await who(stage, long)
        await stage.advance(3600)
        assert await stage.refusal(long, "sts", "GetCallerIdentity") == EXPIRED
        for seconds in (7201, 43_200):
            refusal = await stage.refusal(stage.root, "sts", "AssumeRole", **asked, DurationSeconds=seconds)
            assert "exceeds the MaxSessionDuration set for this role" in refusal

    on_stage(play)


def test_a_session_may_assume_another_role_for_an_hour() -> None:
    async def play(stage: Stage) -> None:
        assume = {"Effect": "Allow", "Action": "sts:*", "Resource": "*"}
        first = await stage.role("first", ROOT, assume, MaxSessionDuration=43_200)
        second = await stage.role("second", ROOT, assume, MaxSessionDuration=43_200)
        tags = [{"Key": "team", "Value": "blue"}, {"Key": "unit", "Value": "x"}]
        key = await stage.assume(
            stage.root, first, SourceIdentity="ann", Tags=tags, TransitiveTagKeys=["team"]
        )
        asked = {"RoleArn": second, "RoleSessionName": "next"}
        answer = await stage.call(key, "sts", "AssumeRole", **asked)
        assert answer["SourceIdentity"] == "ann"
        session = stage.server.core.sessions.tokens.read(*key_of(answer["Credentials"])[::2])
        assert session is not None
        assert (session.tags, session.transitive) == ({"team": "blue"}, ("team",))
        assert "role chaining" in await stage.refusal(key, "sts", "AssumeRole", **asked, DurationSeconds=3601)
        for params, said in (
            ({"SourceIdentity": "bob"}, "source identity of a session cannot be changed"),
            ({"Tags": [{"Key": "TEAM", "Value": "red"}]}, "conflicts with a transitive tag key"),
            ({"Tags": [*tags, {"Key": "Team", "Value": "b"}]}, "Duplicate tag keys found."),
            ({"TransitiveTagKeys": ["team"]}, "must be included in the requested tags"),
        ):
            assert said in await stage.refusal(key, "sts", "AssumeRole", **asked, **params)

    on_stage(play)


def test_a_session_of_a_role_that_was_made_anew_is_nobodys() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", ROOT)
        key = await stage.assume(stage.root, role)
        await stage.call(stage.root, "iam", "DeleteRole", RoleName="worker")
        assert await stage.refusal(key, "sts", "GetCallerIdentity") == INVALID
        await stage.role("worker", ROOT)
        assert await stage.refusal(key, "sts", "GetCallerIdentity") == INVALID

    on_stage(play)


def test_session_tokens_of_users_and_of_accounts() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann")
        for key in (ann, stage.root):
            answer = await stage.call(key, "sts", "GetSessionToken", DurationSeconds=900)
            session = key_of(answer["Credentials"])
            assert await who(stage, session) == await who(stage, key)
            refusal = await stage.refusal(session, "sts", "GetSessionToken")
            assert refusal == "AccessDenied: Cannot call GetSessionToken with session credentials"
            await stage.advance(900)
            assert await stage.refusal(session, "sts", "GetCallerIdentity") == EXPIRED
        answer = await stage.call(stage.root, "sts", "GetSessionToken")
        await stage.advance(3600)
        refusal = await stage.refusal(key_of(answer["Credentials"]), "sts", "GetCallerIdentity")
        assert refusal == EXPIRED  # an account's own live an hour at most

    on_stage(play)


def test_bad_parameters_are_refused_as_recorded() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", ROOT)
        asked = {"RoleArn": role, "RoleSessionName": "run"}
        refused = {
            "arn:aws:iam::worker:role-x is invalid": {"RoleArn": "arn:aws:iam::worker:role-x"},
            "Value 'Session1:2' at 'roleSessionName' failed to satisfy constraint: Member must satisfy"
            " regular expression pattern: [\\w+=,.@-]*": {"RoleSessionName": "Session1:2"},
            "MalformedPolicyDocument": {"Policy": "{"},
            "PackedPolicyTooLarge": {"Policy": "x" * 2049},
            "MalformedPolicyDocument: Policy arn:aws:iam::aws:policy/None does not exist": {
                "PolicyArns": [{"arn": "arn:aws:iam::aws:policy/None"}]
            },
        }
        for said, params in refused.items():
            assert said in await stage.refusal(stage.root, "sts", "AssumeRole", **{**asked, **params})
        refusal = await stage.refusal(stage.root, "sts", "DecodeAuthorizationMessage", EncodedMessage="x")
        assert "Redrive encodes no authorization messages" in refusal
        refusal = await stage.refusal(stage.root, "sts", "AssumeRoleWithSAML", RoleArn=role)
        assert "does not offer the operation sts AssumeRoleWithSAML" in refusal

    on_stage(play)


def test_a_session_policy_without_an_arn_is_refused() -> None:
    async def play(stage: Stage) -> None:
        form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleSessionName": "run"}
        form |= {"RoleArn": await stage.role("worker", ROOT), "PolicyArns.member.1.other": "x"}
        headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}
        request = Request("POST", "/", "", headers, urlencode(form).encode())
        response = await stage.send(signed(request, "sts", stage.root))
        assert (response.status, b"Policy  does not exist" in response.body) == (400, True), response.body

    on_stage(play)


def test_a_key_id_tells_its_account() -> None:
    assert account_in("ASIAQNZGKIQY56JQ7WML") == "029608264753"  # Amazon's own example of it
    assert account_in("AKIA0000000000000000") is None

    async def play(stage: Stage) -> None:
        rng = stage.server.core.runtime.rng
        for make in (temporary_key_id, lasting_key_id):
            for account in (ACCOUNT, "000000000000", "999999999999"):
                assert account_in(make(account, rng)) == account
                answer = await stage.call(
                    stage.root, "sts", "GetAccessKeyInfo", AccessKeyId=make(account, rng)
                )
                assert answer["Account"] == account
        refusal = await stage.refusal(stage.root, "sts", "GetAccessKeyInfo", AccessKeyId="A" * 16)
        assert "Invalid Access Key ID" in refusal

    on_stage(play)


def test_functions_get_credentials_of_their_role() -> None:
    async def play(stage: Stage) -> None:
        sessions = stage.server.core.sessions
        made_up = f"arn:aws:iam::{ACCOUNT}:role/made-up"
        before = await sessions.for_function(made_up, "billing", ACCOUNT, REGION)
        account_key = Key(before.access_key_id, before.secret, before.token)
        assert (await who(stage, account_key))[1] == f"arn:aws:iam::{ACCOUNT}:root"  # nobody has roles here
        role = await stage.role("worker", SERVICE)
        assert await stage.refusal(account_key, "sts", "GetCallerIdentity") == INVALID
        made = await sessions.for_function(role, "billing", ACCOUNT, REGION, 900)
        credentials = Key(made.access_key_id, made.secret, made.token)
        assert (await who(stage, credentials))[1] == f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/billing"
        foreign = await sessions.for_function(role, "billing", OTHER, REGION)
        others = Key(foreign.access_key_id, foreign.secret, foreign.token)
        assert await stage.refusal(others, "sts", "GetCallerIdentity") == INVALID
        after = await sessions.for_function(made_up, "billing", ACCOUNT, REGION)
        made_up_now = Key(after.access_key_id, after.secret, after.token)
        assert await stage.refusal(made_up_now, "sts", "GetCallerIdentity") == INVALID
        await stage.advance(900)
        assert await stage.refusal(credentials, "sts", "GetCallerIdentity") == EXPIRED
        usual = await sessions.for_function(role, "billing", ACCOUNT, REGION)
        await stage.advance(RENEWED_MS // 1000 + LONGEST_SECONDS)
        credentials = Key(usual.access_key_id, usual.secret, usual.token)
        assert (await who(stage, credentials))[0] == ACCOUNT  # as long as a process may need them
        await stage.advance(36 * 60 * 60)
        assert await stage.refusal(credentials, "sts", "GetCallerIdentity") == EXPIRED

    on_stage(play)


def test_without_signatures_everybody_may_everything() -> None:
    async def play(stage: Stage) -> None:
        role = f"arn:aws:iam::{ACCOUNT}:role/made-up"
        key = await stage.assume(Key("123456789012", "x"), role)
        assert (await who(stage, key))[:2] == (
            ACCOUNT,
            f"arn:aws:sts::{ACCOUNT}:assumed-role/made-up/run",
        )
        ann = await stage.user("ann")
        assert (await who(stage, ann))[1] == f"arn:aws:iam::{ACCOUNT}:user/ann"
        await stage.call(ann, "sqs", "CreateQueue", QueueName="orders")
        queues = stage.server.core.engine.resources.queues
        assert await queues.get(ResourceName(ACCOUNT, "us-east-1", "orders")) is not None
        assert (await who(stage, Key("AKIANOBODYHASTHIS000", "x")))[0] == "000000000000"

    on_stage(play, auth="off")


def test_session_policies_are_those_of_the_account_or_amazons() -> None:
    """Another account's policy, which could be changed there, is as absent as none."""

    async def play(stage: Stage) -> None:
        role = await stage.role("worker", ROOT)
        document = {"PolicyName": "p", "PolicyDocument": policy(allow("sqs:*"))}
        for key in (stage.root, stage.stranger):
            await stage.call(key, "iam", "CreatePolicy", **document)
        ann = await stage.user("ann", allow("sts:*"))
        for account, is_there in ((ACCOUNT, True), (OTHER, False)):
            arns = [{"arn": f"arn:aws:iam::{account}:policy/p"}]
            for operation, params in (
                ("AssumeRole", {"RoleArn": role, "RoleSessionName": "run"}),
                ("GetFederationToken", {"Name": "guest"}),
            ):
                if is_there:
                    await stage.call(ann, "sts", operation, **params, PolicyArns=arns)
                    continue
                refused = await stage.refusal(ann, "sts", operation, **params, PolicyArns=arns)
                assert refused == f"MalformedPolicyDocument: Policy {arns[0]['arn']} does not exist."

    on_stage(play)

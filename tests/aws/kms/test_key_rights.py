"""Rights to keys of users and sessions: by grants, by both keys of an alias, and for how long a right is remembered."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.principals import role_session
from redrive.aws.encryption.sealer import RememberedRights
from redrive.aws.kms.access import covers
from redrive.aws.kms.records import Grant
from redrive.model.names import ResourceName
from tests.aws.stage import ACCOUNT, OTHER, REGION, Key, Stage, allow, deny, on_stage, policy

BOB: Final = f"arn:aws:iam::{ACCOUNT}:user/bob"
STRANGER: Final = f"arn:aws:iam::{OTHER}:root"
ROOT: Final = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*"}


async def new_key(stage: Stage, *statements: Mapping[str, Any]) -> str:
    """The ARN of a key whose policy leaves all to the account's policies, besides these statements."""
    text = policy(*({"Resource": "*", **each} for each in (ROOT, *statements)))
    made = await stage.call(stage.root, "kms", "CreateKey", Policy=text)
    arn: str = made["KeyMetadata"]["Arn"]
    return arn


async def sealed_queue(stage: Stage, name: str, key: str) -> str:
    """The URL of a queue with two messages that are sealed by a key, for as long as a right may count: a day."""
    attributes = {"KmsMasterKeyId": key, "KmsDataKeyReusePeriodSeconds": "86400", "VisibilityTimeout": "0"}
    made = await stage.call(stage.root, "sqs", "CreateQueue", QueueName=name, Attributes=attributes)
    for body in ("a", "b"):
        await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=made["QueueUrl"], MessageBody=body)
    url: str = made["QueueUrl"]
    return url


async def may_read(stage: Stage, key: Key, url: str) -> bool:
    return await stage.may(key, "sqs", "ReceiveMessage", QueueUrl=url)


async def may_send(stage: Stage, key: Key, url: str) -> bool:
    return await stage.may(key, "sqs", "SendMessage", QueueUrl=url, MessageBody="c")


# ---- grants -------------------------------------------------------------------------------------------------------

OPERATIONS: Final = ["Decrypt", "Encrypt", "CreateGrant", "GenerateDataKey"]
CONTEXTS: Final = st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)


def a_grant(
    operations: list[str], equals: Mapping[str, str] | None, subset: Mapping[str, str] | None
) -> Grant:
    place = ResourceName(ACCOUNT, REGION, "key")
    return Grant("1", place, BOB, tuple(operations), STRANGER, 0, "t", "", "", equals, subset)


GRANTS: Final = st.builds(a_grant, st.lists(st.sampled_from(OPERATIONS)), CONTEXTS, CONTEXTS)


def fits(grant: Grant, context: Mapping[str, str]) -> bool:
    is_equal = grant.context_equals is None or grant.context_equals == context
    return is_equal and (grant.context_subset is None or grant.context_subset.items() <= context.items())


@given(GRANTS, GRANTS, CONTEXTS)
def test_a_grant_of_a_grantee_gives_nothing_that_its_own_does_not(
    parent: Grant, child: Grant, context: Mapping[str, str] | None
) -> None:
    if covers(parent, child):
        assert set(child.operations) <= set(parent.operations)
        assert not fits(child, context or {}) or fits(parent, context or {})


@given(GRANTS)
def test_a_grant_covers_itself(grant: Grant) -> None:
    assert covers(grant, grant)


EQUALS: Final = "EncryptionContextEquals"
SUBSET: Final = "EncryptionContextSubset"


@pytest.mark.parametrize(
    ("grantee", "operations", "constraints", "may"),
    [
        (BOB, ["Decrypt"], {SUBSET: {"a": "1"}}, False),
        (STRANGER, ["Decrypt"], {SUBSET: {"a": "1"}}, False),
        (BOB, ["Encrypt", "Decrypt"], {SUBSET: {"a": "1"}}, False),
        (BOB, ["Encrypt"], {}, False),
        (BOB, ["Encrypt"], {SUBSET: {"b": "2"}}, False),
        (BOB, ["Encrypt"], {EQUALS: {"b": "2"}}, False),
        (BOB, ["Encrypt"], {SUBSET: {"a": "2"}}, False),
        (STRANGER, ["Encrypt"], {SUBSET: {"a": "1"}}, True),
        (STRANGER, ["Encrypt", "CreateGrant"], {SUBSET: {"a": "1", "b": "2"}}, True),
        (STRANGER, ["Encrypt"], {EQUALS: {"a": "1"}}, True),
    ],
)
def test_a_grantee_grants_at_most_what_it_was_granted(
    grantee: str, operations: list[str], constraints: Mapping[str, Any], may: bool
) -> None:
    async def play(stage: Stage) -> None:
        key, bob = await new_key(stage), await stage.user("bob")
        given = {"Operations": ["CreateGrant", "Encrypt", "DescribeKey"], "Constraints": {SUBSET: {"a": "1"}}}
        await stage.call(stage.root, "kms", "CreateGrant", KeyId=key, GranteePrincipal=BOB, **given)
        asked = {"KeyId": key, "GranteePrincipal": grantee, "Operations": operations}
        if constraints:
            asked["Constraints"] = constraints
        assert await stage.may(bob, "kms", "CreateGrant", **asked) is may
        grants = (await stage.call(stage.root, "kms", "ListGrants", KeyId=key))["Grants"]
        assert len(grants) == (2 if may else 1)
        assert await stage.may(bob, "kms", "DescribeKey", KeyId=key)  # which has no context to be constrained
        assert await may_decrypt(stage, bob, key) is False

    on_stage(play)


async def may_decrypt(stage: Stage, key: Key, kms_key: str) -> bool:
    context = {"EncryptionContext": {"a": "1"}}
    blob = await stage.call(stage.root, "kms", "Encrypt", KeyId=kms_key, Plaintext=b"x", **context)
    return await stage.may(key, "kms", "Decrypt", CiphertextBlob=blob["CiphertextBlob"], **context)


def test_a_principal_with_create_grant_by_a_policy_grants_any_operation() -> None:
    async def play(stage: Stage) -> None:
        key, bob = await new_key(stage), await stage.user("bob", allow("kms:CreateGrant"))
        granted = {"Operations": ["CreateGrant"], "GranteePrincipal": BOB}
        await stage.call(stage.root, "kms", "CreateGrant", KeyId=key, **granted)
        asked = {"GranteePrincipal": BOB, "Operations": ["Decrypt"]}
        assert await stage.may(bob, "kms", "CreateGrant", KeyId=key, **asked)
        assert await may_decrypt(stage, bob, key)

    on_stage(play)


def test_a_deny_keeps_a_retiring_principal_from_retiring() -> None:
    async def play(stage: Stage) -> None:
        key = await new_key(stage)
        bob = await stage.user("bob", deny("kms:RetireGrant", on=key))
        granted = {"Operations": ["Decrypt"], "GranteePrincipal": BOB, "RetiringPrincipal": BOB}
        grant = await stage.call(stage.root, "kms", "CreateGrant", KeyId=key, **granted)
        assert not await stage.may(bob, "kms", "RetireGrant", GrantToken=grant["GrantToken"])
        await stage.own_policy("User", "bob", allow("sqs:*"))
        assert await stage.may(bob, "kms", "RetireGrant", GrantToken=grant["GrantToken"])

    on_stage(play)


def test_a_grantee_retires_its_own_grant_alone() -> None:
    async def play(stage: Stage) -> None:
        key, bob = await new_key(stage), await stage.user("bob")
        granted = {"KeyId": key, "Operations": ["Decrypt", "RetireGrant"]}
        own = await stage.call(stage.root, "kms", "CreateGrant", GranteePrincipal=BOB, **granted)
        other = await stage.call(stage.root, "kms", "CreateGrant", GranteePrincipal=STRANGER, **granted)
        for grant, may in ((other, False), (own, True)):
            asked = {"KeyId": key, "GrantId": grant["GrantId"]}
            assert await stage.may(bob, "kms", "RetireGrant", **asked) is may

    on_stage(play)


@pytest.mark.parametrize("account", [ACCOUNT, OTHER])
def test_a_grant_to_an_account_leaves_the_decision_to_its_policies(account: str) -> None:
    """As a key policy that names the account does: an account's root is not each of its users."""

    async def play(stage: Stage) -> None:
        key = await new_key(stage)
        root = f"arn:aws:iam::{account}:root"
        granted = {
            "KeyId": key,
            "Operations": ["Decrypt"],
            "GranteePrincipal": root,
            "RetiringPrincipal": root,
        }
        grant = await stage.call(stage.root, "kms", "CreateGrant", **granted)
        owner = stage.root
        account_key = stage.root if account == ACCOUNT else stage.stranger
        stage.root = account_key
        bob, ann = await stage.user("bob", allow("sqs:*")), await stage.user("ann", allow("kms:*"))
        stage.root = owner
        for caller, may in ((bob, False), (ann, True), (account_key, True)):
            assert await may_decrypt(stage, caller, key) is may
        asked = {"KeyId": key, "GrantId": grant["GrantId"]}
        for caller, may in ((bob, False), (ann, True)):
            assert await stage.may(caller, "kms", "RetireGrant", **asked) is may

    on_stage(play)


def test_a_grant_to_a_role_is_within_the_policies_of_its_session() -> None:
    async def play(stage: Stage) -> None:
        key, role = await new_key(stage), await stage.role("worker", {"AWS": f"arn:aws:iam::{ACCOUNT}:root"})
        granted = {"Operations": ["Decrypt"], "GranteePrincipal": role}
        await stage.call(stage.root, "kms", "CreateGrant", KeyId=key, **granted)
        for params, may in (({}, True), ({"Policy": policy(allow("sqs:*"))}, False)):
            session = await stage.assume(stage.root, role, **params)
            assert await may_decrypt(stage, session, key) is may

    on_stage(play)


# ---- new keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "may"),
    [
        (allow("kms:ReplicateKey"), False),
        (allow("kms:*", Condition={"StringEquals": {"aws:RequestedRegion": REGION}}), False),
        (allow("kms:*", Condition={"StringEquals": {"aws:RequestedRegion": [REGION, "eu-west-1"]}}), True),
    ],
    ids=["no right to create keys", "none there", "both"],
)
def test_a_replica_needs_the_right_to_create_a_key_there(statement: Mapping[str, Any], *, may: bool) -> None:
    """A replica opens whatever the primary key has sealed, under a policy of the caller's choice."""

    async def play(stage: Stage) -> None:
        primary = await stage.call(stage.root, "kms", "CreateKey", MultiRegion=True)
        bob = await stage.user("bob", statement)
        asked = {"KeyId": primary["KeyMetadata"]["KeyId"], "ReplicaRegion": "eu-west-1"}
        assert await stage.may(bob, "kms", "ReplicateKey", **asked) is may

    on_stage(play)


def test_a_key_with_tags_needs_the_right_to_tag() -> None:
    async def play(stage: Stage) -> None:
        bob = await stage.user("bob", allow("kms:*"), deny("kms:TagResource"))
        tags = {"Tags": [{"TagKey": "team", "TagValue": "red"}]}
        assert not await stage.may(bob, "kms", "CreateKey", **tags)
        made = await stage.call(bob, "kms", "CreateKey", MultiRegion=True)
        asked = {"KeyId": made["KeyMetadata"]["KeyId"], "ReplicaRegion": "eu-west-1"}
        assert not await stage.may(bob, "kms", "ReplicateKey", **asked, **tags)
        assert await stage.may(bob, "kms", "ReplicateKey", **asked)

    on_stage(play)


def test_a_new_primary_key_needs_the_right_to_it_too() -> None:
    async def play(stage: Stage) -> None:
        primary = (await stage.call(stage.root, "kms", "CreateKey", MultiRegion=True))["KeyMetadata"]
        bob = await stage.user("bob", allow("kms:*", on=primary["Arn"]))
        asked = {"KeyId": primary["KeyId"], "ReplicaRegion": "eu-west-1"}
        await stage.call(stage.root, "kms", "ReplicateKey", **asked)
        moved = {"KeyId": primary["KeyId"], "PrimaryRegion": "eu-west-1"}
        assert not await stage.may(bob, "kms", "UpdatePrimaryRegion", **moved)
        assert await stage.may(stage.root, "kms", "UpdatePrimaryRegion", **moved)

    on_stage(play)


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("Encrypt", {"Plaintext": b"x"}),
        ("GenerateDataKey", {"KeySpec": "AES_256"}),
        ("GenerateDataKeyPair", {"KeyPairSpec": "ECC_NIST_P256"}),
    ],
)
def test_a_context_has_no_names_that_policies_take_for_one(operation: str, params: dict[str, Any]) -> None:
    """A condition sees one value of a name, in whatever case: the other passed a Deny."""

    async def play(stage: Stage) -> None:
        against = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": f"kms:{operation}",
            "Condition": {"StringEquals": {"kms:EncryptionContext:team": "red"}},
        }
        asked = {"KeyId": await new_key(stage, against), **params}
        assert not await stage.may(stage.root, "kms", operation, **asked, EncryptionContext={"team": "red"})
        both = {"team": "red", "TEAM": "blue"}
        refused = await stage.refusal(stage.root, "kms", operation, **asked, EncryptionContext=both)
        assert refused.startswith(
            "ValidationException: EncryptionContext must not have names that differ in case"
        )

    on_stage(play)


# ---- aliases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["key policy", "policy of its own", "the new key"])
def test_an_alias_moves_only_with_the_right_to_both_keys(place: str) -> None:
    async def play(stage: Stage) -> None:
        bob = await stage.user("bob", allow("kms:CreateKey", "kms:UpdateAlias", "kms:ListAliases"))
        against = {"Effect": "Deny", "Principal": {"AWS": BOB}, "Action": "kms:*"}
        old = await new_key(stage, *([against] if place == "key policy" else []))
        new = await new_key(stage, *([against] if place == "the new key" else []))
        await stage.call(stage.root, "kms", "CreateAlias", AliasName="alias/prod", TargetKeyId=old)
        if place == "policy of its own":
            await stage.own_policy("User", "bob", allow("kms:*"), deny("kms:UpdateAlias", on=old))
        moved = {"AliasName": "alias/prod", "TargetKeyId": new}
        assert not await stage.may(bob, "kms", "UpdateAlias", **moved)
        (alias,) = (await stage.call(stage.root, "kms", "ListAliases", KeyId=old))["Aliases"]
        assert alias["AliasName"] == "alias/prod"
        await stage.call(stage.root, "kms", "UpdateAlias", **moved)

    on_stage(play)


# ---- rights that are remembered -----------------------------------------------------------------------------------


def test_a_remembered_right_is_that_of_one_principal_under_one_key_until_its_time() -> None:
    rights, role = RememberedRights(), f"arn:aws:iam::{ACCOUNT}:role/reader"
    session, tagged = (role_session(role, "AROA1", "same", {"team": team}, None) for team in "ab")
    rights.add(session, "key", 100, rights.version)
    assert rights.has(session, "key", 99)
    assert rights.has(role_session(role, "AROA1", "same", {"team": "a"}, None), "key", 99)
    assert not rights.has(session, "key", 100)
    assert not rights.has(session, "other key", 99)
    assert not rights.has(tagged, "key", 99)
    before = rights.version
    rights.clear()
    assert not rights.has(session, "key", 99)
    rights.add(session, "key", 100, before)  # an answer to a question that was asked before a key changed
    assert not rights.has(session, "key", 99)


def test_a_session_has_no_right_of_another_session_of_its_name() -> None:
    async def play(stage: Stage) -> None:
        key = await new_key(stage)
        url = await sealed_queue(stage, "q", key)
        role = await stage.role("reader", {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, allow("sqs:*", "kms:*"))
        ann = await stage.user("ann", allow("sts:AssumeRole"))
        whole = await stage.assume(ann, role, "same")
        narrow = await stage.assume(ann, role, "same", Policy=policy(allow("sqs:*")))
        for may in (may_read, may_send):
            assert not await may(stage, narrow, url)
            assert await may(stage, whole, url)
            assert not await may(stage, narrow, url)
            assert await may(stage, whole, url)

    on_stage(play)


def test_a_right_counts_for_the_encryption_context_that_it_was_asked_for() -> None:
    async def play(stage: Stage) -> None:
        key = await new_key(stage)
        urls = [await sealed_queue(stage, name, key) for name in ("first", "second")]
        of_first = {
            "StringEquals": {"kms:EncryptionContext:aws:sqs:arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:first"}
        }
        bob = await stage.user("bob", allow("sqs:*"), allow("kms:*", Condition=of_first))
        for may in (may_read, may_send):
            assert await may(stage, bob, urls[0])
            assert not await may(stage, bob, urls[1])

    on_stage(play)


@pytest.mark.parametrize("way", ["disabled", "key policy", "grant", "policy of its own", "alias", "tags"])
def test_a_right_ends_with_what_it_depended_on(way: str) -> None:
    async def play(stage: Stage) -> None:
        key = await new_key(stage)
        await stage.call(stage.root, "kms", "CreateAlias", AliasName="alias/q", TargetKeyId=key)
        url = await sealed_queue(stage, "q", "alias/q" if way == "alias" else key)
        granted = {"GranteePrincipal": BOB, "Operations": ["Decrypt", "GenerateDataKey"]}
        tagged = {"StringEquals": {"aws:PrincipalTag/team": "a"}} if way == "tags" else {}
        statements = [allow("sqs:*")]
        if way != "grant":
            statements.append(allow("kms:*", Condition=tagged) if tagged else allow("kms:*"))
        bob = await stage.user("bob", *statements, Tags=[{"Key": "team", "Value": "a"}])
        grant = (
            {} if way != "grant" else await stage.call(stage.root, "kms", "CreateGrant", KeyId=key, **granted)
        )
        assert await may_read(stage, bob, url)
        assert await may_send(stage, bob, url)
        against = {"Effect": "Deny", "Principal": {"AWS": BOB}, "Action": "kms:*", "Resource": "*"}
        other = await new_key(stage, against)
        match way:
            case "disabled":
                await stage.call(stage.root, "kms", "DisableKey", KeyId=key)
            case "key policy":
                text = policy({"Resource": "*", **ROOT}, against)
                await stage.call(stage.root, "kms", "PutKeyPolicy", KeyId=key, Policy=text)
            case "grant":
                await stage.call(stage.root, "kms", "RevokeGrant", KeyId=key, GrantId=grant["GrantId"])
            case "alias":
                await stage.call(stage.root, "kms", "UpdateAlias", AliasName="alias/q", TargetKeyId=other)
            case "tags":
                await stage.call(
                    stage.root, "iam", "TagUser", UserName="bob", Tags=[{"Key": "team", "Value": "b"}]
                )
            case _:
                await stage.own_policy("User", "bob", allow("sqs:*"))
        assert await refuses(stage, bob, "SendMessage", QueueUrl=url, MessageBody="c")
        if way != "alias":  # the messages are sealed by the key that the alias had
            assert await refuses(stage, bob, "ReceiveMessage", QueueUrl=url)

    on_stage(play)


async def refuses(stage: Stage, key: Key, operation: str, **params: Any) -> bool:
    return (await stage.refusal(key, "sqs", operation, **params)).startswith("KMS.")

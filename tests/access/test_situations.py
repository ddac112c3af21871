"""Identity policies, resource policies, boundaries and sessions together: a table, and a second evaluator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.policy import AccessRequest, Decision, evaluate, request_keys
from redrive.access.policy_document import Form, parse_policy
from redrive.access.principals import (
    ANONYMOUS,
    Principal,
    Source,
    account_root,
    permissions_of,
    role_session,
    service_principal,
    user_principal,
)
from tests.access.plain_evaluator import Caller, Question, answer
from tests.access.situations import CALLERS, WORDS, Situation, read

OWNER: Final = WORDS["A"]
SITUATIONS: Final = list(read(Path(__file__).with_name("situations.txt")))
TAGS: Final = {"team": "blue"}


def caller(name: str, situation: Situation) -> Principal:
    """A caller, with the policies of the situation if it is a user or a role."""
    account = WORDS["X"] if name.startswith("x") else OWNER
    kind = name.removeprefix("x")
    if kind == "root":
        return account_root(account)
    if kind == "sns":
        return service_principal("sns", "us-east-1")
    if kind == "nobody":
        return ANONYMOUS
    read_ = {
        each: parse_policy(text, Form.IDENTITY)
        for each in ("identity", "boundary", "session")
        if (text := situation.text(each)) is not None and situation.policies[each]
    }
    identity = [read_["identity"]] if "identity" in read_ else []
    if kind == "ann":
        permissions = permissions_of(identity, read_.get("boundary"))
        return user_principal(f"arn:aws:iam::{account}:user/ann", WORDS["annid"], TAGS, permissions)
    session = [read_["session"]] if "session" in read_ else []
    permissions = permissions_of(identity, read_.get("boundary"), session)
    role = f"arn:aws:iam::{account}:role/worker"
    return role_session(role, WORDS["workerid"], "run", TAGS, permissions)


def decide(name: str, situation: Situation) -> Decision:
    """The answer to a caller."""
    keys: Mapping[str, Any] = {key: tuple(values) for key, values in situation.keys.items()}
    asked = AccessRequest(caller(name, situation), situation.action, situation.resource, request_keys(keys))
    text = situation.text("resource")
    policy = None if text is None else parse_policy(text)
    return evaluate(policy, asked, OWNER, policy_decides=situation.policy_decides)


_SOURCES: Final = {
    Source.IDENTITY: "identity",
    Source.RESOURCE: "resource",
    Source.BOUNDARY: "boundary",
    Source.SESSION: "session",
}


def told(decision: Decision) -> str:
    """The answer in the table's words."""
    if decision.allowed:
        return "yes"
    return ("!" if decision.explicit else "-") + _SOURCES[decision.source]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.title)
def test_the_table(situation: Situation) -> None:
    assert {name: told(decide(name, situation)) for name in situation.answers} == situation.answers
    for name, expected in situation.answers.items():
        assert plain_answer(name, situation) is (expected == "yes"), name


def test_the_table_is_long_enough() -> None:
    assert sum(len(situation.answers) for situation in SITUATIONS) >= 300
    assert len({situation.title for situation in SITUATIONS}) == len(SITUATIONS)


# ---- the second evaluator ---------------------------------------------------------------------------------


def question(name: str, situation: Situation) -> Question:
    """The situation as the second evaluator is asked about it."""
    account = WORDS["X"] if name.startswith("x") else OWNER
    kind = name.removeprefix("x")
    word = "xann" if account == WORDS["X"] else "ann"
    keys = {"aws:PrincipalAccount": account, "aws:PrincipalIsAWSService": "false"}
    if kind == "ann":
        arn = WORDS[word]
        keys |= {"aws:PrincipalArn": arn, "aws:username": "ann", "aws:userid": WORDS["annid"]}
        asked = Caller(account, {account, arn, WORDS["annid"]}, keys=keys, has_policies=True)
    elif kind == "worker":
        role, session = (WORDS[word.replace("ann", each)] for each in ("worker", "run"))
        keys |= {"aws:PrincipalArn": role, "aws:userid": f"{WORDS['workerid']}:run"}
        of_role = {role, WORDS["workerid"]}
        asked = Caller(account, {account, session, *of_role}, of_role, keys=keys, has_policies=True)
    elif kind == "root":
        arn = WORDS[word.replace("ann", "root")]
        asked = Caller(account, {account}, keys=keys | {"aws:PrincipalArn": arn, "aws:userid": account})
    elif kind == "sns":
        service = {"aws:PrincipalIsAWSService": "true", "aws:PrincipalServiceName": WORDS["sns"]}
        asked = Caller("", set(), service=WORDS["sns"], keys=service)
    else:
        asked = Caller("", set(), keys={"aws:PrincipalIsAWSService": "false"})
    if kind in ("ann", "worker"):
        asked.keys["aws:PrincipalTag/team"] = TAGS["team"]
    policies = situation.policies
    return Question(
        asked,
        situation.action,
        situation.resource,
        situation.keys,
        identity=policies.get("identity") or [],
        boundary=policies.get("boundary") or None,
        session=(policies.get("session") or None) if kind == "worker" else None,
        of_resource=policies.get("resource"),
        owner=OWNER,
    )


def plain_answer(name: str, situation: Situation) -> bool:
    """The second evaluator's answer."""
    return answer(question(name, situation), policy_decides=situation.policy_decides)


_names = st.sampled_from(["sqs:SendMessage", "sqs:*", "SQS:Send*", "sqs:ReceiveMessage", "sns:*", "*"])
_arns = st.sampled_from([WORDS["orders"], WORDS["invoices"], "*", "arn:aws:sqs:*", "arn:aws:sqs:*:*:ord??s"])
_values = st.lists(
    st.sampled_from(
        [WORDS["rentals"], WORDS["foreign"], OWNER, "true", "false", "blue", "arn:aws:sns:*:*:*"]
    ),
    min_size=1,
    max_size=2,
)
_operators = st.sampled_from(
    [
        f"{quantifier}{name}{if_exists}"
        for quantifier in ("", "ForAllValues:", "ForAnyValue:")
        for name in (
            "StringEquals",
            "StringNotEquals",
            "StringLike",
            "StringNotLike",
            "ArnLike",
            "ArnNotLike",
        )
        for if_exists in ("", "IfExists")
    ]
)
_keys = st.sampled_from(
    ["aws:SourceArn", "aws:SourceAccount", "aws:PrincipalAccount", "aws:PrincipalTag/team", "aws:NobodyKnows"]
)
_conditions = st.one_of(
    st.dictionaries(_operators, st.dictionaries(_keys, _values, min_size=1, max_size=2), max_size=2),
    st.fixed_dictionaries({"Null": st.dictionaries(_keys, st.sampled_from(["true", "false"]), min_size=1)}),
)
_principals = st.one_of(
    st.just("*"),
    st.fixed_dictionaries(
        {
            "AWS": st.lists(
                st.sampled_from(
                    ["A", "X", "ann", "worker", "run", "root", "xann", "xworker", "annid", "workerid"]
                ).map(WORDS.__getitem__),
                min_size=1,
                max_size=2,
            )
        },
        optional={"Service": st.just("sns.amazonaws.com")},
    ),
)


@st.composite
def _statements(draw: st.DrawFn, *, of_resource: bool) -> dict[str, Any]:
    element: dict[str, Any] = {
        "Effect": draw(st.sampled_from(["Allow", "Allow", "Deny"])),
        draw(st.sampled_from(["Action", "Action", "NotAction"])): draw(
            st.lists(_names, min_size=1, max_size=2)
        ),
        draw(st.sampled_from(["Resource", "Resource", "NotResource"])): draw(_arns),
    }
    if of_resource:
        element[draw(st.sampled_from(["Principal", "Principal", "NotPrincipal"]))] = draw(_principals)
    if draw(st.booleans()):
        element["Condition"] = draw(_conditions)
    return element


@st.composite
def _situations(draw: st.DrawFn) -> Situation:
    situation = Situation("drawn")
    for kind in ("resource", "identity", "boundary", "session"):
        if draw(st.booleans()):
            drawn = st.lists(_statements(of_resource=kind == "resource"), min_size=1, max_size=3)
            situation.policies[kind] = draw(drawn)
    situation.policy_decides = draw(st.booleans())
    situation.resource = draw(st.sampled_from([WORDS["orders"], WORDS["invoices"]]))
    situation.keys = draw(
        st.dictionaries(st.sampled_from(["aws:SourceArn", "aws:SourceAccount"]), _values, max_size=2)
    )
    return situation


@given(_situations(), st.sampled_from(CALLERS))
def test_two_evaluators_agree(situation: Situation, name: str) -> None:
    decision = decide(name, situation)
    assert decision.allowed is plain_answer(name, situation)
    assert decision.allowed or decision.reason("x")

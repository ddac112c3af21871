"""Condition keys: the ones whose value is known, and what policies get that ask about others."""

import logging

import pytest

from redrive.access.condition_keys import ABSENT, SUPPLIED, is_known
from redrive.access.policy import evaluate
from redrive.access.policy_document import CHARS_MAX, WILDCARDS_MAX, new_policy, stored_policy
from tests.access.documents import (
    OTHER,
    OWNER,
    QUEUE,
    ROOT,
    SNS,
    STRANGER,
    Document,
    allowed,
    ask,
    policy,
    statement,
)

UNKNOWN = ["aws:NobodyKnows", "sns:Nothing", "sqs:x", "ec2:Region", "aws:ResourceTag/team", "k"]
CONDITIONS: list[Document] = [
    {"StringEquals": {"{}": "x"}},
    {"StringNotEquals": {"{}": "x"}},
    {"StringEqualsIfExists": {"{}": "x"}},
    {"StringNotLike": {"{}": "x*"}},
    {"ForAllValues:StringEquals": {"{}": ["x"]}},
    {"ForAnyValue:StringNotEquals": {"{}": ["x"]}},
    {"Null": {"{}": "true"}},
    {"Null": {"{}": "false"}},
    {"Bool": {"{}": "false"}},
    {"NumericLessThan": {"{}": "1"}},
    {"StringEquals": {"aws:PrincipalAccount": "${{}}"}},
    {"StringNotEquals": {"aws:PrincipalAccount": "${{}}"}},
    {"StringNotEquals": {"aws:PrincipalAccount": "${{}, 'x'}"}},
]


def about(condition: Document, key: str) -> Document:
    """The condition, with the key in its place."""
    return {
        operator: {
            name.replace("{}", key): [
                each.replace("{}", key) for each in ([value] if isinstance(value, str) else value)
            ]
            for name, value in keys.items()
        }
        for operator, keys in condition.items()
    }


@pytest.mark.parametrize("key", UNKNOWN)
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_of_an_unknown_condition_key_deny_holds_and_allow_fails(condition: Document, key: str) -> None:
    asked = about(condition, key)
    for brought in ({}, {key: "x"}):
        assert not allowed(ask(STRANGER, keys=brought), statement(Condition=asked))
        assert not allowed(ask(ROOT, keys=brought), statement(), statement(Effect="Deny", Condition=asked))


def test_the_other_conditions_of_a_statement_still_count() -> None:
    elsewhere = {"StringEquals": {"aws:PrincipalAccount": OTHER, "aws:NobodyKnows": "x"}}
    deny = statement(Effect="Deny", Condition=elsewhere)
    assert allowed(ask(ROOT), deny)
    assert not allowed(ask(STRANGER), statement(), deny)


@pytest.mark.parametrize("resource", ["Resource", "NotResource"])
@pytest.mark.parametrize(
    "name", [f"{QUEUE}${{aws:NobodyKnows}}", f"{QUEUE}${{aws:NobodyKnows, ''}}", "${sqs:x}"]
)
def test_of_an_unnameable_resource_deny_holds_and_allow_fails(resource: str, name: str) -> None:
    named = {"Resource": None, resource: name}
    assert not allowed(ask(STRANGER), statement(**named))
    assert not allowed(ask(ROOT), statement(), statement(Effect="Deny", **named))


def test_a_resource_that_is_named_beside_it_is_allowed() -> None:
    assert allowed(ask(STRANGER), statement(Resource=["${aws:NobodyKnows}", QUEUE]))
    assert not allowed(ask(STRANGER), statement(Resource=["${aws:NobodyKnows}", f"{QUEUE}2"]))


def test_without_variables_their_form_is_text() -> None:
    literal = statement(Resource=[QUEUE, "${aws:NobodyKnows}"])
    assert allowed(ask(STRANGER), literal, version="2008-10-17")


@pytest.mark.parametrize("key", sorted(ABSENT | {"aws:principaltag/team"}))
def test_keys_of_what_does_not_exist_here_are_missing(key: str) -> None:
    """As at Amazon, for somebody with a key of an account outside organizations and private networks."""
    deny = {"Effect": "Deny", "Condition": {"StringNotEquals": {key: "x"}}}
    assert not allowed(ask(ROOT), statement(), statement(**deny))
    assert allowed(ask(ROOT), statement(), statement(Effect="Deny", Condition={"StringEquals": {key: "x"}}))
    assert not allowed(ask(STRANGER), statement(Condition={"StringEquals": {key: "x"}}))
    assert allowed(ask(STRANGER), statement(Condition={"Null": {key: "true"}}))


def test_keys_are_told_apart_in_lower_case() -> None:
    assert all(key == key.lower() and is_known(key) for key in SUPPLIED | ABSENT)
    assert not SUPPLIED & ABSENT
    assert not any(map(is_known, map(str.lower, UNKNOWN)))


def test_setting_a_policy_about_unknown_keys_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "redrive.access")
    new_policy(policy(statement(Condition={"Bool": {"aws:SecureTransport": "true"}})))
    assert not caplog.messages
    keys = dict.fromkeys(
        ["sns:Nothing", "aws:PrincipalOrgID", "a\nb", *(f"z{n}{'x' * 100}" for n in range(9))], "x"
    )
    new_policy(policy(statement(Condition={"StringEquals": keys}, Resource=f"{QUEUE}${{aws:NobodyKnows}}")))
    (line,) = caplog.messages
    assert line.startswith("policy.unknown_keys 'a\\nb', 'aws:nobodyknows', 'sns:nothing', 'z0xxx")
    assert len(line) < 400


# ---- policies that were stored when more was allowed -----------------------------------------------------------------

TOO_MUCH = {
    "too long": policy(statement(Sid="x" * CHARS_MAX)),
    "too many wildcards": policy(statement(Resource=[f"arn:aws:sqs:*:*:{n}*" for n in range(WILDCARDS_MAX)])),
    "no JSON": "{",
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_stored_policy_that_cannot_be_read_closes_its_resource(text: str) -> None:
    for principal in (ROOT, STRANGER, SNS):
        assert not evaluate(stored_policy(text), ask(principal, "sqs:SendMessage"), OWNER).allowed
    for action in (
        "sqs:GetQueueAttributes",
        "sqs:SetQueueAttributes",
        "sqs:DeleteQueue",
        "sns:SetTopicAttributes",
        "lambda:DeleteFunction",
    ):
        assert evaluate(stored_policy(text), ask(ROOT, action), OWNER).allowed
        assert not evaluate(stored_policy(text), ask(STRANGER, action), OWNER).allowed


def test_an_unreadable_policy_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "redrive.access")
    text = policy(statement(Sid="y" * CHARS_MAX))
    for _ in range(3):
        stored_policy(text)
    (line,) = caplog.messages
    assert line.startswith(
        f"policy.unreadable: must have at most {CHARS_MAX} characters; its resource is closed"
    )

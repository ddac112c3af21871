"""Decisions on a request: principals, actions and resources, and the order in which statements count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.policy import (
    AccessRequest,
    connection_keys,
    evaluate,
    request_keys,
    source_keys,
)
from redrive.access.policy_document import parse_policy
from redrive.access.principals import ANONYMOUS, Principal, account_root, service_principal
from tests.access.documents import (
    ANN,
    BOB,
    OTHER,
    OWNER,
    QUEUE,
    ROOT,
    SNS,
    STRANGER,
    TOPIC,
    Document,
    allowed,
    ask,
    decision,
    policy,
    statement,
)

# ---- whose resource it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "may"),
    [(ROOT, True), (ANN, True), (STRANGER, False), (SNS, False), (ANONYMOUS, False)],
)
def test_without_a_policy_the_owners_callers_may(principal: Principal, may: bool) -> None:
    answer = evaluate(None, ask(principal), OWNER)
    assert (answer.allowed, answer.explicit, answer.statement) == (may, False, None)


@pytest.mark.parametrize(("principal", "may"), [(ROOT, True), (STRANGER, False), (SNS, False)])
def test_a_policy_that_does_not_apply_changes_nothing(principal: Principal, may: bool) -> None:
    answer = decision(ask(principal), statement(Action="sqs:DeleteMessage"))
    assert (answer.allowed, answer.explicit) == (may, False)


def test_an_allow_lets_a_stranger_in_and_is_named() -> None:
    answer = decision(ask(), statement(Sid="no", Action="sqs:Purge*"), statement(Sid="yes"))
    assert (answer.allowed, answer.explicit) == (True, True)
    assert answer.statement is not None
    assert answer.statement.sid == "yes"


def test_a_deny_wins_wherever_it_stands_and_is_named() -> None:
    for principal in (ROOT, STRANGER):
        answer = decision(ask(principal), statement(Sid="yes"), statement(Sid="no", Effect="Deny"))
        assert (answer.allowed, answer.explicit) == (False, True)
        assert answer.statement is not None
        assert answer.statement.sid == "no"


# ---- principals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "reached"),
    [
        ("*", {ROOT, STRANGER, BOB, SNS, ANONYMOUS}),
        ({"AWS": "*"}, {ROOT, STRANGER, BOB, SNS, ANONYMOUS}),
        ({"AWS": OTHER}, {STRANGER, BOB}),
        ({"AWS": f"arn:aws:iam::{OTHER}:root"}, {STRANGER, BOB}),
        ({"AWS": f"arn:aws:iam::{OTHER}:user/bob"}, {BOB}),
        ({"AWS": f"arn:aws:iam::{OTHER}:user/alice"}, set()),
        ({"AWS": [OWNER, f"arn:aws:iam::{OTHER}:user/bob"]}, {ROOT, BOB}),
        ({"AWS": "AIDAEXAMPLEOFADELETEDUSER"}, set()),
        ({"Service": "sns.amazonaws.com"}, {SNS}),
        ({"Service": "sns.us-east-1.amazonaws.com"}, {SNS}),
        ({"Service": "sns.eu-south-1.amazonaws.com"}, set()),
        ({"Service": ["s3.amazonaws.com", "sns.amazonaws.com"]}, {SNS}),
        ({"Service": "*"}, {SNS}),
        ({"Service": "s3.amazonaws.com"}, set()),
        ({"AWS": OTHER, "Service": "sns.amazonaws.com"}, {STRANGER, BOB, SNS}),
        ({"Federated": "cognito-identity.amazonaws.com"}, set()),
        ({"Federated": "*"}, set()),
        ({"CanonicalUser": "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be"}, set()),
    ],
)
def test_a_statement_applies_to_its_principals_alone(element: object, reached: set[Principal]) -> None:
    everybody = [ROOT, STRANGER, BOB, SNS, ANONYMOUS]
    for principal in everybody:
        applies = decision(ask(principal), statement(Principal=element)).explicit
        excepted = decision(ask(principal), statement(Principal=None, NotPrincipal=element)).explicit
        assert applies is (principal in reached)
        assert excepted is not applies


def test_principals_are_the_same_value_each_time() -> None:
    assert account_root(OWNER) == account_root(OWNER)
    assert account_root(OWNER) != account_root(OTHER)
    assert (ROOT.name, ROOT.account) == (f"arn:aws:iam::{OWNER}:root", OWNER)
    assert (BOB.name, BOB.account) == (f"arn:aws:iam::{OTHER}:user/bob", OTHER)
    assert (SNS.name, SNS.account) == ("sns.amazonaws.com", "")


# ---- actions and resources --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "applies"),
    [
        ("sqs:SendMessage", True),
        ("SQS:SendMessage", True),
        ("sqs:sendmessage", True),
        ("sqs:*", True),
        ("sqs:Send*", True),
        ("sqs:SendMessag?", True),
        ("*", True),
        ("*:*", True),
        (["sqs:DeleteMessage", "SQS:SendMessage"], True),
        ("sqs:ReceiveMessage", False),
        ("sqs:SendMessage?", False),
        ("sns:*", False),
        (["sqs:DeleteMessage", "sqs:Receive*"], False),
    ],
)
def test_a_statement_applies_to_its_actions_alone(element: object, applies: bool) -> None:
    assert allowed(ask(), statement(Action=element)) is applies
    assert allowed(ask(), statement(Action=None, NotAction=element)) is not applies


@pytest.mark.parametrize(
    ("element", "applies"),
    [
        (QUEUE, True),
        ("*", True),
        ("arn:aws:sqs:*", True),
        ("arn:aws:sqs:us-east-1:*:ord*", True),
        (f"arn:aws:sqs:us-east-1:{OWNER}:*", True),
        ([TOPIC, QUEUE], True),
        (f"arn:aws:sqs:*:{OWNER}:order", False),
        ("arn:aws:sqs:*:orders", False),
        (QUEUE.upper(), False),
        (TOPIC, False),
    ],
)
def test_a_statement_applies_to_its_resources_alone(element: object, applies: bool) -> None:
    assert allowed(ask(), statement(Resource=element)) is applies
    assert allowed(ask(), statement(Resource=None, NotResource=element)) is not applies


# ---- what is known of a request ---------------------------------------------------------------------------


def _sns_may_send(**condition: object) -> Document:
    return statement(
        Principal={"Service": "sns.amazonaws.com"}, Action="sqs:SendMessage", Condition=condition or None
    )


@pytest.mark.parametrize("operator", ["ArnEquals", "ArnLike", "StringEquals", "StringLike"])
@pytest.mark.parametrize("principal", [{"Service": "sns.amazonaws.com"}, {"AWS": "*"}, "*"])
def test_a_topic_may_send_to_a_queue_in_every_documented_spelling(operator: str, principal: object) -> None:
    """The queue policy of the SNS documents, and the console's older one for everybody."""
    spelled = statement(
        Principal=principal, Action="SQS:SendMessage", Condition={operator: {"aws:SourceArn": TOPIC}}
    )
    keys = source_keys(arn=TOPIC, account=OWNER)
    assert allowed(ask(SNS, keys=keys), spelled)
    assert not allowed(ask(SNS, keys=source_keys(arn=TOPIC + "2", account=OWNER)), spelled)
    assert not allowed(ask(SNS), spelled)
    assert not allowed(ask(SNS, "sqs:ReceiveMessage", keys=keys), spelled)
    assert not allowed(ask(STRANGER), spelled)


def test_a_topics_default_policy_means_its_owner() -> None:
    default = statement(
        Principal={"AWS": "*"},
        Action=["SNS:Publish", "SNS:Subscribe"],
        Resource=TOPIC,
        Condition={"StringEquals": {"AWS:SourceOwner": OWNER}},
    )
    assert decision(ask(ROOT, "sns:Publish", TOPIC), default).explicit
    assert not allowed(ask(STRANGER, "sns:Publish", TOPIC), default)
    alarm = ask(
        service_principal("cloudwatch", "us-east-1"),
        "sns:Publish",
        TOPIC,
        source_keys(arn="a", account=OWNER),
    )
    assert allowed(alarm, default)


@pytest.mark.parametrize(
    ("principal", "condition", "holds"),
    [
        (BOB, {"StringEquals": {"aws:PrincipalArn": f"arn:aws:iam::{OTHER}:user/bob"}}, True),
        (BOB, {"StringEquals": {"aws:username": "bob"}}, True),
        (BOB, {"StringEquals": {"aws:PrincipalAccount": OTHER}}, True),
        (BOB, {"StringEquals": {"aws:PrincipalType": "User"}}, True),
        (STRANGER, {"StringEquals": {"aws:PrincipalType": "Account"}}, True),
        (STRANGER, {"Null": {"aws:username": "true"}}, True),
        (STRANGER, {"Bool": {"aws:PrincipalIsAWSService": "false"}}, True),
        (SNS, {"Bool": {"aws:PrincipalIsAWSService": "true"}}, True),
        (SNS, {"StringEquals": {"aws:PrincipalServiceName": "sns.amazonaws.com"}}, True),
        (SNS, {"StringEquals": {"aws:PrincipalAccount": OTHER}}, False),
        (ANONYMOUS, {"Null": {"aws:PrincipalAccount": "true"}}, True),
        (ANONYMOUS, {"StringEquals": {"aws:PrincipalType": "Anonymous"}}, True),
    ],
)
def test_keys_that_follow_from_the_principal(principal: Principal, condition: object, holds: bool) -> None:
    assert allowed(ask(principal), statement(Condition=condition)) is holds


def test_a_request_cannot_say_who_its_principal_is() -> None:
    mine = statement(Condition={"StringEquals": {"aws:PrincipalAccount": OWNER}})
    assert not allowed(ask(STRANGER, keys={"aws:PrincipalAccount": OWNER}), mine)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"Bool": {"aws:SecureTransport": "true"}}, True),
        ({"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}, True),
        ({"NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"}}, False),
        ({"DateGreaterThan": {"aws:CurrentTime": "2015-08-30T12:35:59Z"}}, True),
        ({"DateLessThan": {"aws:CurrentTime": "2015-08-30T12:36:00Z"}}, False),
        ({"NumericEquals": {"aws:EpochTime": "1440938160"}}, True),
        ({"StringLike": {"aws:CurrentTime": "2015-08-30T*"}}, True),
    ],
)
def test_keys_that_follow_from_the_connection(condition: object, holds: bool) -> None:
    keys = connection_keys(client_host="192.0.2.7", secure=True, now=1_440_938_160_999)
    assert allowed(ask(keys=keys), statement(Condition=condition)) is holds


def test_a_services_own_keys_pass_through_in_any_case() -> None:
    mail = statement(Condition={"StringLike": {"SNS:Endpoint": "*@example.com"}})
    assert allowed(ask(keys={"sns:ENDPOINT": "ann@example.com"}), mail)
    assert request_keys({"A": "1"}, {"a": "2"}) == {"a": "2"}


@pytest.mark.parametrize(("version", "holds"), [("2012-10-17", True), ("2008-10-17", False)])
def test_variables_are_filled_in_since_2012(version: str, holds: bool) -> None:
    own = statement(
        Resource="arn:aws:sqs:us-east-1:*:${aws:PrincipalAccount}-*",
        Condition={"StringEquals": {"aws:SourceAccount": "${aws:PrincipalAccount}"}},
    )
    request = ask(
        STRANGER,
        resource=f"arn:aws:sqs:us-east-1:{OWNER}:{OTHER}-inbox",
        keys={"aws:SourceAccount": OTHER},
    )
    assert allowed(request, own, version=version) is holds
    assert not allowed(ask(STRANGER, resource=f"arn:aws:sqs:us-east-1:{OWNER}:x-inbox"), own, version=version)


# ---- laws -------------------------------------------------------------------------------------------------

_statements = st.fixed_dictionaries(
    {
        "Effect": st.sampled_from(["Allow", "Deny"]),
        "Principal": st.sampled_from(
            [
                "*",
                {"AWS": OTHER},
                {"AWS": [f"arn:aws:iam::{OTHER}:user/bob"]},
                {"Service": "sns.amazonaws.com"},
            ]
        ),
        "Action": st.sampled_from(["*", "sqs:*", "SQS:SendMessage", ["sqs:ReceiveMessage", "sns:Publish"]]),
        "Resource": st.sampled_from(["*", QUEUE, "arn:aws:sqs:*", [TOPIC, QUEUE]]),
    },
    optional={
        "Condition": st.sampled_from(
            [
                {"ArnEquals": {"aws:SourceArn": TOPIC}},
                {"StringNotEquals": {"aws:PrincipalAccount": OTHER}},
                {"BoolIfExists": {"aws:SecureTransport": "true"}},
                {"Null": {"aws:SourceArn": "false"}},
            ]
        )
    },
)
_requests = st.builds(
    ask,
    st.sampled_from([ROOT, STRANGER, BOB, SNS, ANONYMOUS]),
    st.sampled_from(["sqs:SendMessage", "sqs:ReceiveMessage", "sns:Publish"]),
    st.sampled_from([QUEUE, TOPIC]),
    st.sampled_from([{}, {"aws:SourceArn": TOPIC}, {"aws:SecureTransport": "false"}]),
)
_policies = st.lists(_statements, min_size=1, max_size=5)


@given(_policies, st.lists(_statements, max_size=2), _requests)
def test_more_allows_never_take_access_away(
    statements: list[Document], more: list[Document], request_: AccessRequest
) -> None:
    before = allowed(request_, *statements)
    after = allowed(request_, *statements, *({**one, "Effect": "Allow"} for one in more))
    assert after >= before


@given(_policies, st.lists(_statements, max_size=2), _requests)
def test_more_denies_never_give_access(
    statements: list[Document], more: list[Document], request_: AccessRequest
) -> None:
    before = allowed(request_, *statements)
    after = allowed(request_, *({**one, "Effect": "Deny"} for one in more), *statements)
    assert after <= before


@given(_policies, _requests)
def test_a_deny_that_applies_wins(statements: list[Document], request_: AccessRequest) -> None:
    denials = [{**one, "Effect": "Allow"} for one in statements if one["Effect"] == "Deny"]
    if denials and decision(request_, *denials).explicit:
        assert not allowed(request_, *statements)


@given(_policies, _requests)
def test_the_order_of_statements_does_not_matter(statements: list[Document], request_: AccessRequest) -> None:
    assert allowed(request_, *statements) is allowed(request_, *reversed(statements))


@given(_policies, _requests)
def test_the_same_text_is_the_same_policy(statements: list[Document], request_: AccessRequest) -> None:
    text = policy(*statements)
    assert parse_policy(text) is parse_policy(text)
    assert evaluate(parse_policy(text), request_, OWNER) == evaluate(parse_policy(text), request_, OWNER)

"""Reading policies: what is taken, and what is refused and why."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy import Decision, evaluate
from redrive.access.policy_document import parse_policy
from redrive.model.errors import RedriveError
from tests.access.documents import OTHER, OWNER, QUEUE, TOPIC, ask, policy, statement

# The policy of the SNS document on fanning out to queues, as people paste it.
_SNS_TO_SQS = f"""{{
  "Version": "2012-10-17",
  "Id": "fan-out",
  "Statement": {{
    "Sid": "topic-may-send",
    "Effect": "Allow",
    "Principal": {{ "Service": "sns.amazonaws.com" }},
    "Action": "sqs:SendMessage",
    "Resource": "{QUEUE}",
    "Condition": {{ "ArnEquals": {{ "aws:SourceArn": "{TOPIC}" }} }}
  }}
}}"""


def test_reads_one_statement_without_a_list() -> None:
    read = parse_policy(_SNS_TO_SQS)
    assert (read.id, read.version, [one.sid for one in read.statements]) == (
        "fan-out",
        "2012-10-17",
        ["topic-may-send"],
    )


def test_denials_come_first() -> None:
    read = parse_policy(policy(statement(Sid="a"), statement(Sid="b", Effect="Deny"), statement(Sid="c")))
    assert [one.sid for one in read.statements] == ["b", "a", "c"]


def test_a_policy_without_a_version_is_the_old_one() -> None:
    assert parse_policy(json.dumps({"Statement": [statement()]})).version == "2008-10-17"


@pytest.mark.parametrize(
    ("actions", "services"),
    [
        (["SNS:Publish", "sns:Subscribe"], {"sns"}),
        (["sns:Publish", "sqs:SendMessage"], {"sns", "sqs"}),
        ("*", {"*"}),
        ("s*:SendMessage", {"*"}),
    ],
)
def test_says_which_services_it_is_about(actions: object, services: set[str]) -> None:
    assert parse_policy(policy(statement(Action=actions))).services == services
    assert parse_policy(policy(statement(Action=None, NotAction=actions))).services == services


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 30_000, "not JSON"),
        ('{"Statement": ' + "9" * 5000 + "}", "not JSON"),
        ("null", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('{"Version": NaN}', "NaN is not JSON"),
        ('{"Version": "2012-10-17", "Version": "2008-10-17"}', "an element occurs twice in one object"),
        ("{}", "Statement 1: must be an object"),
        ('{"Statement": []}', "Statement must not be empty"),
        ('{"Statement": "Allow"}', "Statement 1: must be an object"),
        ('{"Version": "2012-10-18", "Statement": []}', "Version must be one of 2008-10-17, 2012-10-17"),
        ('{"Version": 2012, "Statement": []}', "Version must be a string"),
        ('{"Statements": []}', "unknown element 'Statements'"),
    ],
)
def test_refuses_what_is_no_policy(text: str, reason: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text)
    assert refused.value.reason == reason
    assert isinstance(refused.value, RedriveError)


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ({"Effect": "allow"}, "Effect must be Allow or Deny"),
        ({"Effect": None}, "Effect must be Allow or Deny"),
        ({"Effect": ["Allow"]}, "Effect must be Allow or Deny"),
        ({"Conditions": {}}, "unknown element 'Conditions'"),
        ({"Sid": 7}, "Sid must be a string"),
        ({"Principal": None}, "needs either Principal or NotPrincipal"),
        ({"NotPrincipal": "*"}, "needs either Principal or NotPrincipal"),
        ({"Principal": "somebody"}, "Principal must be '*' or an object"),
        ({"Principal": {}}, "Principal must be '*' or an object"),
        ({"Principal": {"aws": "*"}}, "unknown element 'aws'"),
        ({"Principal": {"AWS": []}}, "Principal AWS must be a string or a list of strings"),
        ({"Principal": {"AWS": "bob"}}, "'bob' is not an AWS principal"),
        ({"Principal": {"AWS": "12345678901"}}, "'12345678901' is not an AWS principal"),
        (
            {"Principal": {"AWS": f"arn:aws:iam::{OTHER}:user/*"}},
            f"'arn:aws:iam::{OTHER}:user/*' is not an AWS principal",
        ),
        ({"Action": None}, "needs either Action or NotAction"),
        ({"NotAction": "sqs:*"}, "needs either Action or NotAction"),
        ({"Action": "SendMessage"}, "'SendMessage' is not an action"),
        ({"Action": "sqs:Send Message"}, "'sqs:Send Message' is not an action"),
        ({"Action": []}, "Action must be a string or a list of strings"),
        ({"Action": ["sqs:*", 1]}, "Action must be a string or a list of strings"),
        ({"Resource": None}, "needs either Resource or NotResource"),
        ({"Resource": {}}, "Resource must be a string or a list of strings"),
        ({"Resource": "${}"}, "'${}' is not a policy variable"),
        ({"Condition": []}, "Condition must be an object"),
        ({"Condition": {"Equals": {"k": "v"}}}, "Condition Equals of 'k': no such operator"),
    ],
)
def test_refuses_a_statement_it_does_not_understand(elements: dict[str, object], reason: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(policy(statement(), statement(**elements)))
    assert refused.value.reason == f"Statement 2: {reason}"


def test_a_sid_stands_once() -> None:
    with pytest.raises(PolicyInvalid, match="Sid must be unique within a policy"):
        parse_policy(policy(statement(Sid="a"), statement(Sid="a")))
    assert len(parse_policy(policy(statement(), statement())).statements) == 2


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
_words = st.sampled_from(
    ["*", "Allow", "Deny", "sqs:*", "2012-10-17", OWNER, QUEUE, "sns.amazonaws.com", "${aws:username}", "true", "1"]
)  # fmt: skip
_values = st.one_of(_words, st.lists(_words, max_size=3), _json)
_blocks = st.dictionaries(
    st.sampled_from(
        ["StringLike", "ForAllValues:ArnLike", "DateLessThan", "IpAddress", "Null", "NumericEquals", "x"]
    ),
    st.one_of(
        st.dictionaries(st.sampled_from(["aws:SourceArn", "aws:username"]), _values, max_size=2), _json
    ),
    max_size=3,
)
_statement = st.fixed_dictionaries(
    {"Effect": st.one_of(_words, _json)},
    optional={
        "Sid": _values,
        "Principal": st.one_of(
            _values, st.dictionaries(st.sampled_from(["AWS", "Service", "Federated"]), _values)
        ),
        "Action": _values,
        "NotAction": _values,
        "Resource": _values,
        "Condition": st.one_of(_blocks, _json),
    },
)
_document = st.fixed_dictionaries(
    {"Statement": st.one_of(_statement, st.lists(_statement, max_size=3), _json)},
    optional={"Version": _values, "Id": _values, "Nonsense": _json},
)


@given(st.one_of(st.text(), _json.map(json.dumps), _document.map(json.dumps)))
def test_reading_ends_in_a_policy_or_a_refusal(text: str) -> None:
    request = ask(keys={"aws:SourceArn": TOPIC, "aws:username": "bob"})
    with contextlib.suppress(PolicyInvalid):
        assert isinstance(evaluate(parse_policy(text), request, OWNER), Decision)

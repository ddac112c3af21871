"""Data-protection policies: which are taken, which are refused, and in what words."""

import json
from typing import Any

import pytest

from redrive.aws.sns.protection.reader import ProtectionPolicyInvalid, read_protection_policy
from tests.aws.sns.stage import Stage, invalid

ARN = "arn:aws:dataprotection::aws:data-identifier/"
LOGS = {"CloudWatchLogs": {"LogGroup": "/aws/vendedlogs/findings"}}
STATEMENT: dict[str, Any] = {
    "DataDirection": "Inbound",
    "Principal": ["*"],
    "DataIdentifier": [f"{ARN}EmailAddress"],
    "Operation": {"Deny": {}},
}
AUDIT = {"Audit": {"SampleRate": "99", "FindingsDestination": LOGS}}


def policy(*statements: dict[str, Any], **others: Any) -> str:
    """A policy of these statements, each with what STATEMENT has besides."""
    document = {"Name": "p", "Version": "2021-06-01", "Statement": [STATEMENT | one for one in statements]}
    return json.dumps(document | others)


def custom(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"CustomDataIdentifier": [{"Name": name, "Regex": regex} for name, regex in pairs]}


_TAKEN = [
    policy({}),
    policy({"Sid": "s"}, Description="d"),
    policy({"DataDirection": "Outbound"}, {"Operation": {"Deidentify": {"RedactConfig": {}}}}),
    policy({"Operation": {"Deidentify": {"MaskConfig": {"MaskWithCharacter": "\\"}}}}),
    policy({"Operation": AUDIT}),
    policy({"Operation": {"Audit": {"SampleRate": 0, "NoFindingsDestination": {}}}}),
    policy(
        {"Principal": ["123456789012", "arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:user/u"]}
    ),
    policy({"Principal": ["arn:aws:sts::123456789012:assumed-role/r/s"]}),
    policy({"DataIdentifier": ["arn:aws-cn:dataprotection::aws:data-identifier/PhoneNumber"]}),
    policy({"DataIdentifier": ["EmployeeId"]}, Configuration=custom(("EmployeeId", r"EID-\d{9}-US"))),
    policy({}, Configuration=custom(*[(f"c{number}", "a") for number in range(10)])),
    policy({}, Configuration={}),
]

_STATEMENT = "Statement must be a list of objects"
_OPERATION = "Statement Operation must be one of Audit, Deidentify, Deny"
_MASK = "Statement Operation Deidentify MaskConfig"
_AUDIT = "Statement Operation Audit"
_GROUP = f"{_AUDIT} FindingsDestination CloudWatchLogs LogGroup"
_CUSTOM = "Configuration CustomDataIdentifier"
_TEN = f"{_CUSTOM} must be a list of at most 10 objects"


def _deidentify(settings: Any) -> str:
    return policy({"Operation": {"Deidentify": settings}})


def _audit(**settings: Any) -> str:
    return policy({"Operation": {"Audit": {"SampleRate": "1", "FindingsDestination": LOGS} | settings}})


def _logs(group: str) -> dict[str, Any]:
    return {"CloudWatchLogs": {"LogGroup": group}}


_REFUSED = [
    ("x", "must be a JSON object of at most 30720 bytes"),
    ("[]", "must be a JSON object of at most 30720 bytes"),
    (policy({}, Description="x" * 30_720), "must be a JSON object of at most 30720 bytes"),
    (policy({}, Name=""), "Name must be a string that is not empty"),
    (policy({}, Description=1), "Description must be a string that is not empty"),
    (policy({}, Version="2012-10-17"), "Version must be 2021-06-01"),
    (policy({}, Id="x"), "Id is unknown"),
    (policy(), "Statement must be a list that is not empty"),
    (policy(Statement={}), "Statement must be a list that is not empty"),
    (policy(Statement=[1]), _STATEMENT),
    (policy(*[{}] * 101), "Statement must have 100 elements at most"),
    (policy({"DataDirection": "Inbxound"}), "Statement DataDirection must be either Inbound or Outbound"),
    (policy({"Effect": "Allow"}), "Statement Effect is unknown"),
    (policy({"Sid": 1}), "Statement Sid must be a string that is not empty"),
    (policy({"Principal": "*"}), "Statement Principal must be a list of strings that is not empty"),
    (policy({"Principal": []}), "Statement Principal must be a list of strings that is not empty"),
    (policy({"Principal": ["me"]}), "Statement Principal me is none"),
    (policy({"DataIdentifier": []}), "Statement DataIdentifier must be a list of strings that is not empty"),
    (policy({"DataIdentifier": ["x"]}), "Statement DataIdentifier x does not exist"),
    (policy({"DataIdentifier": [f"{ARN}x"]}), f"Statement DataIdentifier {ARN}x does not exist"),
    (
        policy({"DataIdentifier": [f"{ARN}Name"]}),
        f"Statement DataIdentifier {ARN}Name is not supported by this server, which finds patterns only",
    ),
    (
        policy({"DataIdentifier": [f"{ARN}Address"]}),
        f"Statement DataIdentifier {ARN}Address is not supported by this server, which finds patterns only",
    ),
    (policy({"Operation": None}), _OPERATION),
    (policy({"Operation": {}}), _OPERATION),
    (policy({"Operation": {"Deny": {}} | AUDIT}), _OPERATION),
    (policy({"Operation": {"Allow": {}}}), _OPERATION),
    (policy({"Operation": {"Deny": 1}}), "Statement Operation Deny must be an object"),
    (policy({"Operation": {"Deny": {"x": 1}}}), "Statement Operation Deny x is unknown"),
    (_deidentify({}), "Statement Operation Deidentify must have either MaskConfig or RedactConfig"),
    (_deidentify({"MaskConfig": {}}), f"{_MASK} MaskWithCharacter must be a string that is not empty"),
    (
        _deidentify({"MaskConfig": {"MaskWithCharacter": "##"}}),
        f"{_MASK} MaskWithCharacter is not a supported character",
    ),
    (
        _deidentify({"MaskConfig": {"MaskWithCharacter": '"'}}),
        f"{_MASK} MaskWithCharacter is not a supported character",
    ),
    (_deidentify({"RedactConfig": {"x": 1}}), "Statement Operation Deidentify RedactConfig x is unknown"),
    (_audit(SampleRate="100"), f"{_AUDIT} SampleRate must be an integer between 0 and 99"),
    (_audit(SampleRate=True), f"{_AUDIT} SampleRate must be an integer between 0 and 99"),
    (_audit(SampleRate=-1), f"{_AUDIT} SampleRate must be an integer between 0 and 99"),
    (
        policy({"Operation": {"Audit": {"SampleRate": 1}}}),
        f"{_AUDIT} must have a FindingsDestination or a NoFindingsDestination",
    ),
    (
        _audit(FindingsDestination={"S3": {}}),
        f"{_AUDIT} FindingsDestination S3 is not supported by this server",
    ),
    (
        _audit(NoFindingsDestination={"Firehose": {}}),
        f"{_AUDIT} NoFindingsDestination Firehose is not supported by this server",
    ),
    (
        _audit(FindingsDestination=_logs("findings")),
        f"{_GROUP} must be a log group's name that begins with /aws/vendedlogs/",
    ),
    (
        _audit(FindingsDestination=_logs("/aws/vendedlogs/a b")),
        f"{_GROUP} must be a log group's name that begins with /aws/vendedlogs/",
    ),
    (policy({"Operation": AUDIT, "DataDirection": "Outbound"}), f"{_AUDIT} must be Inbound"),
    (policy({"Operation": AUDIT}, {"Operation": AUDIT}), "only one Statement can have an Audit operation"),
    (policy({}, Configuration=1), "Configuration must be an object"),
    (policy({}, Configuration={"x": 1}), "Configuration x is unknown"),
    (policy({}, Configuration={"CustomDataIdentifier": {}}), _TEN),
    (policy({}, Configuration={"CustomDataIdentifier": [1]}), _TEN),
    (policy({}, Configuration=custom(*[(f"c{number}", "a") for number in range(11)])), _TEN),
    (
        policy({}, Configuration={"CustomDataIdentifier": [{"Name": "x"}]}),
        f"{_CUSTOM} Regex must be a string that is not empty",
    ),
    (
        policy({}, Configuration=custom(("x", "a"), ("x", "b"))),
        f"{_CUSTOM} Name x is the name of another data identifier",
    ),
    (
        policy({}, Configuration=custom(("Name", "a"))),
        f"{_CUSTOM} Name Name is the name of another data identifier",
    ),
    (policy({}, Configuration=custom(("x", "a["))), f"{_CUSTOM} Regex of x is not a regular expression"),
]


@pytest.mark.parametrize("text", _TAKEN)
def test_a_policy_is_taken(text: str) -> None:
    assert read_protection_policy(text).statements


@pytest.mark.parametrize(("text", "reason"), _REFUSED)
def test_a_policy_that_cannot_be_carried_out_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ProtectionPolicyInvalid) as refused:
        read_protection_policy(text)
    assert str(refused.value) == reason


async def test_a_policy_is_given_back_as_it_was_put(stage: Stage) -> None:
    text = f" {policy({})} "
    arn = (await stage.call("CreateTopic", Name="t", DataProtectionPolicy=text))["TopicArn"]
    assert await stage.call("GetDataProtectionPolicy", ResourceArn=arn) == {"DataProtectionPolicy": text}
    await stage.call("PutDataProtectionPolicy", ResourceArn=arn, DataProtectionPolicy="")
    assert await stage.call("GetDataProtectionPolicy", ResourceArn=arn) == {"DataProtectionPolicy": ""}


async def test_a_refused_policy_changes_nothing(stage: Stage) -> None:
    arn = (await stage.call("CreateTopic", Name="t", DataProtectionPolicy=policy({})))["TopicArn"]
    with invalid("DataProtectionPolicy Reason: Version must be 2021-06-01"):
        await stage.call(
            "PutDataProtectionPolicy", ResourceArn=arn, DataProtectionPolicy=policy({}, Version="1")
        )
    with invalid("DataProtectionPolicy Reason: Version must be 2021-06-01"):
        await stage.call("CreateTopic", Name="u", DataProtectionPolicy=policy({}, Version="1"))
    assert await stage.call("GetDataProtectionPolicy", ResourceArn=arn) == {
        "DataProtectionPolicy": policy({})
    }
    assert len((await stage.call("ListTopics"))["Topics"]) == 1


async def test_a_topic_made_again_keeps_its_policy_or_is_refused_another(stage: Stage) -> None:
    made = await stage.call("CreateTopic", Name="t", DataProtectionPolicy=policy({}))
    assert await stage.call("CreateTopic", Name="t", DataProtectionPolicy=policy({})) == made
    assert await stage.call("CreateTopic", Name="t") == made
    with invalid("DataProtectionPolicy Reason: Topic already exists with a different one"):
        await stage.call("CreateTopic", Name="t", DataProtectionPolicy=policy({}, Name="q"))


async def test_a_data_protection_policy_for_a_fifo_topic_is_refused(stage: Stage) -> None:
    arn = await stage.topic("t.fifo")
    with invalid("DataProtectionPolicy Reason: FIFO topics cannot have one"):
        await stage.call("PutDataProtectionPolicy", ResourceArn=arn, DataProtectionPolicy=policy({}))
    await stage.call("PutDataProtectionPolicy", ResourceArn=arn, DataProtectionPolicy="")

"""The condition keys that a resource's policy is told of a call."""

from typing import Any

import orjson
import pytest

from redrive.access.condition_keys import SUPPLIED
from redrive.access.principals import account_root
from redrive.aws.kit.call import Call
from redrive.model.http import Request

OWNER, OTHER = "111111111111", "222222222222"
QUEUE = f"arn:aws:sqs:eu-west-1:{OWNER}:orders"
HEADERS = {"host": "localhost", "user-agent": "Boto3/1.44", "referer": "https://corp.example/"}
#: What each key says of the call below.
TOLD = {
    "aws:CurrentTime": "2015-08-30T12:36:00Z",
    "aws:EpochTime": "1440938160",
    "aws:PrincipalAccount": OTHER,
    "aws:PrincipalArn": f"arn:aws:iam::{OTHER}:root",
    "aws:PrincipalIsAWSService": "false",
    "aws:PrincipalType": "Account",
    "aws:Referer": "https://corp.example/",
    "aws:RequestedRegion": "eu-west-1",
    "aws:ResourceAccount": OWNER,
    "aws:SecureTransport": "true",
    "aws:SourceIp": "192.0.2.7",
    "aws:SourceOwner": OTHER,
    "aws:UserAgent": "Boto3/1.44",
    "aws:ViaAWSService": "false",
    "aws:userid": OTHER,
    "sns:Endpoint": "https://corp.example/hook",
    "sns:Protocol": "https",
}
#: Of a service's calls, a user's, a role's; of roles that are assumed and handed on, and of functions' URLs.
NOT_OF_A_ROOT = {
    *("aws:principalservicename", "aws:sourceaccount", "aws:sourcearn"),
    *("aws:username", "aws:sourceidentity", "aws:tokenissuetime"),
    *("sts:externalid", "sts:rolesessionname", "sts:sourceidentity", "iam:passedtoservice"),
    *("iam:awsservicename", "iam:permissionsboundary", "iam:policyarn"),
    *("lambda:functionurlauthtype", "lambda:invokedviafunctionurl"),
}


def may(condition: dict[str, Any], headers: dict[str, str] = HEADERS) -> bool:
    request = Request("POST", "/", "", headers, b"", scheme="https", client_host="192.0.2.7")
    call = Call(request, account_root(OTHER), "eu-west-1", 1_440_938_160_999, "id", "https://localhost")
    stated = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*", "Condition": condition}
    own = {"sns:protocol": "https", "sns:endpoint": "https://corp.example/hook"}
    return call.may("sqs:SendMessage", QUEUE, OWNER, orjson.dumps({"Statement": stated}).decode(), own)


@pytest.mark.parametrize("key", TOLD)
def test_a_policy_is_told(key: str) -> None:
    assert may({"StringEquals": {key: TOLD[key]}})
    assert not may({"StringNotEquals": {key: TOLD[key]}})


def test_condition_keys_without_a_header_are_missing() -> None:
    assert may({"Null": {"aws:UserAgent": "true", "aws:Referer": "true"}}, {"host": "localhost"})


def test_every_key_that_is_said_to_be_supplied_is() -> None:
    assert {key.lower() for key in TOLD} == SUPPLIED - NOT_OF_A_ROOT

"""KMS as boto3 speaks it: keys, their policies, and refusals."""

import json
from typing import Any

from tests.contracts.aws.clients import client
from tests.services.clients import Client
from tests.services.server import Server

ACCOUNT = "000000000000"
OTHER = "111111111111"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
UNKNOWN = "12345678-1234-1234-1234-123456789012"
DAY = 86_400


def kms_of(server: Server, account: str = ACCOUNT, region: str = "us-east-1") -> Client:
    """A client for an account; with authentication off an access key of twelve digits is the account."""
    return client(server.url, "kms", "json", account, region)


def new_key(kms: Client, **params: Any) -> str:
    """The ARN of a new key."""
    arn: str = kms.create_key(**params)["KeyMetadata"]["Arn"]
    return arn


def metadata(kms: Client, key: str) -> dict[str, Any]:
    shown: dict[str, Any] = kms.describe_key(KeyId=key)["KeyMetadata"]
    return shown


def policy(*statements: dict[str, Any], owner: str = ROOT) -> str:
    """A key policy: its owner administers the key, and what the statements say."""
    administers = {
        "Sid": "owner",
        "Effect": "Allow",
        "Principal": {"AWS": owner},
        "NotAction": ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
        "Resource": "*",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [administers, *statements]})


def allow(principal: object, *actions: str, **others: Any) -> dict[str, Any]:
    """A statement that allows."""
    return {"Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": "*", **others}

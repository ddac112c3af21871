"""STS: who the caller is, which Terraform, the CDK and most scripts ask first."""

from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config

from tests.services.server import Server

_CONFIG = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30)


def identity(server: Server, key_id: str) -> dict[str, Any]:
    session = boto3.Session(aws_access_key_id=key_id, aws_secret_access_key="secret", region_name="us-east-1")
    answer: dict[str, Any] = session.client(
        "sts", endpoint_url=server.url, config=_CONFIG
    ).get_caller_identity()
    assert answer.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    return answer


@pytest.mark.parametrize(
    ("key_id", "account"), [("123456789012", "123456789012"), ("AKIAIOSFODNN7EXAMPLE", "000000000000")]
)
def test_the_caller_is_the_account_of_the_access_key(server: Server, key_id: str, account: str) -> None:
    assert identity(server, key_id) == {
        "UserId": account,
        "Account": account,
        "Arn": f"arn:aws:iam::{account}:root",
    }

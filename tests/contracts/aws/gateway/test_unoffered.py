"""A service or an operation that Redrive does not offer: one clear sentence, in the form of the protocol asked in."""

from typing import Any
from xml.etree import ElementTree as ET

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from redrive.aws.services import FOLDERS
from tests.services.server import Server

*_OTHERS, _LAST = sorted(FOLDERS)
OFFERED = f"{', '.join(_OTHERS)} and {_LAST}"
_CONFIG = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30)


def client(server: Server, service: str) -> Any:
    session = boto3.Session(
        aws_access_key_id="123456789012", aws_secret_access_key="secret", region_name="eu-west-1"
    )
    return session.client(service, endpoint_url=server.url, config=_CONFIG)


def refusal(server: Server, service: str, operation: str, **params: Any) -> tuple[str, str, int]:
    with pytest.raises(ClientError) as caught:
        getattr(client(server, service), operation)(**params)
    error, metadata = caught.value.response["Error"], caught.value.response["ResponseMetadata"]
    return error["Code"], error.get("Message", ""), metadata["HTTPStatusCode"]


@pytest.mark.parametrize(
    ("service", "operation", "called", "code", "status"),
    [
        ("dynamodb", "list_tables", "dynamodb ListTables", "UnknownOperationException", 400),  # JSON 1.0
        ("events", "list_rules", "events ListRules", "UnknownOperationException", 400),  # JSON 1.1
        ("rds", "describe_db_instances", "rds DescribeDBInstances", "InvalidAction", 400),  # Query
        ("ec2", "describe_regions", "ec2 DescribeRegions", "InvalidAction", 400),
        (
            "route53",
            "list_hosted_zones",
            "route53 GET /2013-04-01/hostedzone",
            "UnknownOperationException",
            404,
        ),
        ("eks", "list_clusters", "eks GET /clusters", "UnknownOperationException", 404),  # REST, JSON
        ("secretsmanager", "list_secrets", "secretsmanager ListSecrets", "UnknownOperationException", 400),
        ("ecr", "describe_repositories", "ecr DescribeRepositories", "AccessDeniedException", 400),
        ("kinesis", "list_streams", "kinesis ListStreams", "UnknownOperationException", 400),
    ],
)
def test_a_service_that_is_not_offered_is_refused_in_its_own_protocol(
    server_on_sqlite: Server, service: str, operation: str, called: str, code: str, status: int
) -> None:
    assert service not in FOLDERS, "offered now: take another service"
    text = f"Redrive does not offer {called}; it offers {OFFERED}."
    assert refusal(server_on_sqlite, service, operation) == (code, text, status)


@pytest.mark.parametrize(
    ("service", "operation", "called", "params"),
    [
        ("logs", "describe_deliveries", "logs DescribeDeliveries", {}),
        ("sts", "get_delegated_access_token", "sts GetDelegatedAccessToken", {"TradeInToken": "abcd"}),
        ("cloudwatch", "list_metric_streams", "cloudwatch ListMetricStreams", {}),
        ("s3", "list_object_versions", "s3 ListObjectVersions", {"Bucket": "wheels"}),
    ],
)
def test_an_operation_that_is_not_offered_is_refused_by_its_name(
    server_on_sqlite: Server, service: str, operation: str, called: str, params: dict[str, Any]
) -> None:
    code, text, status = refusal(server_on_sqlite, service, operation, **params)
    assert code in ("UnknownOperationException", "InvalidAction", "NotImplemented")
    expected = 501 if code == "NotImplemented" else 400
    assert (text, status) == (f"Redrive does not offer the operation {called}.", expected)


@pytest.mark.parametrize("service", ["sns", "iam", "rds"])
def test_a_form_that_names_no_action_is_refused_as_a_form(server_on_sqlite: Server, service: str) -> None:
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential=123456789012/20260101/us-east-1/{service}/aws4_request",
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
    }
    status, body = server_on_sqlite.ask("POST", "/", b"Version=2010-03-31", headers)
    error = ET.fromstring(body).find("Error")
    assert error is not None
    assert (status, error.findtext("Type"), error.findtext("Code")) == (400, "Sender", "MissingAction")
    assert error.findtext("Message") == "The request is missing an action or a required parameter."

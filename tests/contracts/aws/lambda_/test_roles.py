"""Functions act as their roles: by credentials of a session, which their role's policies bound."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.services.server import serving

_ACTS = """
import boto3
from botocore.exceptions import ClientError

def handler(event, context):
    who = boto3.client("sts").get_caller_identity()["Arn"]
    try:
        boto3.client("sqs").send_message(QueueUrl=event["queue"], MessageBody="m")
        return [who, "sent"]
    except ClientError as error:
        return [who, error.response["Error"]["Code"]]
"""
_TRUST = orjson.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        },
    }
).decode()


@pytest.mark.parametrize("auth", ["required", "off"])
def test_a_function_may_what_its_role_may(tmp_path: Path, auth: str) -> None:
    signed = ("--auth", "required", "--insecure-test-keys") if auth == "required" else ()
    with serving(
        f"sqlite:///{tmp_path}/redrive.db", *signed, "--functions", "on", directory=tmp_path
    ) as server:
        workshop = Workshop(server, account="test")
        iam, sqs = workshop.of("iam"), workshop.of("sqs")
        role = iam.create_role(RoleName="sender", AssumeRolePolicyDocument=_TRUST)["Role"]["Arn"]
        url = sqs.create_queue(QueueName="orders")["QueueUrl"]
        name = workshop.function(_ACTS, MemorySize=512, Role=role)
        session = f"arn:aws:sts::000000000000:assumed-role/sender/{name}"

        def answer() -> Any:
            return workshop.call(name, {"queue": url}).payload

        refused = "AccessDenied" if auth == "required" else "sent"
        assert answer() == [session, refused]
        full = "arn:aws:iam::aws:policy/AmazonSQSFullAccess"
        iam.attach_role_policy(RoleName="sender", PolicyArn=full)
        assert answer() == [session, "sent"]
        iam.detach_role_policy(RoleName="sender", PolicyArn=full)
        assert answer() == [session, refused]

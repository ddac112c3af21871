"""IAM and STS through boto3 and the AWS CLI, unmodified, at servers that let nobody in without a signature."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.services.clients import CommandFailedError, cli
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, new_key, serving

ACCOUNT: Final = "100000000000"
_CONFIG: Final = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/worker"


def policy(**statement: Any) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", **statement}}).decode()


TRUST: Final = policy(Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:user/ann"}, Action="sts:AssumeRole")


@pytest.fixture(scope="module")
def iam_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("iam")
    with serving(f"sqlite:///{folder}/iam.db", "--auth", "required", directory=folder) as server:
        yield server


@pytest.fixture(scope="module")
def iam_on_postgres(database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, "--auth", "required") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def strict(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(f"iam_on_{request.param}")
    return started


def session(server: Server, *words: str) -> boto3.Session:
    """A session with a key that `redrive keys` makes."""
    return boto3.Session(*new_key(server.store, ACCOUNT, *words), region_name="us-east-1")


def test_boto3_makes_users_and_roles_that_may_what_their_policies_say(strict: Server) -> None:
    def of(service: str, by: boto3.Session) -> Any:
        return by.client(service, endpoint_url=strict.url, config=_CONFIG)

    root = session(strict)
    iam, sqs = of("iam", root), of("sqs", root)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    iam.create_user(UserName="ann")
    ann = session(strict, "--user", "ann")
    assert of("sts", ann).get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/ann"
    with pytest.raises(ClientError, match="no identity-based policy allows the sqs:sendmessage action"):
        of("sqs", ann).send_message(QueueUrl=url, MessageBody="m")
    role = iam.create_role(RoleName="worker", AssumeRolePolicyDocument=TRUST)["Role"]
    assert role["AssumeRolePolicyDocument"] == orjson.loads(TRUST)
    iam.get_waiter("role_exists").wait(RoleName="worker")
    iam.put_role_policy(
        RoleName="worker", PolicyName="sends", PolicyDocument=policy(Action="sqs:SendMessage", Resource=queue)
    )
    made = of("sts", ann).assume_role(RoleArn=ROLE, RoleSessionName="run")["Credentials"]
    worker = boto3.Session(
        made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"], region_name="us-east-1"
    )
    assert of("sts", worker).get_caller_identity()["Arn"].endswith(":assumed-role/worker/run")
    of("sqs", worker).send_message(QueueUrl=url, MessageBody="m")
    with pytest.raises(ClientError, match="sqs:receivemessage"):
        of("sqs", worker).receive_message(QueueUrl=url)
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "m"
    with pytest.raises(ClientError, match="sts:AssumeRole"):
        of("sts", root).assume_role(RoleArn=ROLE, RoleSessionName="run")
    names = [
        each["RoleName"] for page in iam.get_paginator("list_roles").paginate() for each in page["Roles"]
    ]
    assert names == ["worker"]
    strict.kill()  # what was answered is on disk, and sessions need no memory
    strict.start()
    of("sqs", worker).send_message(QueueUrl=url, MessageBody="again")
    iam.delete_role_policy(RoleName="worker", PolicyName="sends")
    with pytest.raises(ClientError, match="sqs:sendmessage"):
        of("sqs", worker).send_message(QueueUrl=url, MessageBody="late")


def test_the_cli_walks_through_identities(server_on_sqlite: Server, tmp_path: Path) -> None:
    iam, sts = (cli(server_on_sqlite, tmp_path, service) for service in ("iam", "sts"))
    account = "000000000000"
    trust = policy(Principal={"Service": "lambda.amazonaws.com"}, Action="sts:AssumeRole")
    made = iam("create-role", "--role-name", "cli", "--assume-role-policy-document", trust)["Role"]
    assert made["Arn"] == f"arn:aws:iam::{account}:role/cli"
    basic = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
    iam("attach-role-policy", "--role-name", "cli", "--policy-arn", basic)
    attached = iam("list-attached-role-policies", "--role-name", "cli")["AttachedPolicies"]
    assert attached == [{"PolicyName": "AWSLambdaBasicExecutionRole", "PolicyArn": basic}]
    shown = iam("get-role", "--role-name", "cli")["Role"]
    assert shown["AssumeRolePolicyDocument"] == orjson.loads(trust)
    iam("create-user", "--user-name", "cli", "--tags", "Key=team,Value=blue")
    key = iam("create-access-key", "--user-name", "cli")["AccessKey"]
    simulated = iam(
        "simulate-custom-policy",
        *("--policy-input-list", policy(Action="sqs:*", Resource="*")),
        *("--action-names", "sqs:SendMessage", "sns:Publish"),
    )
    decisions = [result["EvalDecision"] for result in simulated["EvaluationResults"]]
    assert decisions == ["allowed", "implicitDeny"]
    assumed = sts("assume-role", "--role-arn", made["Arn"], "--role-session-name", "run")
    assert assumed["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{account}:assumed-role/cli/run"
    assert sts("get-access-key-info", "--access-key-id", key["AccessKeyId"]) == {"Account": account}
    with pytest.raises(CommandFailedError, match=r"\(DeleteConflict\).*must detach all policies first\."):
        iam("delete-role", "--role-name", "cli")
    iam("delete-access-key", "--user-name", "cli", "--access-key-id", key["AccessKeyId"])
    iam("delete-user", "--user-name", "cli")


def test_boto3_is_told_when_a_key_was_last_used(strict: Server) -> None:
    root = session(strict)
    iam = root.client("iam", endpoint_url=strict.url, config=_CONFIG)
    iam.create_user(UserName="bob")
    bob = session(strict, "--user", "bob")
    key_id = bob.get_credentials().access_key
    shown = iam.get_access_key_last_used(AccessKeyId=key_id)
    assert shown["UserName"] == "bob"
    assert shown["AccessKeyLastUsed"] == {"ServiceName": "N/A", "Region": "N/A"}
    sqs = bob.client("sqs", endpoint_url=strict.url, config=_CONFIG, region_name="eu-west-1")
    with pytest.raises(ClientError, match="sqs:ListQueues"):
        sqs.list_queues()
    used = iam.get_access_key_last_used(AccessKeyId=key_id)["AccessKeyLastUsed"]
    assert (used["ServiceName"], used["Region"]) == ("sqs", "eu-west-1")
    assert abs((datetime.now(UTC) - used["LastUsedDate"]).total_seconds()) < 60
    iam.delete_access_key(UserName="bob", AccessKeyId=key_id)
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.get_access_key_last_used(AccessKeyId=key_id)

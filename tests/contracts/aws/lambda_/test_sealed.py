"""Sealed where it is promised: a secret goes through every service, waits there, and is nowhere in clear.

The server has a root key, and queues and topics have a customer's, as in the example of the rental car. Whatever
waits is looked for in the store, its write-ahead log, the server's log, and a backup.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways
from tests.contracts.aws.kms.stored import stored_bytes
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import refused
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, redrive, serving

_FAILS: Final = """
def handler(event, context):
    raise ValueError("no")
"""
_POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"},
            {
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
                "Resource": "*",
            },
        ],
    }
)  # fmt: skip
_TEMPLATE: Final = json.dumps(
    {
        "Parameters": {"Password": {"Type": "String", "NoEcho": True}},
        "Resources": {
            "Kept": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": {"Ref": "Password"}}},
            "Called": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "Runtime": "python3.11",
                    "Handler": "index.handler",
                    "Role": f"arn:aws:iam::{ACCOUNT}:role/functions",
                    "Code": {"ZipFile": _FAILS},
                    "Environment": {"Variables": {"PASSWORD": {"Ref": "Password"}}},
                },
            },
        },
    }
)  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server with a root key of its own, whose functions fail and are tried again when time goes on."""
    key = tmp_path / "root.key"
    key.write_bytes(base64.b64encode(b"7" * 32))
    flags = ("--clock", "simulated", "--functions", "on", "--kms-root-key", str(key))
    if request.param == "sqlite":
        with serving(f"sqlite:///{tmp_path}/redrive.db", *flags, directory=tmp_path) as started:
            yield started
        return
    maker: DatabaseMaker = request.getfixturevalue("database_maker")
    with maker.database() as url, serving(url, *flags, directory=tmp_path) as started:
        yield started


class Secrets:
    """A caller with a key, and the secrets that it has told, a text for each way."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.workshop, self.gateways = Workshop(server, ACCOUNT), Gateways(server)
        self.key: str = self.workshop.of("kms").create_key(Policy=_POLICY)["KeyMetadata"]["Arn"]
        self.told: list[str] = []

    def tell(self, way: str) -> str:
        secret = f"needle-of-{way}-in-a-haystack"
        self.told.append(secret)
        return secret

    def queue(self, name: str, **attributes: str) -> str:
        attributes = {"KmsMasterKeyId": self.key, **attributes}
        self.workshop.of("sqs").create_queue(QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"

    def topic(self, name: str, *endpoints: tuple[str, str], **attributes: str) -> str:
        sns = self.workshop.of("sns")
        attributes = {"KmsMasterKeyId": self.key, **attributes}
        arn: str = sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]
        for protocol, endpoint in endpoints:
            sns.subscribe(TopicArn=arn, Protocol=protocol, Endpoint=endpoint)
        return arn

    def in_clear(self) -> list[str]:
        """The secrets that stand anywhere in clear."""
        everything = stored_bytes(self.server) + self.server.log.read_bytes() + self._backup()
        assert b"sealed" in everything
        return [
            secret
            for secret in self.told
            if any(
                form in everything
                for form in (secret.encode(), secret.encode().hex().encode(), base64.b64encode(secret.encode())[:-4])
            )
        ]  # fmt: skip

    def _backup(self) -> bytes:
        if not self.server.store.startswith("sqlite"):
            return b""
        copy = self.server.log.with_name("backup") / "copy.db"
        copy.parent.mkdir(exist_ok=True)
        copy.unlink(missing_ok=True)
        done = redrive("store", "backup", str(copy), "--store", self.server.store)
        assert done.returncode == 0, done
        return copy.read_bytes()


def test_a_secret_that_waits_in_any_service_is_nowhere_in_clear(server: Server) -> None:
    secrets = Secrets(server)
    _functions(secrets)
    _topics_and_queues(secrets)
    _streams_and_apis(secrets)
    _configuration(secrets)
    assert secrets.in_clear() == []
    server.advance(180)  # events were tried three times: now their letters and records wait, or have arrived
    assert secrets.in_clear() == []
    letters = [_received(secrets, name) for name in ("letters", "records")]
    assert all(any("needle-of-invoke" in text for text in found) for found in letters), letters


def _functions(secrets: Secrets) -> None:
    """Events of a function whose dead-letter queue and destination have the key, and one whose targets are gone."""
    workshop, letters = secrets.workshop, secrets.queue("letters")
    records = secrets.topic("ends", ("sqs", secrets.queue("records")))
    variables = {"Variables": {"PASSWORD": secrets.tell("variables")}}
    name = workshop.function(_FAILS, DeadLetterConfig={"TargetArn": letters}, Environment=variables)
    destinations = {"OnFailure": {"Destination": records}}
    workshop.client.put_function_event_invoke_config(FunctionName=name, DestinationConfig=destinations)
    workshop.send(name, {"card": secrets.tell("invoke")})
    lost = workshop.function(_FAILS, DeadLetterConfig={"TargetArn": secrets.queue("lost")})
    gone = workshop.of("sqs").get_queue_url(QueueName="lost")["QueueUrl"]
    fault = {"endpoint": f"arn:aws:sqs:{REGION}:{ACCOUNT}:lost", "status": 503}
    secrets.server.ask("POST", "/_redrive/faults", json.dumps(fault).encode())
    workshop.of("sqs").delete_queue(QueueUrl=gone)
    workshop.send(lost, {"card": secrets.tell("lost")})
    topic = secrets.topic("events", ("lambda", workshop.arn(name)))
    workshop.client.add_permission(
        FunctionName=name, StatementId="sns", Action="lambda:InvokeFunction", Principal="sns.amazonaws.com"
    )
    workshop.of("sns").publish(TopicArn=topic, Message=secrets.tell("topic-to-function"), Subject="s")


def _topics_and_queues(secrets: Secrets) -> None:
    sqs, sns = secrets.workshop.of("sqs"), secrets.workshop.of("sns")
    orders = secrets.queue("orders")
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    attributes = {"card": {"DataType": "String", "StringValue": secrets.tell("attribute")}}
    sqs.send_message(QueueUrl=url, MessageBody=secrets.tell("queue"), MessageAttributes=attributes)
    topic = secrets.topic("plain-hook", ("http", "http://127.0.0.1:9/hook"))
    sns.publish(TopicArn=topic, Message=secrets.tell("confirmation"))
    archived = secrets.topic(
        "kept.fifo",
        FifoTopic="true",
        ContentBasedDeduplication="true",
        ArchivePolicy='{"MessageRetentionPeriod": "7"}',
    )
    sns.publish(TopicArn=archived, Message=secrets.tell("archive"), MessageGroupId="g")
    retried = secrets.topic("retried", ("sqs", orders))
    secrets.server.ask("POST", "/_redrive/faults", json.dumps({"endpoint": orders, "status": 503}).encode())
    sns.publish(TopicArn=retried, Message=secrets.tell("retried"))


def _streams_and_apis(secrets: Secrets) -> None:
    workshop, gateways = secrets.workshop, secrets.gateways
    firehose, s3 = workshop.of("firehose"), workshop.of("s3")
    s3.create_bucket(Bucket="landing")
    role = f"arn:aws:iam::{ACCOUNT}:role/firehose"
    settings = {"RoleARN": role, "BucketARN": "arn:aws:s3:::landing"}
    firehose.create_delivery_stream(DeliveryStreamName="plain", ExtendedS3DestinationConfiguration=settings)
    encrypted = {"KeyType": "CUSTOMER_MANAGED_CMK", "KeyARN": secrets.key}
    firehose.create_delivery_stream(
        DeliveryStreamName="keyed",
        DeliveryStreamEncryptionConfigurationInput=encrypted,
        ExtendedS3DestinationConfiguration=settings,
    )
    for stream in ("plain", "keyed"):
        data = secrets.tell(f"{stream}-stream").encode()
        firehose.put_record(DeliveryStreamName=stream, Record={"Data": data})
    name = workshop.function(_FAILS)
    workshop.client.add_permission(
        FunctionName=name, StatementId="api", Action="lambda:InvokeFunction", Principal="apigateway.amazonaws.com"
    )  # fmt: skip
    api, _ = gateways.api()
    lambda_uri = (
        f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{workshop.arn(name)}/invocations"
    )
    later = {"integration.request.header.X-Amz-Invocation-Type": "'Event'"}
    integration: dict[str, Any] = {"type": "AWS", "integrationHttpMethod": "POST"}
    resource = gateways.method(
        api, "/later", "POST", {**integration, "uri": lambda_uri, "requestParameters": later}
    )
    gateways.answer(api, resource, "POST", "200")
    put = '{"DeliveryStreamName": "plain", "Record": {"Data": "$util.base64Encode($input.body)"}}'
    uri = f"arn:aws:apigateway:{REGION}:firehose:action/PutRecord"
    put_in = {
        "uri": uri,
        "credentials": role,
        "requestTemplates": {"application/json": put},
    }
    resource = gateways.method(api, "/streamed", "POST", {**integration, **put_in})
    gateways.answer(api, resource, "POST", "200")
    gateways.deploy(api)
    for path in ("later", "streamed"):
        body = json.dumps({"card": secrets.tell(f"api-{path}")}).encode()
        said = gateways.ask(api, f"/prod/{path}", "POST", body, {"Content-Type": "application/json"})
        assert said.status == 200, said


def _configuration(secrets: Secrets) -> None:
    workshop = secrets.workshop
    password = {"ParameterKey": "Password", "ParameterValue": secrets.tell("no-echo")}
    stacks = workshop.of("cloudformation")
    given = {"TemplateBody": _TEMPLATE, "Parameters": [password]}
    stacks.create_stack(StackName="secret", **given)
    stacks.create_change_set(StackName="planned", ChangeSetName="c", ChangeSetType="CREATE", **given)
    secrets.server.advance(1)
    assert stacks.describe_stacks(StackName="secret")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    value = secrets.tell("secure-string")
    workshop.of("ssm").put_parameter(Name="/db/password", Type="SecureString", Value=value)


def _received(secrets: Secrets, name: str) -> list[str]:
    sqs = secrets.workshop.of("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [message["Body"] for message in found]


_SHOWS: Final = """
import os

def handler(event, context):
    return os.environ["PASSWORD"]
"""


def test_variables_are_encrypted_by_the_functions_key_and_shown_to_who_may_decrypt(server: Server) -> None:
    secrets = Secrets(server)
    workshop, kms = secrets.workshop, secrets.workshop.of("kms")
    client = workshop.client
    variables = {"Variables": {"PASSWORD": secrets.tell("keyed")}}
    name = workshop.function(_SHOWS, Environment=variables, KMSKeyArn=secrets.key)
    shown = client.get_function_configuration(FunctionName=name)
    assert (shown["Environment"], shown["KMSKeyArn"]) == (variables, secrets.key)
    assert workshop.call(name).payload == variables["Variables"]["PASSWORD"]
    version = client.publish_version(FunctionName=name)
    assert version["Environment"] == variables
    client.update_function_configuration(FunctionName=name, Description="the variables stay")
    assert client.get_function(FunctionName=name)["Configuration"]["Environment"] == variables

    owner = json.loads(_POLICY)["Statement"][0] | {"Action": ["kms:Put*", "kms:Enable*", "kms:Disable*"]}
    kms.put_key_policy(KeyId=secrets.key, Policy=json.dumps({"Version": "2012-10-17", "Statement": [owner]}))
    (listed,) = client.list_functions()["Functions"]
    assert listed["Environment"]["Error"]["ErrorCode"] == "AccessDeniedException"
    assert workshop.call(name, Qualifier=version["Version"]).payload == variables["Variables"]["PASSWORD"]
    with refused("InvalidParameterValueException") as error:
        client.update_function_configuration(FunctionName=name, Environment=variables)
    assert "KMS Exception: AccessDeniedException" in error["Message"]

    kms.disable_key(KeyId=secrets.key)
    client.update_function_configuration(FunctionName=name, Description="and it starts anew")
    with refused("KMSDisabledException", status=502) as error:
        workshop.call(name)
    assert f"KMS Message: {secrets.key} is disabled." in error["Message"]
    kms.enable_key(KeyId=secrets.key)
    kms.put_key_policy(KeyId=secrets.key, Policy=_POLICY)
    kms.schedule_key_deletion(KeyId=secrets.key, PendingWindowInDays=7)
    with refused("KMSInvalidStateException", status=502):
        workshop.call(name)
    kms.cancel_key_deletion(KeyId=secrets.key)
    kms.enable_key(KeyId=secrets.key)
    client.update_function_configuration(FunctionName=name, KMSKeyArn="")
    shown = client.get_function_configuration(FunctionName=name)
    assert (shown["Environment"], "KMSKeyArn" in shown) == (variables, False)
    assert secrets.in_clear() == []


def test_a_key_that_is_not_there_is_refused_for_variables(server: Server) -> None:
    with refused("InvalidParameterValueException") as error:
        Secrets(server).workshop.function(
            _SHOWS,
            Environment={"Variables": {"CARD": "b"}},
            KMSKeyArn="arn:aws:kms:us-east-1:123456789012:key/none",
        )
    assert "KMS Exception: NotFoundException" in error["Message"]

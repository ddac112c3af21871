"""Resources that are declared: read from files, and there when the server starts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.exceptions import ClientError

from redrive.settings import SettingsInvalid, read_settings
from redrive.settings.declared import DeclaredKey, DeclaredSubscription, read_declarations
from tests.services.server import Server, ServerFailedError, new_server

DECLARED = """
[[queues]]
name = "orders"
attributes = { VisibilityTimeout = 60, RedrivePolicy = { deadLetterTargetArn = "orders-dead", maxReceiveCount = 3 } }
tags = { team = "billing" }

[[queues]]
name = "orders-dead"

[[queues]]
name = "payments.fifo"
region = "eu-west-1"
attributes = { FifoQueue = true, ContentBasedDeduplication = true }

[[topics]]
name = "shop"
attributes = { DisplayName = "Shop" }
tags = { team = "sales" }

[[topics.subscriptions]]
protocol = "sqs"
endpoint = "orders"
attributes = { RawMessageDelivery = true, RedrivePolicy = { deadLetterTargetArn = "orders-dead" } }
"""


class House:
    """Servers over one store in one directory, and clients of theirs, all let go of in the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._servers: list[Server] = []
        self._clients: list[Any] = []

    def declaring(self, text: str, *flags: str) -> Server:
        """A server to which this is declared, not started; one made before reads it at its next start."""
        file = self.directory / "resources.toml"
        file.write_text(text)
        store = f"sqlite:///{self.directory}/redrive.db"
        server = new_server(store, "--resources", str(file), *flags, directory=self.directory)
        self._servers.append(server)
        return server

    def started(self, text: str, *flags: str) -> Server:
        server = self.declaring(text, *flags)
        server.start()
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        return server

    def client(self, server: Server, service: str, region: str = "us-east-1", key: str = "test") -> Any:
        client = boto3.client(
            service,
            endpoint_url=server.url,
            region_name=region,
            aws_access_key_id=key,
            aws_secret_access_key="test",
        )
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for server in self._servers:
            if server._process is not None and server.process.poll() is None:
                server.kill()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def attributes_of(sqs: Any, name: str) -> dict[str, str]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    attributes: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return attributes


def refused(server: Server) -> str:
    """Return the output of a server that does not start."""
    with pytest.raises(ServerFailedError, match="exit status 2") as failed:
        server.start()
    return str(failed.value)


def test_declared_resources_exist_when_the_server_starts(house: House) -> None:
    server = house.started(DECLARED)
    sqs, sns = house.client(server, "sqs"), house.client(server, "sns")
    orders = attributes_of(sqs, "orders")
    assert orders["VisibilityTimeout"] == "60"
    assert json.loads(orders["RedrivePolicy"])["deadLetterTargetArn"].endswith(":orders-dead")
    tags = sqs.list_queue_tags(QueueUrl=sqs.get_queue_url(QueueName="orders")["QueueUrl"])["Tags"]
    assert tags == {"team": "billing"}
    fifo = attributes_of(house.client(server, "sqs", "eu-west-1"), "payments.fifo")
    assert (fifo["FifoQueue"], fifo["ContentBasedDeduplication"]) == ("true", "true")
    (topic,) = sns.list_topics()["Topics"]
    assert sns.get_topic_attributes(**topic)["Attributes"]["DisplayName"] == "Shop"
    sns.publish(**topic, Message="one car")
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "one car"
    assert server.stop() == 0


def test_a_second_start_changes_what_is_declared_otherwise_and_removes_nothing(house: House) -> None:
    server = house.started(DECLARED)
    house.client(server, "sqs").create_queue(QueueName="made-by-hand")
    server.stop()
    server.start()  # the same once more
    (subscription,) = house.client(server, "sns").list_subscriptions()["Subscriptions"]
    server.stop()
    changed = (
        DECLARED.replace("60", "61")
        .replace('"Shop"', '"Store"')
        .replace("Delivery = true", "Delivery = false")
    )
    house.declaring(changed)
    server.start()
    sqs, sns = house.client(server, "sqs"), house.client(server, "sns")
    assert attributes_of(sqs, "orders")["VisibilityTimeout"] == "61"
    assert attributes_of(sqs, "made-by-hand")["VisibilityTimeout"] == "30"
    (topic,) = sns.list_topics()["Topics"]
    assert sns.get_topic_attributes(**topic)["Attributes"]["DisplayName"] == "Store"
    (again,) = sns.list_subscriptions()["Subscriptions"]
    assert again["SubscriptionArn"] == subscription["SubscriptionArn"]
    arn = again["SubscriptionArn"]
    shown = sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert shown["RawMessageDelivery"] == "false"
    server.stop()


def test_a_reset_leaves_what_is_declared(house: House) -> None:
    server = house.started(DECLARED, "--allow-reset")
    sqs = house.client(server, "sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="orders")["QueueUrl"], MessageBody="one car")
    server.reset()
    assert attributes_of(sqs, "orders")["ApproximateNumberOfMessages"] == "0"
    assert len(sqs.list_queues()["QueueUrls"]) == 2
    server.stop()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            ("VisibilityTimeout = 60", "Visibility = 60"),
            "declared queue orders: Unknown Attribute Visibility.",
        ),
        (
            ("= 60", "= 99999"),
            (
                "declared queue orders: Invalid value for the parameter VisibilityTimeout."
                " 99999 value provided is not an integer between 0-43200"
            ),
        ),
        (('Arn = "orders-dead", max', 'Arn = "lost", max'), "declared queue orders: "),
        (('name = "shop"', 'name = "no topic"'), "declared topic no topic: Invalid parameter: Topic Name"),
        (("DisplayName", "Nickname"), "declared topic shop: Invalid parameter: AttributeName"),
        (('protocol = "sqs"', 'protocol = "pigeon"'), "declared topic shop: subscription of orders: "),
        (("RawMessageDelivery", "Raw"), "declared topic shop: Invalid parameter: AttributeName"),
    ],
)
def test_a_declaration_refused_by_its_service_ends_the_start_with_its_error(
    change: tuple[str, str], why: str, house: House
) -> None:
    assert why in refused(house.declaring(DECLARED.replace(*change)))


# ---- keys ----------------------------------------------------------------------------------------------------------

KEY = '[[keys]]\nid = "test"\nsecret = "test"\n'
BEYOND = ("--host", "0.0.0.0", "--auth", "required")


def test_a_declared_key_is_accepted(house: House) -> None:
    server = house.started(KEY, "--auth", "required")
    url = house.client(server, "sqs").create_queue(QueueName="orders")["QueueUrl"]
    assert url.endswith("/000000000000/orders")
    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        house.client(server, "sqs", key="other").list_queues()
    server.stop()
    house.declaring(KEY.replace('"test"\n', '"other"\n', 2).replace('"other"', '"test"', 1))
    server.start()
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):  # the secret is another now
        house.client(server, "sqs").list_queues()
    server.stop()


def test_a_key_that_can_be_guessed_is_not_declared_for_others_to_reach(house: House) -> None:
    server = house.declaring(KEY, *BEYOND)
    assert "key test has a secret of fewer than 16 characters" in refused(server)
    house.declaring(KEY.replace('secret = "test"', f'secret = "{"x" * 16}"'))
    server.start()
    server.stop()


def test_test_keys_are_accepted_beyond_this_machine_with_a_flag_and_a_warning(house: House) -> None:
    server = house.started("", *BEYOND, "--insecure-test-keys")
    url = house.client(server, "sqs").create_queue(QueueName="orders")["QueueUrl"]
    assert url.endswith("/000000000000/orders")
    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        house.client(server, "sqs", key="other").list_queues()
    assert "WARNING redrive.app server.insecure_test_keys host=0.0.0.0" in server.log.read_text()


def test_test_keys_are_refused_otherwise(house: House) -> None:
    server = house.started("", "--auth", "required")
    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        house.client(server, "sqs").list_queues()


# ---- files ---------------------------------------------------------------------------------------------------------


def test_a_directory_of_both_languages_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[[queues]]\nname = "a"\nattributes = { DelaySeconds = 5, Policy = { x = [1] } }\n'
    )
    subscription = {"protocol": "http", "endpoint": "http://h", "attributes": {"RawMessageDelivery": True}}
    (tmp_path / "b.json").write_text(json.dumps({"topics": [{"name": "b", "subscriptions": [subscription]}]}))
    (tmp_path / "notes.txt").write_text("nothing to read")
    declared = read_declarations(str(tmp_path))
    assert declared.queues[0].attributes == {"DelaySeconds": "5", "Policy": '{"x": [1]}'}
    (topic,) = declared.topics
    assert topic.subscriptions == [DeclaredSubscription("http", "http://h", {"RawMessageDelivery": "true"})]
    assert read_declarations(f"{tmp_path}/a.toml:{tmp_path}/b.json") == declared


def test_the_settings_file_may_declare_resources_too(tmp_path: Path) -> None:
    file, more = tmp_path / "redrive.toml", tmp_path / "more.toml"
    file.write_text(f"port = 5000\n{KEY}")
    more.write_text(KEY.replace("test", "more"))
    settings, _ = read_settings({}, {}, file)
    assert read_declarations(settings.resources).keys == [DeclaredKey("test", "test", "000000000000")]
    settings, origins = read_settings({"resources": str(more)}, {}, file)
    assert [key.id for key in read_declarations(settings.resources).keys] == ["test", "more"]
    (origin,) = [origin for origin in origins if origin.name == "resources"]
    assert origin.source == f"flag and file ({file})"
    assert "secret" not in repr(read_declarations(settings.resources).keys)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("queues = 1", "queues is not a list of tables"),
        ("queues = [1]", "queues 1 is not a table"),
        ("[[queues]]", "queues 1 has no name"),
        ("[[queues]]\nname = 1", "queues 1 has no name"),
        (
            '[[queues]]\nname = "q"\n[[queues]]\nname = "r"\nattribute = 1',
            "queues 2 has unknown members: attribute",
        ),
        ('[[queues]]\nname = "q"\ntags = ["a"]', "queues 1 has tags that are not a table"),
        ('[[topics]]\nname = "t"\nsubscriptions = 1', "topics 1: subscriptions is not a list of tables"),
        (
            '[[topics]]\nname = "t"\n[[topics.subscriptions]]\nprotocol = "sqs"',
            "subscriptions 1 has no endpoint",
        ),
        ('[[keys]]\nid = "k"', "keys 1 has no secret"),
        ("[[queues", "cannot read"),
    ],
)
def test_a_file_that_declares_nothing_usable_is_named(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "resources.toml"
    file.write_text(text)
    with pytest.raises(SettingsInvalid, match=f"{file}.*{why}|{why} {file}"):
        read_declarations(str(file))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=f"cannot read {tmp_path}/none.toml"):
        read_declarations(f"{tmp_path}/none.toml")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(SettingsInvalid, match="is not an object with queues, topics, keys"):
        read_declarations(f"{tmp_path}/list.json")

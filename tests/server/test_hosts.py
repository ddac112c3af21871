"""The names that a server answers to where nobody proves who they are."""

import pytest
from botocore.session import get_session

from redrive.aws.services import FOLDERS
from redrive.server.guard import KnownHosts

SESSION = get_session()
LOCAL = [
    "",
    "localhost",
    "LOCALHOST:4566",
    "localhost.:4566",
    "127.0.0.1:4566",
    "127.8.8.8",
    "[::1]:4566",
    "[::1]",
    "0.0.0.0:4566",
    "172.17.0.1:4566",
    "192.168.1.20",
]
OF_CONTAINERS = [
    "redrive:4566",
    "localstack",
    "my-laptop:4566",
    "host.docker.internal:4566",
    "host.containers.internal",
]
OF_CLIENTS = [
    "sqs.us-east-1.localhost:4566",
    "orders.westus2-1.eventgrid.localhost",
    "localhost.localstack.cloud:4566",
    "sqs.us-east-1.localhost.localstack.cloud:4566",
    "sqs.us-east-1.amazonaws.com",
    "us-east-1.queue.amazonaws.com",
    "queue.amazonaws.com",
    "sqs-fips.us-gov-west-1.amazonaws.com",
    "streaming-logs.eu-central-1.amazonaws.com",
    "bucket.with.dots.s3.us-east-1.amazonaws.com",
    "bucket.s3-us-west-2.amazonaws.com",
    "bucket.s3.dualstack.us-west-2.amazonaws.com",
    "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com",
    "sns.cn-north-1.amazonaws.com.cn",
    "orders.westus2-1.eventgrid.azure.net",
    "redrive.test",
]
OF_AMAZONS_CUSTOMERS = [
    "ec2-127-0-0-1.compute-1.amazonaws.com",
    "ec2-3-120-0-1.eu-central-1.compute.amazonaws.com",
    "evil-123.us-east-1.elb.amazonaws.com",
    "evil.s3-website-us-east-1.amazonaws.com",
    "evil.s3-website.eu-central-1.amazonaws.com",
    "evil.us-east-1.es.amazonaws.com",
    "evil.sqs.us-east-1.amazonaws.com",
    "evil.sqs.amazonaws.com",
    "s3.evil.amazonaws.com",
    "amazonaws.com",
]
STRANGE = [
    *OF_AMAZONS_CUSTOMERS,
    "evil.example.com",
    "evil.example.com:4566",
    "127.0.0.1.evil.example.com",
    "127.0.0.1.nip.io",
    "localhost.evil.example.com",
    "sqs.us-east-1.dev",
    "localstack.cloud",
    "evil-localhost.localstack.cloud",
    "evilamazonaws.com",
    "eventgrid.azure.net.evil.example.com",
    "printer.local",
    "a.b",
    "999.999.999.999",
    "evil.example.com:4566:localhost",
    "evil.example.com, localhost",
    "a." * 30_000 + "localhost",
]


@pytest.mark.parametrize("host", LOCAL + OF_CONTAINERS + OF_CLIENTS)
def test_hosts_of_clients_that_cannot_be_registered_are_known(host: str) -> None:
    hosts = KnownHosts()
    assert host in hosts
    assert host in hosts  # the second time out of its memory


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1", "us-gov-west-1", "ap-southeast-7"])
@pytest.mark.parametrize("service", sorted(FOLDERS))
def test_the_endpoints_of_all_offered_services_are_known(service: str, region: str) -> None:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = SESSION.create_client(service, region_name=region, **keys)
    assert client.meta.endpoint_url.removeprefix("https://") in KnownHosts()


@pytest.mark.parametrize("host", STRANGE, ids=lambda host: host[:40])
def test_hosts_that_can_be_registered_are_unknown(host: str) -> None:
    assert host not in KnownHosts()


@pytest.mark.parametrize(
    "allowed", ["queues.example", "*.queues.example", ".queues.example", "QUEUES.example"]
)
def test_an_allowed_name_is_known_with_those_below_it(allowed: str) -> None:
    hosts = KnownHosts([allowed])
    for host in ("queues.example", "Queues.Example:4566", "sqs.us-east-1.queues.example"):
        assert host in hosts
    for host in ("example", "evilqueues.example", "queues.example.evil.com"):
        assert (host in hosts) is ("." not in host)


def test_a_star_allows_every_name() -> None:
    assert "evil.example.com" in KnownHosts(["*"])


def test_names_that_are_made_up_are_not_remembered_for_ever() -> None:
    hosts = KnownHosts()
    for number in range(10_000):
        assert f"{number}.localhost" in hosts
    assert len(hosts.lately) <= 256

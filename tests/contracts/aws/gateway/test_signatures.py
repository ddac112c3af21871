"""`--auth required`: who signs with a key of the keyring is let in, and nobody else."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore import UNSIGNED
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config

from tests.contracts.aws.sqs.client import new_name, refused
from tests.services.clients import Protocol, sdk
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, new_key, redrive, serving

Key = tuple[str, str]
PROTOCOLS: tuple[Protocol, ...] = ("json", "query")
OURS, THEIRS = "100000000000", "200000000000"
MINUTES_15 = 15 * 60
UNKNOWN_KEY = "The security token included in the request is invalid."
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access"
    " Key and signing method. Consult the service documentation for details."
)


@pytest.fixture(scope="module")
def strict_on_sqlite(run_directory: Path) -> Iterator[Server]:
    store = f"sqlite:///{run_directory}/strict.db"
    with serving(store, "--auth", "required", "--allow-reset", directory=run_directory) as server:
        yield server


@pytest.fixture(scope="module")
def strict_on_postgres(database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, "--auth", "required") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(f"strict_on_{request.param}")
    return started


def keys(server: Server, *arguments: str) -> str:
    """Return the output of `redrive keys …`, run beside the server on its store."""
    done = redrive("keys", *arguments, "--store", server.store)
    assert done.returncode == 0, done
    return done.stdout


_keys: dict[tuple[str, str], Key] = {}


@pytest.fixture
def key(server: Server) -> Callable[[str], Key]:
    """A key of an account, the same for all tests of a server."""

    def of(account: str) -> Key:
        known = (server.url, account)
        if known not in _keys:
            _keys[known] = new_key(server.store, account)
        return _keys[known]

    return of


@pytest.fixture
def ours(server: Server, protocol: Protocol, key: Callable[[str], Key]) -> Any:
    return sdk(server.url, protocol, key=key(OURS))


def signing_at(seconds: float) -> Any:
    """Lets botocore sign that many seconds from now."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return mock.patch("botocore.auth.get_current_datetime", return_value=moment)


# ---- who is let in -----------------------------------------------------------------------------------------------


def test_a_key_of_the_keyring_is_let_in(server: Server, ours: Any) -> None:
    name = new_name()
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    assert url == f"{server.url}/{OURS}/{name}"
    ours.send_message(QueueUrl=url, MessageBody="signed ü&=+ \n")
    assert ours.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "signed ü&=+ \n"


def test_requests_without_a_known_key_are_refused(server: Server, protocol: Protocol) -> None:
    client = sdk(server.url, protocol)
    unsigned = boto3.client(
        "sqs", "us-east-1", endpoint_url=server.url, config=Config(signature_version=UNSIGNED)
    )
    with refused("InvalidClientTokenId", UNKNOWN_KEY, status=403):
        client.list_queues()
    with refused("MissingAuthenticationToken", status=403):
        unsigned.list_queues()
    assert server.ask("GET", "/?Action=ListQueues&Version=2012-11-05")[0] == 403
    assert server.ask("GET", f"/_aws/sqs/messages?QueueUrl={server.url}/{OURS}/q")[0] == 403


def test_nor_may_change_anything_by_a_control_route(server: Server) -> None:
    assert server.ask("GET", "/_redrive/health")[0] == 200
    for path in ("faults", "endpoints", "dead-letters"):
        assert server.ask("POST", f"/_redrive/{path}", b"{}")[0] in (403, 404)
    assert server.ask("GET", "/_redrive/endpoints")[0] == 403


def test_another_secret_is_no_signature(
    server: Server, protocol: Protocol, key: Callable[[str], Key]
) -> None:
    key_id, secret = key(OURS)
    with refused("SignatureDoesNotMatch", MISMATCH, status=403):
        sdk(server.url, protocol, key=(key_id, secret[::-1])).list_queues()


def test_a_key_that_was_removed_is_no_key(server: Server) -> None:
    removed = new_key(server.store, OURS)
    assert f"{removed[0]}  {OURS}  active\n" in keys(server, "list")
    keys(server, "remove", removed[0])
    assert removed[0] not in keys(server, "list")
    for protocol in PROTOCOLS:
        with refused("InvalidClientTokenId", UNKNOWN_KEY, status=403):
            sdk(server.url, protocol, key=removed).list_queues()


# ---- what was signed ---------------------------------------------------------------------------------------------


def changing(client: Any, change: Callable[[AWSPreparedRequest], None]) -> Any:
    """The client, with each of its requests changed between signing and sending."""

    def before_send(request: AWSPreparedRequest, **_: Any) -> None:
        change(request)

    client.meta.events.register("before-send.sqs", before_send)
    return client


def test_a_request_is_for_the_host_it_was_signed_for(server: Server, ours: Any) -> None:
    def to_another_host(request: AWSPreparedRequest) -> None:
        request.headers["Host"] = "elsewhere"

    with refused("SignatureDoesNotMatch", MISMATCH, status=403):
        changing(ours, to_another_host).list_queues()


def test_a_request_says_what_was_signed(server: Server, ours: Any) -> None:
    def with_another_body(request: AWSPreparedRequest) -> None:
        body = request.body if isinstance(request.body, bytes) else str(request.body).encode()
        request.body = body.replace(b"harmless", b"harmful!")

    with refused("SignatureDoesNotMatch", MISMATCH, status=403):
        changing(ours, with_another_body).create_queue(QueueName="harmless")
    assert "QueueUrls" not in ours.list_queues(QueueNamePrefix="harm")


@pytest.mark.parametrize("seconds", [-MINUTES_15 + 10, MINUTES_15 - 10])
def test_a_clock_may_be_off_by_15_minutes(ours: Any, seconds: float) -> None:
    with signing_at(seconds):
        answer = ours.list_queues()
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-MINUTES_15 - 2, "Signature expired: "), (MINUTES_15 + 10, "Signature not yet current: ")],
)
def test_a_clock_may_not_be_off_by_more(ours: Any, seconds: float, said: str) -> None:
    with signing_at(seconds), refused("SignatureDoesNotMatch", status=403) as error:
        ours.list_queues()
    assert error["Message"].startswith(said)


# ---- presigned URLs ----------------------------------------------------------------------------------------------


def fetch(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def presigned(client: Any, operation: str, seconds: int = 60, **params: Any) -> str:
    url: str = client.generate_presigned_url(operation, Params=params, ExpiresIn=seconds, HttpMethod="GET")
    return url


def test_a_presigned_url_does_one_thing(server: Server, key: Callable[[str], Key]) -> None:
    client = sdk(server.url, "query", key=key(OURS))
    queue = client.create_queue(QueueName=new_name())["QueueUrl"]
    url = presigned(client, "send_message", QueueUrl=queue, MessageBody="by a link & more")
    for _ in range(2):
        assert fetch(url)[0] == 200
    received = client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in received] == ["by a link & more"] * 2
    status, body = fetch(url.replace("by%20a%20link", "by%20another"))
    assert status == 403
    assert b"<Code>SignatureDoesNotMatch</Code>" in body


def test_a_presigned_url_ends(server: Server, key: Callable[[str], Key]) -> None:
    client = sdk(server.url, "query", key=key(OURS))
    with signing_at(-62):
        over = presigned(client, "list_queues", seconds=60)
        holds = presigned(client, "list_queues", seconds=3600)
    assert fetch(over)[0] == 403
    assert fetch(holds)[0] == 200


# ---- accounts and regions ----------------------------------------------------------------------------------------


def test_accounts_have_queues_of_their_own(
    server: Server, protocol: Protocol, key: Callable[[str], Key]
) -> None:
    ours, theirs = (sdk(server.url, protocol, key=key(account)) for account in (OURS, THEIRS))
    name = new_name()
    our_url, their_url = (client.create_queue(QueueName=name)["QueueUrl"] for client in (ours, theirs))
    assert (our_url, their_url) == tuple(f"{server.url}/{account}/{name}" for account in (OURS, THEIRS))
    ours.send_message(QueueUrl=our_url, MessageBody="ours")
    assert "Messages" not in theirs.receive_message(QueueUrl=their_url)
    with refused("AccessDenied", status=403):
        theirs.receive_message(QueueUrl=our_url)
    ours.add_permission(QueueUrl=our_url, Label="l", AWSAccountIds=[THEIRS], Actions=["ReceiveMessage"])
    assert theirs.receive_message(QueueUrl=our_url)["Messages"][0]["Body"] == "ours"
    with refused("AccessDenied", status=403):
        theirs.send_message(QueueUrl=our_url, MessageBody="theirs")


def test_regions_have_queues_of_their_own(
    server: Server, protocol: Protocol, key: Callable[[str], Key]
) -> None:
    regions = ("us-east-1", "eu-central-1")
    here, there = (sdk(server.url, protocol, key=key(OURS), region=region) for region in regions)
    name = new_name()
    urls = [client.create_queue(QueueName=name)["QueueUrl"] for client in (here, there)]
    assert urls[0] == urls[1]
    here.send_message(QueueUrl=urls[0], MessageBody="here")
    assert "Messages" not in there.receive_message(QueueUrl=urls[0])
    shown = there.get_queue_attributes(QueueUrl=urls[0], AttributeNames=["QueueArn"])["Attributes"]
    assert shown["QueueArn"] == f"arn:aws:sqs:eu-central-1:{OURS}:{name}"
    assert here.receive_message(QueueUrl=urls[0])["Messages"][0]["Body"] == "here"

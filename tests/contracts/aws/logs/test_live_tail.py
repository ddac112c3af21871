"""Live tails over the wire: boto3 and the AWS CLI as they are, and a server that stops."""

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EventStreamError

from tests.contracts.aws.sqs.client import refused
from tests.services.clients import AWS, Client
from tests.services.server import Server, serving

GROUP = "/app/orders"
ARN = f"arn:aws:logs:us-east-1:000000000000:log-group:{GROUP}"
_THREE_HOURS = 3 * 60 * 60


@pytest.fixture
def logs(server: Server, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client with no settings but the endpoint's, whose name has a prefix for live tails, as at Amazon."""
    real = socket.getaddrinfo

    def resolved(host: str, *others: Any, **more: Any) -> Any:
        return real(host.removeprefix("stream-"), *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    made = _client(server, "localhost")
    made.create_log_group(logGroupName=GROUP)
    made.create_log_stream(logGroupName=GROUP, logStreamName="s")
    return made


def _client(server: Server, host: str, **config: Any) -> Client:
    session = boto3.Session(
        aws_access_key_id="000000000000", aws_secret_access_key="secret", region_name="us-east-1"
    )
    url = f"http://{host}:{urlsplit(server.url).port}"
    return session.client("logs", endpoint_url=url, config=Config(**config))


def _put(client: Client, server: Server, *messages: str) -> None:
    events = [{"timestamp": round(server.now() * 1000), "message": message} for message in messages]
    client.put_log_events(logGroupName=GROUP, logStreamName="s", logEvents=events)


def test_boto3_reads_events_as_they_come(server: Server, logs: Client) -> None:
    answer = logs.start_live_tail(logGroupIdentifiers=[ARN], logEventFilterPattern="ERROR")
    assert answer["ResponseMetadata"]["HTTPHeaders"]["content-type"] == "application/vnd.amazon.eventstream"
    events: Iterator[Any] = iter(answer["responseStream"])
    start = next(events)["sessionStart"]
    assert (start["logGroupIdentifiers"], start["logEventFilterPattern"]) == ([ARN], "ERROR")
    _put(logs, server, "fine", "ERROR é")
    update = next(events)["sessionUpdate"]
    assert update["sessionMetadata"] == {"sampled": False}
    assert [event["message"] for event in update["sessionResults"]] == ["ERROR é"]
    answer["responseStream"].close()


def test_refusals_come_before_the_stream(server: Server) -> None:
    client = _client(server, "127.0.0.1", inject_host_prefix=False)
    with refused("ResourceNotFoundException", "The specified log group does not exist."):
        client.start_live_tail(logGroupIdentifiers=[ARN])


# Three hours of seconds are 5 s of a processor: once, for both clients together. No store knows of a session's end.
@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
def test_the_cli_prints_messages_and_a_session_ends(server: Server, logs: Client, tmp_path: Path) -> None:
    events = iter(logs.start_live_tail(logGroupIdentifiers=[ARN])["responseStream"])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "000000000000",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
    }
    command = ["--endpoint-url", server.url, "logs", "start-live-tail", "--log-group-identifiers", ARN]
    tailing = AWS.start(command, environment)
    assert tailing.stdout is not None
    with tailing.stdout:
        while not select.select([tailing.stdout], [], [], 0.2)[0]:  # until the session has begun
            _put(logs, server, "ERROR out of memory")
        assert tailing.stdout.readline() == "ERROR out of memory\n"
        server.advance(_THREE_HOURS)
        rest = tailing.stdout.read()
    assert "SessionTimeoutException" in rest
    assert tailing.wait() == 0
    with pytest.raises(EventStreamError, match="SessionTimeoutException"):
        list(events)


def test_a_session_does_not_keep_the_server_from_stopping() -> None:
    with serving("sqlite://:memory:") as server:
        client = _client(server, "127.0.0.1", inject_host_prefix=False)
        client.create_log_group(logGroupName=GROUP)
        events = iter(client.start_live_tail(logGroupIdentifiers=[ARN])["responseStream"])
        assert "sessionStart" in next(events)
        assert server.stop() == 0
        assert all(event["sessionUpdate"]["sessionResults"] == [] for event in events)
        assert "ERROR" not in server.log.read_text()

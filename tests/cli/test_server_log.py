"""The server's log: one line when it starts, and, where that is asked for, one for each request."""

import json
import re
import socket
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from redrive.cli.main import main
from redrive.cli.terminal import moment
from redrive.settings import Settings, summary
from tests.contracts.aws.sqs.client import Sqs, refused
from tests.services.programs import free_port
from tests.services.server import Server, serving

_MEMORY = "sqlite://:memory:"
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def events(server: Server, message: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [line for line in lines if line["message"] == message]


# ---- the start ---------------------------------------------------------------------------------------------------


def test_a_start_is_one_line_of_text(tmp_path: Path) -> None:
    flags = ("--smtp-host", "relay.example", "--functions", "off")
    with serving(_MEMORY, *flags, directory=tmp_path) as server:
        port = urlsplit(server.url).port
    (line,) = [line for line in server.log.read_text().splitlines() if "server.started" in line]
    assert re.fullmatch(
        rf"{_MOMENT} INFO redrive\.app server\.started version=\S+ store={_MEMORY} listening=127\.0\.0\.1:{port}"
        r" auth=off account=000000000000 region=us-east-1 clock=system set_up=mail not_set_up=tls,\S*functions\S*",
        line,
    )


def test_a_start_is_one_object_in_json(tmp_path: Path) -> None:
    with serving(_MEMORY, "--log-format", "json", directory=tmp_path) as server:
        pass
    (started,) = events(server, "server.started")
    assert started["level"] == "INFO"
    assert started["set_up"] == ["functions"]
    assert started["listening"] == [urlsplit(server.url).netloc]
    assert {"mail", "text_messages", "streams"} <= set(started["not_set_up"])


def test_a_server_that_nobody_can_sign_in_to_says_so(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/redrive.db"
    with serving(store, "--auth", "required", directory=tmp_path) as server:
        assert _command_that_makes_a_key(server) == f"redrive keys create --account ACCOUNT --store {store}"
        status, body = server.ask("POST", "/_redrive/clock")
    assert (status, b"--clock simulated" in body) == (404, True)


def test_the_command_that_makes_the_first_key_opens_a_sealed_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "redrive.key"
    key.write_text(b64encode(bytes(32)).decode())
    key.chmod(0o600)
    store = f"sqlite:///{tmp_path}/redrive.db"
    with serving(store, "--auth", "required", "--store-key-file", str(key), directory=tmp_path) as server:
        command = _command_that_makes_a_key(server).replace("ACCOUNT", "123456789012")
        assert main(command.split()[1:]) == 0
    assert "AWS_ACCESS_KEY_ID=AKIA" in capsys.readouterr().out


def _command_that_makes_a_key(server: Server) -> str:
    (line,) = [line for line in server.log.read_text().splitlines() if "server.no_keys" in line]
    return line.partition("refused; ")[2].removesuffix(" creates one")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_times_are_in_utc_wherever_the_server_stands(tmp_path: Path, log_format: str) -> None:
    flags = ("--store", _MEMORY, "--port", str(free_port()), "--log-format", log_format)
    server = Server(flags, tmp_path / "server.log", {"TZ": "Asia/Tokyo"})
    before = datetime.now(UTC)
    server.start()
    server.kill()
    moments = re.findall(_MOMENT, server.log.read_text())
    assert moments
    for shown in moments:
        assert abs(datetime.fromisoformat(shown) - before) < timedelta(minutes=5)


def test_commands_show_moments_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert moment(0) == "1970-01-01 00:00:00Z"
    time.tzset()


def test_a_start_shows_no_password() -> None:
    settings = Settings(
        store="postgresql://redrive:horse@db.example/redrive?password=staple",
        sms_gateway="smpp://redrive:battery@smsc.example",
        smtp_password="correct",
        aws_endpoints="lambda=http://key:secret@127.0.0.1:1 arn:aws:firehose:us-east-1:0:deliverystream/d=aws",
        auth="required",
    )
    shown = summary(settings, ["127.0.0.1:4566"], "000000000000")
    assert shown["store"] == "postgresql://redrive:***@db.example/redrive?password=***"
    assert shown["account"] == "by key"
    assert shown["set_up"] == ["text_messages", "functions", "streams"]
    assert not re.search("horse|staple|battery|correct|secret", json.dumps(shown))


# ---- requests ----------------------------------------------------------------------------------------------------


def test_requests_are_not_logged_unless_asked_for(tmp_path: Path) -> None:
    with serving(_MEMORY, "--log-level", "debug", "--log-format", "json", directory=tmp_path) as server:
        Sqs(server).queue()
    assert not events(server, "request")


@pytest.mark.parametrize("level", ["info", "error"])
def test_a_request_is_one_line(tmp_path: Path, level: str) -> None:
    flags = ("--request-log", "--log-format", "json", "--log-level", level)
    with serving(_MEMORY, *flags, directory=tmp_path) as server:
        queue = Sqs(server).queue()
        sent = queue.send("a body that is nobody's business")
    (line,) = [line for line in events(server, "request") if line["operation"] == "SendMessage"]
    assert re.fullmatch(_MOMENT, line.pop("time"))
    assert line.pop("ms") >= 0
    assert line.pop("bytes_in") > len("a body that is nobody's business")
    assert line.pop("bytes_out") > 0
    assert line == {
        "level": "INFO",
        "logger": "redrive.server.request_log",
        "message": "request",
        "client": "127.0.0.1",
        "account": "000000000000",
        "key": line["key"],
        "service": "sqs",
        "status": 200,
        "operation": "SendMessage",
        "error": None,
        "request_id": sent["ResponseMetadata"]["RequestId"],
    }
    assert "nobody's business" not in server.log.read_text()


def test_a_refusal_has_its_code_and_secrets_stay_out(tmp_path: Path) -> None:
    with serving(_MEMORY, "--request-log", "--log-format", "json", directory=tmp_path) as server:
        sqs = Sqs(server)
        with refused("AWS.SimpleQueueService.NonExistentQueue"):
            sqs.client.get_queue_url(QueueName="nowhere")
        server.ask("GET", "/_redrive/health?token=battery-staple")
        server.ask("POST", "/eventgrid/s/g/nowhere/api/events", b"[]", {"aeg-sas-key": "correct-horse"})
        path = "/subscriptions/s/providers/Microsoft.EventGrid/topics?api-version=2025-02-15"
        server.ask("GET", path, headers={"Authorization": "Bearer tea-pot"})
        server.ask("POST", "/", b"{}", {"X-Amz-Target": "DynamoDB_20120810.ListTables"})
        server.ask("POST", "/", b"Action=\xffNo+such", {"X-Amz-Target": 'AmazonSQS.a "b" c=d'})
    found, health, posted, listed, other, unknown = events(server, "request")[-6:]
    assert (found["operation"], found["status"], found["error"]) == (
        "GetQueueUrl",
        400,
        "QueueDoesNotExist",
    )
    assert (health["service"], health["operation"]) == ("redrive", "GET /_redrive/health")
    assert (health["status"], health["account"], health["error"]) == (200, None, None)
    assert (posted["service"], posted["error"], posted["status"]) == ("eventgrid", "NotFound", 404)
    assert (listed["status"], listed["operation"]) == (200, f"GET {path.partition('?')[0]}")
    assert (other["operation"], other["error"]) == ("ListTables", "UnknownOperationException")
    assert unknown["operation"] == 'a "b" c=d'
    log = server.log.read_text()
    assert not re.search("battery-staple|correct-horse|tea-pot|Signature|api-version", log)


def test_a_request_that_is_none_has_its_line(tmp_path: Path) -> None:
    with (
        serving(_MEMORY, "--request-log", directory=tmp_path) as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0)) as client,
    ):
        client.sendall(b"nonsense\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    (line,) = [line for line in server.log.read_text().splitlines() if "request.refused" in line]
    assert "client=127.0.0.1 status=400 error=" in line

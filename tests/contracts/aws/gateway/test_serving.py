"""The process: how it starts, refuses to start, ends, and what it knows when it is started again."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redrive.app import run
from redrive.engine.sweep import Sweeper
from redrive.model.errors import NotFound
from redrive.settings import Settings
from tests.contracts.aws.sqs.client import ACCOUNT, Sqs, new_name, redrive_policy, refused, text
from tests.services.programs import free_port
from tests.services.server import ServerFailedError, new_server, redrive, serving


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, run_directory: Path) -> str:
    """A store of the test's own."""
    if request.param == "sqlite":
        return f"sqlite:///{run_directory}/{new_name()}.db"
    url: str = request.getfixturevalue("postgres_database")
    return url


@pytest.fixture
def file(run_directory: Path) -> str:
    """A SQLite store of the test's own."""
    return f"sqlite:///{run_directory}/{new_name()}.db"


@contextlib.contextmanager
def started(store: str, *flags: str, log: Path) -> Iterator[Sqs]:
    log.mkdir(exist_ok=True)
    with serving(store, *flags, directory=log) as server:
        yield Sqs(server)


# ---- ending ------------------------------------------------------------------------------------------------------


def test_a_server_told_to_end_answers_long_polls(store: str, tmp_path: Path) -> None:
    with started(store, log=tmp_path) as sqs:
        queue = sqs.queue()
        polls = [queue.begin("receive_message", WaitTimeSeconds=20) for _ in range(3)]
        assert sqs.server.stop() == 0
        assert ["Messages" in poll.answer() for poll in polls] == [False, False, False]
        assert "ERROR" not in sqs.server.log.read_text()


def test_everything_is_there_when_it_is_started_again(store: str, tmp_path: Path) -> None:
    with started(store, log=tmp_path) as sqs:
        dead = sqs.fifo()
        queue = sqs.fifo(RedrivePolicy=redrive_policy(dead, 7), VisibilityTimeout="600")
        queue.call("tag_queue", Tags={"a": "b"})
        queue.call("add_permission", Label="l", AWSAccountIds=["200000000000"], Actions=["SendMessage"])
        settings = ("CreatedTimestamp", "Policy", "RedrivePolicy", "VisibilityTimeout", "QueueArn")
        before = queue.attributes(*settings)
        first = queue.send_fifo("1", MessageAttributes={"Foo": text("Bar")})
        second = queue.send_fifo("2")
        received = queue.receive(1)[0]
        standard = sqs.queue()
        standard.send("delayed", DelaySeconds=900)
        assert sqs.server.stop() == 0
        sqs.server.start()
        assert queue.attributes(*settings) == before
        assert queue.call("list_queue_tags")["Tags"] == {"a": "b"}
        assert queue.receive() == []
        assert queue.send_fifo("1")["MessageId"] == first["MessageId"]
        queue.delete(received)
        assert [one["MessageId"] for one in queue.receive()] == [second["MessageId"]]
        assert queue.send_fifo("3")["SequenceNumber"] > second["SequenceNumber"]
        assert standard.counts() == (0, 0, 1)


# ---- several servers ---------------------------------------------------------------------------------------------


def test_a_file_is_one_servers(file: str, tmp_path: Path) -> None:
    with started(file, log=tmp_path / "first") as sqs:
        second = new_server(file, directory=tmp_path)
        with pytest.raises(ServerFailedError, match=r"another server has .* open"):
            second.start()
        assert second.process.returncode == 1
        queue = sqs.queue()
        queue.send("served by the first")
        sqs.server.kill()
        second.start()
        try:
            assert Sqs(second).create(queue.name).bodies() == ["served by the first"]
        finally:
            second.kill()


def test_a_database_is_many_servers(postgres_database: str, tmp_path: Path) -> None:
    with (
        started(postgres_database, log=tmp_path / "one") as one,
        started(postgres_database, log=tmp_path / "other") as other,
    ):
        queue = one.queue()
        there = other.create(queue.name)
        poll = queue.begin("receive_message", WaitTimeSeconds=20)
        there.send("over there")
        (message,) = poll.answer()["Messages"]
        assert message["Body"] == "over there"
        there.delete(message)
        queue.set(VisibilityTimeout="7")
        queue.send("again")
        assert there.bodies() == ["again"]
        assert queue.receive() == []
        fifo = one.fifo()
        also = other.create(fifo.name, {"FifoQueue": "true"})
        first = fifo.send_fifo("1")
        assert also.send_fifo("1")["MessageId"] == first["MessageId"]
        assert also.send_fifo("2")["SequenceNumber"] > first["SequenceNumber"]
        assert fifo.bodies(1) == ["1"]
        assert also.receive() == []


# ---- starting ----------------------------------------------------------------------------------------------------


def fails(*arguments: str) -> tuple[int, str]:
    """The exit status and the error output of a `redrive` command that fails."""
    done = redrive(*arguments, timeout=20)
    return done.returncode, done.stderr


def test_a_server_without_authentication_listens_on_loopback_alone() -> None:
    status, said = fails("serve", "--host", "0.0.0.0", "--store", "sqlite://:memory:")
    assert status == 2
    assert "needs --auth required" in said


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, said = fails("serve", "--port", port, "--store", "sqlite://:memory:")
    assert status == 1
    assert said == f"redrive: 127.0.0.1:{port} is in use; choose another port: --port N\n"


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("keys", "list")])
def test_a_file_that_cannot_be_opened(command: tuple[str, ...], tmp_path: Path) -> None:
    status, said = fails(*command, "--store", f"sqlite:///{tmp_path}/none/redrive.db")
    assert status == 1
    assert said.startswith("redrive: cannot open ")
    assert "Traceback" not in said


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("keys", "list")])
def test_a_file_that_is_no_database(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "redrive.db").write_bytes(b"no database" * 1000)
    status, said = fails(*command, "--store", f"sqlite:///{tmp_path}/redrive.db")
    assert status == 1
    assert said.startswith("redrive: cannot open ")
    assert "Traceback" not in said


def test_an_unreachable_database_ends_the_start_with_one_line() -> None:
    status, said = fails("serve", "--port", "0", "--store", f"postgresql://127.0.0.1:{free_port()}/none")
    assert status == 1
    assert said.splitlines()[-1].startswith("redrive: ")
    assert "Traceback" not in said


def test_settings_come_from_flags_the_environment_and_a_file(tmp_path: Path) -> None:
    settings = tmp_path / "redrive.toml"
    settings.write_text('store = "nonsense"\nregion = "eu-west-1"\nallow_reset = true\n')
    server = new_server("sqlite://:memory:", "--config", str(settings), directory=tmp_path)
    server.environment = {"REDRIVE_PUBLIC_URL": "https://queues.example/", "REDRIVE_STORE": "nonsense"}
    server.start()
    try:
        url = server.ask("GET", "/?Action=CreateQueue&QueueName=q&Version=2012-11-05")[1].decode()
        assert f"<QueueUrl>https://queues.example/{ACCOUNT}/q</QueueUrl>" in url
        shown = server.ask(
            "GET",
            f"/{ACCOUNT}/q?Action=GetQueueAttributes&AttributeName.1=QueueArn&Version=2012-11-05",
        )[1].decode()
        assert f"arn:aws:sqs:eu-west-1:{ACCOUNT}:q" in shown
        assert server.ask("POST", "/_redrive/reset")[0] == 200
    finally:
        server.kill()


async def test_failing_upkeep_does_not_end_the_service(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    failed = asyncio.Event()

    async def fail(_: Sweeper) -> int:
        failed.set()
        raise NotFound("another node was faster")

    monkeypatch.setattr(Sweeper, "round", fail)  # nothing makes it fail at will
    serving_all_along = asyncio.create_task(
        run(Settings(store="sqlite://:memory:", port=0), ready.set_result)
    )
    port = urlsplit(await ready).port
    await failed.wait()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /_redrive/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()
    os.kill(os.getpid(), signal.SIGTERM)
    await serving_all_along
    assert "upkeep.failed" in caplog.text


# ---- what has to be asked for ------------------------------------------------------------------------------------


def test_a_server_in_earnest_has_no_reset_and_no_clock(tmp_path: Path) -> None:
    with started("sqlite://:memory:", log=tmp_path) as sqs:
        for method, path in (("POST", "reset"), ("GET", "clock"), ("POST", "clock")):
            assert sqs.server.ask(method, f"/_redrive/{path}", b'{"advance_seconds": 1}')[0] == 404


def test_the_quotas_of_fifo_queues_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    with started("sqlite://:memory:", "--fifo-quotas", "--clock", "simulated", log=tmp_path) as sqs:
        queue, fast = sqs.fifo(), sqs.fifo(FifoThroughputLimit="perMessageGroupId")
        for _ in range(300):
            queue.receive()
        with refused("RequestThrottled", "Rate exceeded", status=403):
            queue.receive()
        queue.send_fifo("another-method")
        for _ in range(301):
            fast.receive()
        sqs.server.advance(1)
        assert queue.bodies() == ["another-method"]


def test_a_simulated_clock_goes_on_where_the_last_run_stopped(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    with started(store, "--clock", "simulated", log=tmp_path) as sqs:
        began = sqs.server.now()
        sqs.server.advance(90)
        sqs.server.stop()
        sqs.server.start()
        assert sqs.server.now() == began + 90


@pytest.mark.parametrize(
    "path", ["/_redrive/health", "/_redrive/metrics", "/_localstack/health", "/health", "/"]
)
def test_the_head_of_what_is_shown_can_be_asked_for(path: str) -> None:
    with serving("sqlite://:memory:") as server:
        connection = server.connect()
        connection.request("GET", path, headers={"Accept": "*/*"})
        whole = connection.getresponse()
        length = len(whole.read())
        connection.request("HEAD", path, headers={"Accept": "*/*"})
        head = connection.getresponse()
        assert (head.status, head.headers["Content-Type"]) == (whole.status, whole.headers["Content-Type"])
        assert int(head.headers["Content-Length"]) == length
        assert head.read() == b""
        connection.close()

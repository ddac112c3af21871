"""Two workers of the real server on one address: started, summed, killed, exchanged and stopped."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import orjson
import pytest

from redrive.settings import Settings, SettingsInvalid
from tests.services.server import Server, serving, wait_for_line

SENT = re.compile(rb"^redrive_queue_messages_sent_total\{.*\} (\d+)$", re.MULTILINE)
SEND = "/?Action=SendMessage&MessageBody=m&QueueUrl=http://localhost/000000000000/shared"


class Callers:
    """Clients that come every few milliseconds, each over a connection of its own, to send a message."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sent = 0
        self.failures: list[str] = []
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._enough.wait(0.01):
            try:
                status, _ = self.server.ask("GET", SEND)
            except OSError as error:
                self.failures.append(repr(error))
            else:
                self.sent += status == 200
                if status != 200:
                    self.failures.append(str(status))


@pytest.fixture
def server(postgres_database: str, tmp_path: Path) -> Iterator[Server]:
    with serving(postgres_database, "--workers", "2", directory=tmp_path) as server:
        assert server.ask("GET", "/?Action=CreateQueue&QueueName=shared")[0] == 200
        yield server


def health(server: Server) -> tuple[int, int, str]:
    status, body = server.ask("GET", "/_redrive/health")
    assert status == 200
    answer = orjson.loads(body)
    return answer["workers"]["ready"], answer["workers"]["wanted"], answer["node"]


def sent(server: Server) -> int:
    status, body = server.ask("GET", "/_redrive/metrics")
    assert status == 200
    (number,) = SENT.findall(body)
    return int(number)


def nodes(server: Server, number: int) -> set[int]:
    """The process ids of so many workers, as they answer."""
    found: set[int] = set()
    while len(found) < number:
        found.add(int(health(server)[2].split("-")[-2]))
    return found


def test_workers_share_an_address_and_outlive_each_other(server: Server) -> None:
    first, second = before = nodes(server, 2)
    assert health(server)[:2] == (2, 2)
    assert server.process.pid not in before
    for _ in range(10):
        assert server.ask("GET", SEND)[0] == 200
    assert [sent(server) for _ in range(4)] == [10] * 4

    os.kill(first, signal.SIGKILL)
    wait_for_line(server.log, "worker.replaced")
    assert health(server)[:2] == (2, 2)
    assert sent(server) == 10
    assert f"worker.ended pid={first} status=-9" in server.log.read_text()

    with Callers(server) as callers:
        server.process.send_signal(signal.SIGHUP)
        wait_for_line(server.log, "worker.reloaded")
        after = nodes(server, 2)
    assert (callers.failures, after & {first, second}) == ([], set())
    assert callers.sent > 0
    assert sent(server) == 10 + callers.sent

    assert server.stop() == 0
    assert not [pid for pid in after if Path(f"/proc/{pid}").exists()]
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "orphaned" not in log


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"store": "sqlite:///redrive.db"}, "workers = 2 needs a PostgreSQL store"),
        ({"store": "postgresql://db/redrive", "clock": "simulated"}, "workers = 2 needs the system's clock"),
    ],
)
def test_workers_are_refused_where_they_cannot_share(settings: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsInvalid, match=said):
        Settings(workers=2, **settings)  # type: ignore[arg-type]  # strings all

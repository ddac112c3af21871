"""Events and messages of a function through kill -9 of the server and of its processes; nothing outlives the server."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.functions import FunctionRounds, function_server
from tests.services.server import Server

SEEDS = {3: "server", 4: "process"}  # `python -m tests.crash functions` runs as many as one likes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = function_server(f"sqlite:///{tmp_path}/redrive.db", tmp_path)
    server.start()
    yield server
    if server.process.poll() is None:
        server.kill()


def test_no_event_and_no_message_is_lost_and_attempts_are_counted(server: Server, tmp_path: Path) -> None:
    first = server.process.pid
    rounds = FunctionRounds(server, tmp_path)
    assert {seed: rounds.run(seed).crashed for seed in SEEDS} == SEEDS
    assert server.process.pid != first
    assert not list(Path(tempfile.gettempdir()).glob(f"redrive-functions-{first}.*"))

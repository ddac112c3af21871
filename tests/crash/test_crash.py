from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.rounds import Rounds, crash_server
from tests.services.postgres import PostgresServer

SEEDS = range(6)  # `python -m tests.crash` runs as many as one likes


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Rounds]:
    yield from _rounds(f"sqlite:///{tmp_path}/redrive.db", None)


@pytest.fixture
def on_postgres(durable_postgres: PostgresServer) -> Iterator[Rounds]:
    yield from _rounds(durable_postgres.url(), durable_postgres)


def _rounds(store: str, postgres: PostgresServer | None) -> Iterator[Rounds]:
    server = crash_server(store)
    server.start()
    yield Rounds(server, postgres)
    if server.process.poll() is None:
        server.kill()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_acknowledged_messages_survive_kill_9(request: pytest.FixtureRequest, store: str) -> None:
    rounds: Rounds = request.getfixturevalue(f"on_{store}")
    outcomes = [rounds.run(seed) for seed in SEEDS]
    assert sum(result.acknowledged for result in outcomes) > 100 * len(SEEDS)

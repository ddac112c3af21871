"""One server a store and a session, on a simulated clock, and one client a protocol."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.aws.sqs.client import Sqs
from tests.services.clients import Protocol
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving

_FLAGS = ("--clock", "simulated", "--allow-reset")


@pytest.fixture(scope="session")
def run_directory() -> Path:
    """A directory in memory, where there is memory: what survives a crash is tested elsewhere."""
    return Path(tempfile.mkdtemp(prefix="server-", dir=os.environ["REDRIVE_TESTS_RUN_DIRECTORY"]))


@pytest.fixture(scope="session")
def server_on_sqlite(run_directory: Path) -> Iterator[Server]:
    with serving(f"sqlite:///{run_directory}/redrive.db", *_FLAGS, directory=run_directory) as server:
        yield server
        _assert_nothing_went_wrong(server)


@pytest.fixture(scope="session")
def server_on_postgres(database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, *_FLAGS) as server:
        yield server
        _assert_nothing_went_wrong(server)


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server on each store, empty: a move of the clock looks at every queue there is."""
    started: Server = request.getfixturevalue(f"server_on_{request.param}")
    yield started
    started.reset()


@pytest.fixture(params=["json", "query"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    chosen: Protocol = request.param
    return chosen


@pytest.fixture
def sqs(server: Server, protocol: Protocol) -> Sqs:
    """SQS at the server, as boto3 speaks it."""
    return Sqs(server, protocol)


def _assert_nothing_went_wrong(server: Server) -> None:
    """Fail on errors in the log: a client sees its own answers, but not failures that only the log tells."""
    log = server.log.read_text()
    assert not [line for line in log.splitlines() if " ERROR " in line or "Traceback" in line], log[-5000:]

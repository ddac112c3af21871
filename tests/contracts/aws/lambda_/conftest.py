"""A server on each store that runs functions, on a simulated clock."""

from collections.abc import Iterator

import pytest

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving

_FLAGS = ("--clock", "simulated", "--allow-reset", "--functions", "on")


@pytest.fixture(scope="package")
def functions_on_sqlite() -> Iterator[Server]:
    with serving("sqlite://:memory:", *_FLAGS) as server:
        yield server
        _assert_nothing_went_wrong(server)


@pytest.fixture(scope="package")
def functions_on_postgres(database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, *_FLAGS) as server:
        yield server
        _assert_nothing_went_wrong(server)


@pytest.fixture(params=["sqlite", "postgres"])
def workshop(request: pytest.FixtureRequest) -> Iterator[Workshop]:
    server: Server = request.getfixturevalue(f"functions_on_{request.param}")
    yield Workshop(server)
    server.reset()


def _assert_nothing_went_wrong(server: Server) -> None:
    """Fail on errors in the log: a client sees its own answers, but not failures that only the log tells."""
    log = server.log.read_text()
    assert not [line for line in log.splitlines() if " ERROR " in line or "Traceback" in line], log[-5000:]

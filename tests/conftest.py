"""What every test may ask for: a PostgreSQL database, and how hard Hypothesis searches.

`pytest` repeats the same examples on every machine; `pytest --hypothesis-profile=deep` searches for new ones, and
`pytest --quick --hypothesis-profile=quick` is over in a minute.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from tests.services.azurite import Azurite, shared_azurite
from tests.services.postgres import (
    DatabaseMaker,
    PostgresServer,
    end_run,
    new_run_directory,
    own_server,
    shared_server,
)
from tests.services.rabbitmq import RabbitMq, shared_rabbitmq

# No deadline in either: on two shared cores a slow example says nothing about the code.
settings.register_profile("ci", derandomize=True, max_examples=60, deadline=None, database=None)
settings.register_profile("deep", max_examples=5000, deadline=None, print_blob=True)
settings.register_profile("quick", derandomize=True, max_examples=15, deadline=None, database=None)
settings.load_profile("ci")

# What needs a server of somebody else's: it takes seconds to start, and packages to install.
_SERVICES: Final = frozenset({"postgres_server", "durable_postgres", "azurite", "rabbitmq"})

_RUN_DIRECTORY: Final = (
    "REDRIVE_TESTS_RUN_DIRECTORY"  # in the environment, which pytest-xdist's workers inherit
)
_WORKER: Final = "PYTEST_XDIST_WORKER"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="leave out what needs a database, a broker or Azurite"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        left_out = [item for item in items if _needs_services(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _needs_services(item)]


def _needs_services(item: pytest.Item) -> bool:
    """Whether a test asks for another server, by a fixture or by the store that its parameter names."""
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return bool(fixtures & _SERVICES) or "postgres" in parameters.values()


def pytest_configure(config: pytest.Config) -> None:
    if _WORKER not in os.environ:
        os.environ[_RUN_DIRECTORY] = str(new_run_directory())


def pytest_unconfigure(config: pytest.Config) -> None:
    if _WORKER not in os.environ:
        end_run(_run_directory())


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """The PostgreSQL server of this test run. Do not crash it: others use it too."""
    return shared_server(_run_directory())


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of the run's server, at its maintenance database."""
    return postgres_server.url()


@pytest.fixture(scope="session")
def database_maker(postgres_server: PostgresServer) -> Iterator[DatabaseMaker]:
    maker = DatabaseMaker(postgres_server, prefix=f"test_{os.environ.get(_WORKER, 'main')}")
    yield maker
    maker.close()


@pytest.fixture
def postgres_database(database_maker: DatabaseMaker) -> Iterator[str]:
    """The URL of an empty database that only this test has."""
    with database_maker.database() as url:
        yield url


@pytest.fixture
def durable_postgres() -> Iterator[PostgresServer]:
    """A server of the test's own, with fsync on, to be crashed and started again."""
    server = own_server(_run_directory())
    yield server
    server.crash()


@pytest.fixture(scope="session")
def azurite() -> Azurite:
    """The storage emulator of this test run, and its one account. Others use it too: make containers of your own."""
    return shared_azurite(_run_directory())


@pytest.fixture(scope="session")
def rabbitmq() -> RabbitMq:
    """The AMQP broker of this test run. Others use it too: send to queues of your own."""
    return shared_rabbitmq(_run_directory())


def _run_directory() -> Path:
    return Path(os.environ[_RUN_DIRECTORY])

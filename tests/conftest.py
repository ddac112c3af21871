"""Fixtures for every test: a PostgreSQL database, and how hard Hypothesis searches.

`pytest` repeats the same examples on every machine; `pytest --hypothesis-profile=deep` searches for new ones, and
`pytest --quick --hypothesis-profile=quick` is over in a minute.
"""

import functools
import gc
import os
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import botocore.loaders
import botocore.parsers
import botocore.session
import pytest
from hypothesis import settings

from redrive.stores.postgres.distributing import distribute
from tests.services.azurite import Azurite, shared_azurite
from tests.services.citus import CITUS_VARIABLE, CitusCluster, blocking, empty, named_cluster
from tests.services.pgbouncer import POOLED_VARIABLE, Mode, PgBouncer, own_pgbouncer, shared_pgbouncer
from tests.services.postgres import (
    DatabaseMaker,
    PostgresServer,
    end_run,
    new_run_directory,
    own_server,
    shared_server,
)
from tests.services.programs import FORKED, START_VARIABLE, end_all
from tests.services.rabbitmq import RabbitMq, shared_rabbitmq

# No deadline in either: on two shared cores a slow example says nothing about the code.
settings.register_profile("ci", derandomize=True, max_examples=60, deadline=None, database=None)
settings.register_profile("deep", max_examples=5000, deadline=None, print_blob=True)
settings.register_profile("quick", derandomize=True, max_examples=15, deadline=None, database=None)
settings.load_profile("ci")

# Each session of botocore would read the published models anew: 60 to 150 ms of a processor for a client, not 10.
botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)


def _without_name_servers(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Look-ups that know this machine and literal addresses, and no other name: tests ask no name server.

    A push to an endpoint that was made up fails at once then, and not in as long as the network takes to say no.
    """

    @functools.wraps(ask)
    def look_up(host: Any, *rest: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host or ""
        if name and not name.endswith("localhost") and name != socket.gethostname():
            ask(name, 0, flags=socket.AI_NUMERICHOST)  # fails for a name as for one that nobody knows
        return ask(host, *rest, **named)

    return look_up


def _of_our_time(parse: Callable[[Any], datetime]) -> Callable[[Any], datetime]:
    """Botocore's reader of timestamps, for which a date before this century is a mistake of the server's.

    Seconds that are sent in the place of milliseconds, or converted twice, are in January 1970, and a test that only
    asks whether the member is there sees nothing of it.
    """

    @functools.wraps(parse)
    def read(value: Any) -> datetime:
        moment = parse(value)
        assert moment.year >= 2000, f"an answer has the timestamp {value}, which is {moment}"
        return moment

    return read


socket.getaddrinfo = _without_name_servers(socket.getaddrinfo)
botocore.parsers.DEFAULT_TIMESTAMP_PARSER = _of_our_time(botocore.parsers.DEFAULT_TIMESTAMP_PARSER)

# What needs a server of somebody else's: it takes seconds to start, and packages to install.
_ON_CITUS: Final = frozenset({"citus", "citus_cluster"})
_SERVICES: Final = (
    frozenset({"postgres", "postgres_server", "durable_postgres", "azurite", "rabbitmq", "browser"})
    | _ON_CITUS
)
_WITHOUT_CITUS: Final = pytest.StashKey[int]()  # tests left out, since no cluster is named

_RUN_DIRECTORY: Final = (
    "REDRIVE_TESTS_RUN_DIRECTORY"  # in the environment, which pytest-xdist's workers inherit
)
_WORKER: Final = "PYTEST_XDIST_WORKER"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="leave out what needs a database, a broker or Azurite"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected, which stays, out of the search for garbage: a third of collecting, and 0.5 s each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        _leave_out(config, items, {item for item in items if _asks_for(item, _SERVICES)})
    if CITUS_VARIABLE not in os.environ:
        without = {item for item in items if _asks_for(item, _ON_CITUS)}
        _leave_out(config, items, without)
        config.stash[_WITHOUT_CITUS] = len(without)


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=sorted(left_out, key=items.index))
    items[:] = [item for item in items if item not in left_out]


def _asks_for(item: pytest.Item, services: frozenset[str]) -> bool:
    """True if a test asks for such a server, by a fixture or by the store that its parameter names."""
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = {value for value in parameters.values() if isinstance(value, str)}
    return bool(services & (fixtures | names))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Hear from one of pytest-xdist's workers, all of which collect the same, what it has left out."""
    node.config.stash[_WITHOUT_CITUS] = getattr(node, "workeroutput", {}).get(CITUS_VARIABLE, 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _WORKER in os.environ:
        session.config.workeroutput[CITUS_VARIABLE] = session.config.stash.get(_WITHOUT_CITUS, 0)  # type: ignore[attr-defined]  # pytest-xdist's


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if number := config.stash.get(_WITHOUT_CITUS, 0):
        terminalreporter.write_line(
            f"{number} tests did not run: they need a Citus cluster, which {CITUS_VARIABLE}=postgresql://… would name"
        )


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(START_VARIABLE, FORKED)
    if _WORKER not in os.environ:
        os.environ[_RUN_DIRECTORY] = str(new_run_directory())


def pytest_unconfigure(config: pytest.Config) -> None:
    end_all()
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
    url = shared_pgbouncer(postgres_server, "session").url if POOLED_VARIABLE in os.environ else None
    maker = DatabaseMaker(postgres_server, f"test_{os.environ.get(_WORKER, 'main')}", url)
    yield maker
    maker.close()


@pytest.fixture
def postgres_database(database_maker: DatabaseMaker) -> Iterator[str]:
    """The URL of an empty database that only this test has."""
    with database_maker.database() as url:
        yield url


@pytest.fixture
def direct_database(postgres_server: PostgresServer, postgres_database: str) -> str:
    """The URL of that database without any pooler: for what a pooler answers itself, or keeps."""
    return postgres_server.url(urlsplit(postgres_database).path.removeprefix("/"))


@pytest.fixture
def schema_database(database_maker: DatabaseMaker) -> Iterator[str]:
    """The URL of a database that only this test has, with the tables of a store and nothing in them."""
    with database_maker.database(database_maker.schema) as url:
        yield url


@pytest.fixture
def emptied_database(database_maker: DatabaseMaker) -> str:
    """The URL of such a database that earlier tests of this process have used, and the next ones will."""
    return database_maker.emptied()


@pytest.fixture
def by_pgbouncer(postgres_server: PostgresServer, postgres_database: str) -> Callable[[Mode], str]:
    """The URL of that database by way of a pooler in the mode asked for."""
    name = urlsplit(postgres_database).path.removeprefix("/")
    return lambda mode: shared_pgbouncer(postgres_server, mode).url(name)


@pytest.fixture
def by_small_pool(postgres_server: PostgresServer, postgres_database: str) -> Iterator[Callable[[int], str]]:
    """The URL of that database by way of a pooler in session mode that gives so many sessions at once."""
    name = urlsplit(postgres_database).path.removeprefix("/")
    poolers: list[PgBouncer] = []

    def url(sessions: int) -> str:
        directory = Path(tempfile.mkdtemp(prefix="pgbouncer-small-", dir=postgres_server.directory.parent))
        directory.chmod(0o755)
        poolers.append(own_pgbouncer(postgres_server, "session", directory, default_pool_size=sessions))
        return poolers[-1].url(name)

    yield url
    for pooler in poolers:
        pooler.kill()


@pytest.fixture(scope="session")
def citus_cluster() -> CitusCluster:
    """The cluster that REDRIVE_TEST_CITUS names. Others use it too: make databases of your own."""
    return named_cluster(f"redrive_test_{os.environ.get(_WORKER, 'main')}")


@pytest.fixture(scope="session")
def _distributed_database(citus_cluster: CitusCluster) -> Iterator[str]:
    with citus_cluster.database() as url:
        blocking(distribute(url))
        yield url


@pytest.fixture
def citus_database(_distributed_database: str) -> str:
    """The URL of a distributed database with nothing in it, that only this test has."""
    empty(_distributed_database)
    return _distributed_database


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

"""Stores for the contract suite: every test that asks for `home` or what stands in it runs on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.engine.ports import Store
from tests.contracts.stores import homes
from tests.contracts.stores.bench import Bench
from tests.contracts.stores.homes import Home

# The fixtures with their URLs. `test_migrations` and the servers' tests show that a store makes its tables itself.
_DATABASES = {"postgres": "emptied_database", "citus": "citus_database"}


def make_home(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """The place that a test's parameter names."""
    if kind == "sqlite-memory":
        return homes.in_memory()
    if kind == "sqlite-file":
        return homes.in_file(tmp_path / "redrive.db")
    return homes.in_postgres(request.getfixturevalue(_DATABASES[kind]), kind)


@pytest.fixture(params=["sqlite-memory", "sqlite-file", "postgres", "citus"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """Any store's place."""
    home = make_home(request.param, request, tmp_path)
    yield home
    await home.leave()


@pytest.fixture(params=["sqlite-file", "postgres", "citus"])
async def lasting_home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """A place that outlives its stores."""
    home = make_home(request.param, request, tmp_path)
    yield home
    await home.leave()


@pytest.fixture(params=["postgres", "citus"])
def shared_database(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database for several nodes at once."""
    url: str = request.getfixturevalue(_DATABASES[request.param])
    return url


@pytest.fixture
async def shared_home(shared_database: str, request: pytest.FixtureRequest) -> AsyncIterator[Home]:
    """A place for several nodes at once."""
    home = homes.in_postgres(shared_database, request.node.callspec.params["shared_database"])
    yield home
    await home.leave()


@pytest.fixture
async def store(home: Home) -> Store:
    return await home.open()


@pytest.fixture
async def plain(store: Store) -> Bench:
    """A queue without order."""
    return Bench(store, await store.new_id())


@pytest.fixture
async def fifo(store: Store) -> Bench:
    """A queue that keeps the order of groups."""
    return Bench(store, await store.new_id(), ordered=True)


@pytest.fixture(params=["plain", "fifo"])
def queue(request: pytest.FixtureRequest, plain: Bench, fifo: Bench) -> Bench:
    """A queue without order, and one that keeps it."""
    return plain if request.param == "plain" else fifo


@pytest.fixture
async def dead_letters(store: Store) -> Bench:
    """A dead-letter queue without order."""
    return Bench(store, await store.new_id())


@pytest.fixture
async def fifo_dead_letters(store: Store) -> Bench:
    """A dead-letter queue that keeps the order of groups."""
    return Bench(store, await store.new_id(), ordered=True)

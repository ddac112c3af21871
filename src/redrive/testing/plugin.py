"""Fixtures for pytest: `pytest_plugins = ["redrive.testing.plugin"]` in the top `conftest.py` offers them.

`redrive_server` is a server of the test run's own, empty at the beginning of each test; `redrive_clock` is its time.
"""

from collections.abc import Iterator

import pytest

from redrive.testing.server import RedriveClock, RedriveServer


@pytest.fixture(scope="session")
def redrive_process() -> Iterator[RedriveServer]:
    """The server of this run, with whatever the tests before left in it; most tests want `redrive_server`."""
    server = RedriveServer.start()
    yield server
    server.stop()


@pytest.fixture
def redrive_server(redrive_process: RedriveServer) -> RedriveServer:
    """A real server on a free port, with nothing in it."""
    redrive_process.reset()
    return redrive_process


@pytest.fixture
def redrive_clock(redrive_server: RedriveServer) -> RedriveClock:
    """The time of `redrive_server`, which stands still until the test moves it."""
    return redrive_server.clock

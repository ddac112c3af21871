"""A server whose time stands still, and Debian's Chromium with the driver of the same package."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import chromium
from tests.browser.screen import Screen
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.contracts.azure.grid import Grid, Subscriber, grid_at
from tests.services.server import Server, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--allow-reset", "--functions", "on") as server:
        yield server


@pytest.fixture
def sns(server: Server) -> Sns:
    server.reset()
    return Sns(server)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook().serving() as webhook:
        yield webhook


@pytest.fixture
def grid(server: Server) -> Iterator[Grid]:
    """A resource group of an empty server."""
    server.reset()
    with grid_at(server) as grid:
        yield grid


@pytest.fixture
def subscriber() -> Iterator[Subscriber]:
    with Subscriber().serving() as subscriber:
        yield subscriber


@pytest.fixture(scope="session")
def browser() -> Iterator[Screen]:
    """The one browser of a test process."""
    with chromium() as screen:
        yield screen


@pytest.fixture
def screen(browser: Screen) -> Iterator[Screen]:
    """The browser's window; a test fails that leaves a complaint on its console.

    It is left before the next test removes what it shows, for which it would go on asking.
    """
    yield browser
    browser.leave()
    assert browser.complaints() == []

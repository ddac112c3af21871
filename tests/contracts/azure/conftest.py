"""Fixtures that the tests of Azure's services share."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.contracts.azure.grid import Grid
from tests.contracts.azure.namespaces import Shop
from tests.contracts.azure.resources import Resources, Webhook
from tests.services.server import Server


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    """A namespace on each store, with a topic and nobody who is subscribed to it yet."""
    shop = Shop(server)
    shop.open()
    yield shop
    shop.close()


@pytest.fixture
def hook() -> Iterator[Webhook]:
    """A webhook that agrees to everything."""
    with Webhook().serving() as hook:
        yield hook


@pytest.fixture
def resources(server: Server, hook: Webhook) -> Iterator[Resources]:
    """The resource manager on each store."""
    resources = Resources(server, hook)
    yield resources
    resources.client.close()


@pytest.fixture
def grid(resources: Resources) -> Iterator[Grid]:
    """Topics and domains on each store, and whoever publishes to them."""
    with contextlib.closing(Grid(resources)) as grid:
        yield grid

"""What the tests of Azure's services share."""

from collections.abc import Iterator

import pytest

from tests.contracts.protocols.azure.namespaces import Shop
from tests.services.server import Server


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    """A namespace on each store, with a topic and nobody who is subscribed to it yet."""
    shop = Shop(server)
    shop.open()
    yield shop
    shop.close()

"""API Gateway on each store."""

import pytest

from tests.contracts.protocols.apigateway.gateways import Gateways
from tests.services.server import Server


@pytest.fixture
def gateways(server: Server) -> Gateways:
    return Gateways(server)


@pytest.fixture
def gateway(server_on_sqlite: Server) -> Gateways:
    """For what no store has to do with."""
    server_on_sqlite.reset()
    return Gateways(server_on_sqlite)

"""API Gateway on each store."""

from collections.abc import Iterator

import pytest

from tests.contracts.aws.apigateway.gateways import Gateways
from tests.services.server import Server


@pytest.fixture
def gateways(server: Server) -> Gateways:
    return Gateways(server)


@pytest.fixture
def gateway(server_on_sqlite: Server) -> Iterator[Gateways]:
    """For what no store has to do with."""
    yield Gateways(server_on_sqlite)
    server_on_sqlite.reset()

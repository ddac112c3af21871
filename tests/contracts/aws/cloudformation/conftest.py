"""Stacks on each store."""

import pytest

from tests.contracts.aws.cloudformation.stacks import Stacks
from tests.services.server import Server


@pytest.fixture
def stacks(server: Server) -> Stacks:
    return Stacks(server)

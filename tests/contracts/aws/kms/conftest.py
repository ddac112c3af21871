"""KMS of a server on each store."""

import pytest

from tests.contracts.aws.kms.keys import kms_of
from tests.services.clients import Client
from tests.services.server import Server


@pytest.fixture
def kms(server: Server) -> Client:
    return kms_of(server)

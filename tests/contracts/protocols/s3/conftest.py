"""S3 of a server on each store, and a bucket there."""

from typing import Any

import pytest

from tests.contracts.protocols.s3.buckets import BUCKET, client
from tests.services.server import Server


@pytest.fixture
def s3(server: Server) -> Any:
    made = client(server)
    made.create_bucket(Bucket=BUCKET)
    return made

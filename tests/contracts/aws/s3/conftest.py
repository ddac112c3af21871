"""S3 of a server on each store, and a bucket there."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contracts.aws.s3.buckets import BUCKET, client, close_clients
from tests.services.server import Server


@pytest.fixture
def s3(server: Server) -> Any:
    made = client(server)
    made.create_bucket(Bucket=BUCKET)
    return made


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Ends every test without a connection that waits to be collected."""
    yield
    close_clients()

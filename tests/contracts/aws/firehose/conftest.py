"""Firehose of a server on each store, and a bucket there."""

import pytest

from tests.contracts.aws.firehose.landing import BUCKET, Landing
from tests.services.server import Server


@pytest.fixture
def landing(server: Server) -> Landing:
    made = Landing(server)
    made.s3.create_bucket(Bucket=BUCKET)
    return made

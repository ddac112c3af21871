"""A stage for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.aws.cloudwatch import stage as stages
from tests.aws.cloudwatch.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with stages.stage() as made:
        yield made

"""A stage with a log group in which a stream is."""

from collections.abc import AsyncIterator

import pytest

from tests.aws.cloudwatch import stage as stages
from tests.aws.cloudwatch.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with stages.stage() as made:
        await made.call("logs", "CreateLogGroup", logGroupName="g")
        await made.call("logs", "CreateLogStream", logGroupName="g", logStreamName="s")
        yield made

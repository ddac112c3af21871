"""Each test has a stage of its own."""

from collections.abc import AsyncIterator

import pytest

from tests.aws.sns.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    await stage.engine.open()
    yield stage
    await stage.engine.close()

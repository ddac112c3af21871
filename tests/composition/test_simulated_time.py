"""Simulated time waits for the disk once, however much happens on the way."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.composition.simulated_time import SimulatedTime
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest, Runtime
from redrive.model.retry import Phase, RetrySchedule, Stage
from redrive.model.topic import Publication, Subscription, Topic
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.sqlite import transaction
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.telemetry import Telemetry
from tests.engine.samples import named
from tests.engine.stage import BROKEN, PlainProfile, ScriptedEndpoint

RETRIES = 200
WAIT_MS = 20_000


class Days:
    """A server's engine on a file, whose time is simulated, and an endpoint that is always broken."""

    def __init__(self, file: Path) -> None:
        self.commits = 0
        self.syncs = 0
        self.clock = SimulatedClock()
        self.store = SqliteStore(file, meter=self)
        self.profile = PlainProfile()
        self.profile.schedule = RetrySchedule((Stage(Phase.POST_BACKOFF, RETRIES, WAIT_MS, WAIT_MS),))
        self.endpoint = ScriptedEndpoint(self.clock, otherwise=BROKEN)
        runtime = Runtime(self.clock, random.Random(0), "one")
        self.engine = Engine(self.store, runtime, {"plain": self.profile}, {"push": self.endpoint})
        resources = self.engine.resources
        self.telemetry = Telemetry(
            self.store,
            self.clock,
            resources.queues,
            resources.topics,
            self.engine.messages.archive_size,
            resources.subscriptions.of_backlog,
            simulated=True,
        )
        self.engine.add_listener(self.telemetry.metrics)
        self.time = SimulatedTime(self.clock, self.engine, self.telemetry)

    async def open(self) -> None:
        await self.engine.open()
        self.store.connection.set_commit_hook(self.committed)
        self.telling = asyncio.create_task(self.telemetry.run())

    def begin(self) -> float:
        """A commit begins that waits for the disk."""
        self.syncs += 1
        return 0.0

    def end(self, began: float, calls: int) -> None:
        """The commit is done."""

    def committed(self) -> bool:
        self.commits += 1
        return False

    async def publish(self) -> None:
        topic = await self.engine.resources.topics.create(Topic(0, named("t"), "plain"))
        await self.engine.resources.subscriptions.create(
            Subscription("s", topic.name, 0, "1", "push", "somewhere")
        )
        await self.engine.messages.publish(topic, [Publication(b"0" * 16, "a", {}, {}, b"{}", 1)])
        await self.engine.until_quiet()


@pytest.fixture
async def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Days]:
    monkeypatch.setattr(transaction, "OPEN_SECONDS", 60)  # a slow machine is no reason for more commits
    days = Days(tmp_path / "redrive.db")
    await days.open()
    yield days
    days.telling.cancel()
    await asyncio.wait([days.telling])
    await days.engine.close()


async def test_hundreds_of_attempts_are_a_few_commits_and_one_sync(days: Days) -> None:
    await days.publish()
    days.commits = days.syncs = 0
    assert await days.time.advance((RETRIES + 1) * WAIT_MS) == RETRIES
    assert days.syncs == 1
    assert days.commits < 10
    waits = [later - sooner for (sooner, _), (later, _) in itertools.pairwise(days.endpoint.pushed)]
    assert len(waits) == RETRIES
    assert all(abs(wait - WAIT_MS) < WAIT_MS / 10 for wait in waits)


async def test_the_moment_is_on_disk_when_it_was_answered(days: Days) -> None:
    await days.time.advance(1000)
    assert days.syncs > 0
    syncs = days.syncs
    await days.time.advance(0)
    assert days.syncs == syncs + 1


async def test_a_client_is_answered_from_the_disk_while_time_passes(days: Days) -> None:
    await days.publish()
    half_way = asyncio.Event()

    async def note(_: PushRequest) -> None:
        if len(days.endpoint.pushed) == RETRIES // 2:
            half_way.set()

    days.endpoint.before = note
    passing = asyncio.create_task(days.time.advance((RETRIES + 1) * WAIT_MS))
    await half_way.wait()
    before = days.syncs
    await days.engine.resources.topics.create(Topic(0, named("made meanwhile"), "plain"))
    assert days.syncs > before
    assert not passing.done()
    assert await passing == RETRIES

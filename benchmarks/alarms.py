"""The cost of alarms: processor time of evaluating many of them for one minute."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import uvloop

from benchmarks.bench import Bench
from benchmarks.figures import Figure, under
from redrive.aws.cloudwatch.alarms.records import ALARMS, METRIC, OK, Alarm, State
from redrive.aws.cloudwatch.facade import CloudWatch
from redrive.composition.store import open_store
from redrive.engine.engine import Engine
from redrive.engine.ports import NodeStore
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.runtime.machine import real_runtime
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import Settings

MANY: Final = 1_000
MANY_MS_MAX: Final = 200
_ROUNDS: Final = 5
_HERE: Final = ResourceName("000000000000", "us-east-1")


def counters(bench: Bench) -> Iterator[Figure]:
    """A thousand alarms, each on a metric of its own that has a point each minute."""
    with bench.new_store() as store_url:
        spent_ms = uvloop.run(cost(store_url, MANY))
    yield Figure(f"{MANY:,} alarms, one minute", spent_ms, "ms", "processor time", under(MANY_MS_MAX))


async def cost(store_url: str, alarms: int) -> float:
    """Processor time (ms) of evaluating so many alarms for a minute, the least of some minutes."""
    async with _standing(store_url) as (store, engine, cloudwatch):
        for number in range(alarms):
            alarm = _alarm(number, engine.clock.now())
            await engine.resources.documents.create(ALARMS, alarm.name.key, alarm)
        spent = [await _minute(store, engine, cloudwatch, alarms) for _ in range(_ROUNDS)]
        return min(spent) * 1000


async def _minute(store: NodeStore, engine: Engine, cloudwatch: CloudWatch, alarms: int) -> float:
    now = engine.clock.now()
    await store.add_points([_point(number, now) for number in range(alarms)])
    assert isinstance(engine.clock, SimulatedClock)
    await engine.clock.advance(MINUTE_MS, engine.until_quiet)
    began = time.process_time()
    await cloudwatch.evaluator.evaluate(engine.clock.now())
    return time.process_time() - began


@asynccontextmanager
async def _standing(store_url: str) -> AsyncIterator[tuple[NodeStore, Engine, CloudWatch]]:
    runtime = real_runtime(SimulatedClock())
    store = open_store(Settings(store=store_url), runtime)
    engine = Engine(store, runtime)
    cloudwatch = CloudWatch(store, engine, _settled, {}, simulated=True, open_functions=False)
    await engine.connect()
    try:
        yield store, engine, cloudwatch
    finally:
        await engine.close()


async def _settled() -> None:
    await asyncio.sleep(0)


def _series(number: int) -> Series:
    return Series(_HERE.account, _HERE.region, "bench", "m", (("of", str(number)),))


def _point(number: int, now: int) -> MetricPoint:
    return MetricPoint(_series(number), now, "None", Statistics.of(0.0))


def _alarm(number: int, now: int) -> Alarm:
    given = {
        "Namespace": "bench",
        "MetricName": "m",
        "Dimensions": [{"Name": "of", "Value": str(number)}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 3,
        "Threshold": 0.0,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    state = State(OK, "", None, now, now)
    return Alarm(_HERE._replace(name=f"alarm-{number}"), METRIC, given, state, now)

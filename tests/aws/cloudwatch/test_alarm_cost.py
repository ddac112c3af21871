"""Evaluating many alarms costs little more than reading their metrics would, one by one."""

import time

from redrive.aws.cloudwatch.alarms.evaluator import Evaluator
from redrive.engine.ports import NodeStore
from redrive.model.metric import MINUTE_MS, PointQuery, Series
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage

ALARMS = 200
ROUNDS = 3


async def asked_one_by_one(store: NodeStore, now: int) -> float:
    """Processor time (s) of asking the store for each metric, and of doing nothing with the answers."""
    began = time.process_time()
    for number in range(ALARMS):
        series = Series(ACCOUNT, REGION, "test", f"m{number}")
        await store.find_points(PointQuery((series,), now - 5 * MINUTE_MS, now, MINUTE_MS))
    return time.process_time() - began


async def evaluated(evaluator: Evaluator, now: int) -> float:
    """Processor time (s) of evaluating all alarms."""
    began = time.process_time()
    await evaluator.evaluate(now)
    return time.process_time() - began


async def test_evaluating_costs_less_than_twice_the_questions(stage: Stage) -> None:
    for number in range(ALARMS):
        await stage.alarm(f"a{number}", MetricName=f"m{number}", EvaluationPeriods=3, Threshold=9.0)
        await stage.put(f"m{number}", Value=1.0)
    await stage.advance(60)
    assert await stage.state("a7") == "OK"
    (evaluator,) = (
        part
        for extension in stage.server.extensions
        for part in extension.lifecycle.clock_driven
        if isinstance(part, Evaluator)
    )
    store, now = stage.server.core.store, stage.now
    together = min([await evaluated(evaluator, now) for _ in range(ROUNDS)])
    apart = min([await asked_one_by_one(store, now) for _ in range(ROUNDS)])
    assert together < 2 * apart

from itertools import pairwise

import pytest

from redrive.model.names import ResourceName
from redrive.model.task import (
    LOOK_AGAIN_MS,
    PROGRESS_MAX,
    CarefulPace,
    CarefulStep,
    MoveTask,
    Progress,
    SampleOutcomes,
    careful_step,
)

PACE = CarefulPace()
TEN_TAKEN = SampleOutcomes(10, taken=10, failed=0)
AGAIN = CarefulStep(wait_ms=LOOK_AGAIN_MS)
STOP = CarefulStep(stop=True)


@pytest.mark.parametrize(
    ("moved", "fares", "passed_ms", "step"),
    [
        (0, SampleOutcomes(), None, CarefulStep(move=10)),
        (7, SampleOutcomes(7, 0, 0), None, CarefulStep(move=3)),
        (10, SampleOutcomes(10, 0, 0), None, AGAIN),  # nobody has tried them yet
        (10, SampleOutcomes(10, 9, 0), None, AGAIN),
        (10, SampleOutcomes(10, 0, 10), None, STOP),
        (10, SampleOutcomes(10, 8, 2), None, STOP),
        (10, SampleOutcomes(10, 9, 1), None, CarefulStep(move=1, wait_ms=200)),  # one alone may be a chance
        (10, SampleOutcomes(1, 0, 1), None, STOP),  # but not if it is all there is
        (10, TEN_TAKEN, None, CarefulStep(move=1, wait_ms=200)),
        (10, TEN_TAKEN, 0, CarefulStep(move=1, wait_ms=200)),
        (60, TEN_TAKEN, 20_000, CarefulStep(move=5, wait_ms=250)),
        (9000, TEN_TAKEN, 90_000, CarefulStep(move=100, wait_ms=200)),
        (9000, SampleOutcomes(50, 24, 0), 90_000, AGAIN),  # the endpoint is slower than this
        (9000, SampleOutcomes(50, 25, 0), 90_000, CarefulStep(move=100, wait_ms=200)),
        (9000, SampleOutcomes(50, 48, 2), 90_000, CarefulStep(move=100, wait_ms=200)),
        (9000, SampleOutcomes(50, 47, 3), 90_000, STOP),
        (9000, SampleOutcomes(50, 0, 2), 90_000, STOP),
    ],
)
def test_the_next_step_is_decided_by_the_fates_of_the_last(
    moved: int, fares: SampleOutcomes, passed_ms: int | None, step: CarefulStep
) -> None:
    assert careful_step(PACE, moved, fares, passed_ms, 100) == step


@pytest.mark.parametrize(
    ("passed_ms", "rate"), [(0, 5), (9_999, 5), (10_000, 10), (30_000, 40), (70_000, 500), (10**9, 500)]
)
def test_the_rate_doubles_up_to_its_bound(passed_ms: int, rate: int) -> None:
    assert PACE.rate_after(passed_ms) == rate


@pytest.mark.parametrize(
    ("number", "takes_ms"),
    [(0, 0), (10, 0), (20, 2_000), (60, 10_000), (160, 20_000), (200, 22_000), (39_998, 137_276)],
)
def test_the_time_of_a_pace_is_the_sum_of_its_steps(number: int, takes_ms: int) -> None:
    assert PACE.duration_ms(number) == takes_ms


def test_the_progress_of_a_task_is_kept_evenly_whatever_it_takes() -> None:
    task = MoveTask("t", ResourceName("", ""), None, None, 100_000, 1_000, 10**9)
    for second in range(1, 10_001):
        task = task.with_moved(7, 1_000 + second * 1_000)
        assert len(task.progress) <= PROGRESS_MAX
    assert task.progress[0] == Progress(1_000, 0)
    assert task.progress[-1] == Progress(10_001_000, 70_000)
    gaps = [after.at - before.at for before, after in pairwise(task.progress)]
    assert max(gaps) < 1_000_000
    assert all((each.at - 1_000) * 7 == each.moved * 1_000 for each in task.progress)
    assert MoveTask.from_document(task.to_document()) == task

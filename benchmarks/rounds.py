"""Two servers under the same load in turn, and what one reaches of the other's speed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.bench import Scale
from benchmarks.figures import Bound, Figure
from benchmarks.load import Run, put_load
from benchmarks.servers import Target


@dataclass(frozen=True, slots=True)
class Lane:
    """One side of a comparison.

    Attributes:
        name: What it is called in the table.
        target: The server.
        place: The queue's URL, or the topic's ARN, of the next run.
        groups: Message groups to spread over; 0 for none.
    """

    name: str
    target: Target
    place: Callable[[], str]
    groups: int = 0


Runs = dict[str, list[Run]]


def in_turn(scale: Scale, lanes: Sequence[Lane], load: str, connections: int) -> Runs:
    """The runs of each lane, one after the other in every round: a slow minute of the machine hits them all."""
    runs: Runs = {lane.name: [] for lane in lanes}
    for _ in range(scale.rounds):
        for lane in lanes:
            run = put_load(lane.target, load, lane.place(), connections, scale.seconds, lane.groups)
            runs[lane.name].append(run)
    return runs


def compared(what: str, runs: Runs, bound: Bound | None = None) -> Figure:
    """Return the speed of the first lane as a multiple of the second's, by the run in the middle of each.

    The detail also has the ratio by processor time: it does not count the time a neighbour has the core or the disk.
    """
    first, second = medians = [_median(lane_runs) for lane_runs in runs.values()]
    named = "; ".join(f"{name} {run}" for name, run in zip(runs, medians, strict=True))
    by_cpu = f"by CPU {second.cpu_us / first.cpu_us:.2f}; {named}"
    return Figure(what, first.per_second / second.per_second, "x", by_cpu, bound)


def _median(runs: Sequence[Run]) -> Run:
    return sorted(runs, key=lambda run: run.per_second)[len(runs) // 2]

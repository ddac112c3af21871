"""Move tasks as their documents are written: what ended stays as it ended."""

from redrive.engine.ports import Put
from redrive.engine.tasks.redrive import TASK
from redrive.model.task import MoveTask
from tests.simulation.rules import Rule, require
from tests.simulation.trace import Trace


class Tasks:
    """Every move task as it was written last."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._tasks: dict[str, MoveTask] = {}

    def put(self, put: Put) -> None:
        """A node wrote a task."""
        task, before = TASK.read(put.document), self._tasks.get(put.key)
        if before is not None and not before.state.active:
            same = (before.state, before.failure) == (task.state, task.failure)
            require(same, Rule.FINAL, before, "→", task)
        if before is not None and before.node not in ("", task.node):
            self._trace.mark("a move task taken up by another node")
        self._tasks[put.key] = task

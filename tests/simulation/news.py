"""Notices among nodes of each other's changes: late, in order, and incomplete; but a gap is announced."""

import asyncio
import contextvars
import random
from collections.abc import Callable, Sequence
from typing import Any

from redrive.engine.ports import Put, Remove, Settlement
from tests.simulation.options import FaultInjection
from tests.simulation.trace import Trace

Arrived = Callable[[int], None]
Changed = Callable[[str, str], None]

DEAF_SECONDS_MAX = 5  # until a listening connection that broke stands again


class News:
    """Carries the store's news to its nodes."""

    def __init__(self, faults: Callable[[], FaultInjection], trace: Trace) -> None:
        self._faults = faults
        self._trace = trace
        self._listeners: dict[str, _Listener] = {}

    def subscribe(self, node: str, arrived: Arrived, changed: Changed, rng: random.Random) -> None:
        """Tell a node from now on."""
        self._listeners[node] = _Listener(arrived, changed, rng)

    def unsubscribe(self, node: str) -> None:
        """The node has gone."""
        self._listeners.pop(node, None)

    def tell_arrivals(self, node: str, verb: str, args: tuple[Any, ...], answer: Any) -> None:
        """Tell the others where there may be something to claim; a node does so once it has its answer, or never."""
        new_deliveries = _notifier(verb, args, answer)
        if new_deliveries:
            self._tell(node, new_deliveries, None)

    def tell_change(self, node: str, verb: str, args: tuple[Any, ...]) -> None:
        """Tell the others which document changed, together with the change."""
        for change in _changes(verb, args):
            self._tell(node, [], change)

    def _tell(self, node: str, new_deliveries: list[int], change: tuple[str, str] | None) -> None:
        for name, listener in self._listeners.items():
            if name != node:
                listener.hear(new_deliveries, change, self._faults(), self._trace)


class _Listener:
    """One node's ear."""

    def __init__(self, arrived: Arrived, changed: Changed, rng: random.Random) -> None:
        self._arrived = arrived
        self._changed = changed
        self._rng = rng
        self._context = contextvars.copy_context()  # what hearing sets off belongs to the life that listens
        self._deaf_until = 0.0
        self._told_at = 0.0

    def hear(
        self, new_deliveries: list[int], change: tuple[str, str] | None, faults: FaultInjection, trace: Trace
    ) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._deaf_until:
            return
        if self._rng.random() < faults.news_lost:
            trace.mark("news lost")
            self._deaf_until = now + self._rng.uniform(0, DEAF_SECONDS_MAX)
            self._tell_at(self._deaf_until, [0], ("", ""))
        else:
            self._tell_at(now + self._rng.uniform(0, faults.news_ms_max) / 1000, new_deliveries, change)

    def _tell_at(self, at: float, new_deliveries: list[int], change: tuple[str, str] | None) -> None:
        self._told_at = max(self._told_at, at)  # one connection: no news overtakes another
        loop = asyncio.get_running_loop()
        loop.call_at(self._told_at, self._tell, new_deliveries, change, context=self._context)

    def _tell(self, new_deliveries: list[int], change: tuple[str, str] | None) -> None:
        for queue_id in new_deliveries:
            self._arrived(queue_id)
        if change is not None:
            self._changed(*change)


def _notifier(verb: str, args: tuple[Any, ...], answer: Any) -> list[int]:
    """The queues in which something may be claimed, now or later, that could not be before."""
    match verb:
        case "enqueue":
            return sorted({new_delivery.queue_id for new_delivery in args[0]})
        case "write":
            return sorted({new_delivery.queue_id for new_delivery in args[1]})
        case "publish":
            return sorted(
                {
                    new_delivery.queue_id
                    for publication in args[0]
                    for new_delivery in publication.new_deliveries
                }
            )
        case "claim" if answer.dead_lettered:
            return [args[0].dead_letters_to.queue_id]
        case "settle":
            return sorted({args[0]} | entered_by(args[1]))
        case "extend":
            return [args[0]]
        case "move":
            return sorted(answer.per_queue)
    return []


def _changes(verb: str, args: tuple[Any, ...]) -> list[tuple[str, str]]:
    """The documents that are not what they were."""
    if verb != "write":
        return []
    return [(change.kind, change.key) for change in args[0] if isinstance(change, Put | Remove)]


def entered_by(settlements: Sequence[Settlement]) -> set[int]:
    """The queues that something enters by these ends of deliveries."""
    targets = {one.target.queue_id for one in settlements if one.target is not None}
    return targets | {new_delivery.queue_id for one in settlements for new_delivery in one.follow_ups}

"""Offloading: what takes longer than 2 ms is done beside the event loop, one piece at a time for each account.

Who can count the steps of some work first leaves what takes less on the loop (`STEPS_AT_ONCE`); who cannot hands all of
it over.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from redrive.aws.wire.errors import AwsError
from redrive.model.budget import STEPS_AT_ONCE, STEPS_MAX, Budget, OverBudgetError

#: Of the whole process. Python's own work takes turns with the event loop, every half millisecond.
_THREADS: Final = 2
#: Pieces of one account that wait for those before them: some 10 s of work.
_WAITING_MAX: Final = 50
#: Of work that many items need: 0.1 s.
_PART_STEPS: Final = 200_000
S = TypeVar("S")
T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    """The pieces of work of one account."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


_threads: Final = ThreadPoolExecutor(_THREADS, thread_name_prefix="redrive-offload")
_lines: Final[dict[str, _Line]] = {}


async def offload(account: str, work: Callable[[], T], *, patient: bool = False) -> T:
    """The result of some work, done in a thread when the account's work before it is done.

    Accounts take turns: each has at most one piece among those that wait for a thread.

    Args:
        account: Whose work it is.
        work: Touches nothing that the event loop changes meanwhile.
        patient: It waits however much is before it: a task of the server's own.

    Raises:
        AwsError: `ThrottlingException`: too much of the account's work waits already.
    """
    line = _lines.setdefault(account, _Line())
    if line.length >= _WAITING_MAX and not patient:
        raise AwsError("ThrottlingException", "Rate exceeded", query_code="Throttling")
    line.length += 1
    try:
        async with line.turn:
            return await asyncio.get_running_loop().run_in_executor(_threads, work)
    finally:
        line.length -= 1
        if not line.length:
            del _lines[account]


async def each_in_turn(
    account: str, items: Sequence[S], steps: Callable[[S], int], work: Callable[[S], T]
) -> list[T]:
    """The results of some work on each of several items, in their order.

    If their steps come to 2 ms at most (`STEPS_AT_ONCE`), it is done at once, on the event loop. Else it is done beside
    the loop in parts of 0.1 s, between which other accounts have their turn; it waits however much is before it.

    Args:
        account: Whose work it is.
        items: All of them.
        steps: How many steps of a `Budget` the work on an item takes.
        work: See `offload`.
    """
    if sum(map(steps, items)) <= STEPS_AT_ONCE:
        return [work(item) for item in items]
    results: list[T] = []
    while len(results) < len(items):
        room, end = _PART_STEPS, len(results)
        while end < len(items) and room > 0:
            room -= steps(items[end])
            end += 1
        part = items[len(results) : end]
        results += await offload(account, functools.partial(_each, work, part), patient=True)
    return results


def _each(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    return [work(item) for item in items]


async def within_budget(
    account: str, work: Callable[[Budget], T], steps_max: int = STEPS_MAX, *, patient: bool = False
) -> T:
    """The result of some work: what is done within 2 ms at once, and what takes longer anew beside the event loop.

    Args:
        account: Whose work it is.
        work: Changes nothing, and spends what it does.
        steps_max: What it may spend.
        patient: See `offload`.

    Raises:
        OverBudgetError: It takes more.
        AwsError: See `offload`.
    """
    try:
        return work(Budget(STEPS_AT_ONCE))
    except OverBudgetError:
        return await offload(account, lambda: work(Budget(steps_max)), patient=patient)

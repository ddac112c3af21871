"""Work beside the event loop: one piece at a time for each account, and no account waits for all of another's."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from redrive.aws.kit import offloading
from redrive.aws.kit.offloading import each_in_turn, offload, within_budget
from redrive.aws.wire.errors import AwsError
from redrive.model.budget import STEPS_AT_ONCE, Budget, OverBudgetError

ONE, OTHER = "1" * 12, "2" * 12


class Gate:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()  # two of it
        self.order: list[str] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

    def work(self, name: str) -> Callable[[], str]:
        def work() -> str:
            with self._lock:
                self.order.append(name)
                self._now += 1
                self.most = max(self.most, self._now)
                if self.most > 1:
                    self.begun.set()
            assert self.open.wait(20)
            with self._lock:
                self._now -= 1
            return name

        return work


async def test_an_account_has_one_piece_under_way_and_another_goes_first() -> None:
    gate = Gate()
    own = [asyncio.ensure_future(offload(ONE, gate.work(f"one-{n}"))) for n in range(5)]
    other = asyncio.ensure_future(offload(OTHER, gate.work("other")))
    await asyncio.to_thread(gate.begun.wait, 20)
    assert sorted(gate.order) == ["one-0", "other"], "the second of the first account waits"
    gate.open.set()
    assert await asyncio.gather(*own, other) == [*(f"one-{n}" for n in range(5)), "other"]
    assert gate.most == 2
    assert not offloading._lines, "nothing is remembered of accounts that wait for nothing"


async def test_the_51st_piece_that_would_wait_is_refused_but_for_tasks_of_the_server() -> None:
    gate = Gate()
    waiting = [asyncio.ensure_future(offload(ONE, gate.work("one"))) for _ in range(50)]
    await asyncio.sleep(0)
    with pytest.raises(AwsError) as refusal:
        await offload(ONE, gate.work("more"))
    assert (refusal.value.code, refusal.value.query_code) == ("ThrottlingException", "Throttling")
    patient = asyncio.ensure_future(offload(ONE, gate.work("patient"), patient=True))
    gate.open.set()
    assert await asyncio.gather(*waiting, patient) == ["one"] * 50 + ["patient"]


async def test_costly_work_begins_anew_beside_the_loop() -> None:
    threads: list[str] = []

    def work(budget: Budget) -> int:
        threads.append(threading.current_thread().name)
        budget.spend(STEPS_AT_ONCE + 1)
        return budget.left

    assert await within_budget(ONE, work, 10_000) == 10_000 - STEPS_AT_ONCE - 1
    assert [name.startswith("redrive-offload") for name in threads] == [False, True]
    with pytest.raises(OverBudgetError):
        await within_budget(ONE, work, STEPS_AT_ONCE)


@pytest.mark.parametrize(("steps", "parts"), [(1, 0), (100, 1), (100_000, 25), (10**9, 50)])
async def test_items_are_gone_through_in_parts(
    steps: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    async def counted(account: str, work: Callable[[], list[int]], *, patient: bool) -> list[int]:
        assert patient
        taken.append(account)
        return await offload(account, work, patient=patient)

    monkeypatch.setattr(offloading, "offload", counted)
    assert await each_in_turn(ONE, range(50), lambda _: steps, lambda item: item * 2) == list(
        range(0, 100, 2)
    )
    assert taken == [ONE] * parts


async def test_the_loop_goes_on_beside_costly_work() -> None:
    """Measured by the processor time of the loop's own thread between two of its turns: the machine may be busy."""
    budget = Budget(400_000)

    def work() -> None:
        while budget.left:
            budget.spend()

    working = asyncio.ensure_future(offload(ONE, work))
    longest = turns = 0.0
    while not working.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        longest, turns = max(longest, time.thread_time() - began), turns + 1
    assert turns > 10
    assert longest < 0.02

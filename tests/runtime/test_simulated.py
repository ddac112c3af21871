"""A simulated clock stops at what is due, and nowhere else."""

from redrive.runtime.simulated import QUIET_TURNS, SimulatedClock


class Settling:
    """Counts how often the clock asks whether all is done, and at which moments."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.start = clock.now()
        self.asked: list[int] = []

    async def settle(self) -> None:
        self.asked.append(self.clock.now() - self.start)

    @property
    def moments(self) -> list[int]:
        return sorted(set(self.asked))


async def test_the_clock_stops_at_each_moment_something_is_due() -> None:
    clock = SimulatedClock()
    settling = Settling(clock)
    made: list[int] = []
    for moment in (30, 10, 10, 20, 50):
        clock.call_at(settling.start + moment, lambda: made.append(clock.now() - settling.start))
    await clock.advance(40, settling.settle)
    assert made == [10, 10, 20, 30]
    assert settling.moments == [0, 10, 20, 30]
    assert len(settling.asked) == 4 * QUIET_TURNS
    assert clock.now() == settling.start + 40


async def test_a_call_that_was_cancelled_is_no_moment() -> None:
    clock = SimulatedClock()
    settling = Settling(clock)
    made: list[int] = []
    timers = [
        clock.call_at(settling.start + moment, lambda: made.append(clock.now() - settling.start))
        for moment in (10, 20, 20, 30, 40)
    ]
    clock.call_at(settling.start + 30, timers[4].cancel)
    for timer in (timers[0], timers[2]):
        timer.cancel()
    await clock.advance(100, settling.settle)
    assert made == [20, 30]
    assert settling.moments == [0, 20, 30]


async def test_a_moment_that_is_settled_is_not_waited_for() -> None:
    clock = SimulatedClock()
    settling = Settling(clock)
    clock.call_at(settling.start + 10, lambda: None)
    await clock.advance(20, settling.settle, lambda: clock.now() == settling.start)
    assert settling.asked == [10] * QUIET_TURNS

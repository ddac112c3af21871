"""Story 12: a redrive goes on although the tab was closed and the server killed; another is cancelled on its way."""

import time
from collections.abc import Iterator
from typing import Final

from tests.browser.screen import Screen

from benchmarks.figures import Figure, at_most, exactly
from benchmarks.stories.orders import DELAY_SECONDS, DeadOrders, Stage
from benchmarks.stories.person import Person, notice, noticed_at, wait_until
from benchmarks.stories.redriving import each_once

KILLED_AFTER_SECONDS: Final = 10
GOES_ON_SECONDS_MAX: Final = 30.0
BATCH: Final = 100  # letters of one transaction, by which the number beside it may lag
_CANCELLED_AFTER_SECONDS: Final = 3
_TASK_SECONDS: Final = 80


def killed(stage: Stage) -> Iterator[Figure]:
    """Kill the server ten seconds after the redrive began, start it again, and look from the overview."""
    with stage.dead_orders() as orders:
        person = Person(stage.screen)
        orders.start(person, "steady", _rate(stage))
        person.screen.open("about:blank")
        time.sleep(DELAY_SECONDS + KILLED_AFTER_SECONDS)
        orders.server.kill()
        orders.server.start()
        ready = time.monotonic()
        left = orders.left()
        shown = _opened(person, orders)
        ahead = abs(shown - (orders.good - left))
        detail = f"{shown:,} shown, {left:,} of {orders.good:,} left"
        yield Figure("12: batch's number beside the store's", ahead, "letters off", detail, at_most(BATCH))
        wait_until(lambda: orders.left() < left, 2 * GOES_ON_SECONDS_MAX)
        goes_on = time.monotonic() - ready
        yield Figure(
            "12: it goes on", goes_on, "s", "after the server was ready", at_most(GOES_ON_SECONDS_MAX)
        )
        notice(stage.screen, "completed", "#state")
        delivered = orders.wait_for(orders.good)
        noticed_at(stage.screen)
        yield Figure("12: moved in all", _moved(stage.screen), "", "", exactly(orders.good))
        yield from each_once("12", delivered, orders.good)


def cancelled(stage: Stage) -> Iterator[Figure]:
    """Cancel a redrive three seconds after it began: what it says it moved and what is left are all."""
    with stage.dead_orders() as orders:
        person = Person(stage.screen)
        orders.start(person, "steady", _rate(stage))
        time.sleep(DELAY_SECONDS + _CANCELLED_AFTER_SECONDS)
        person.press("Cancel:")
        stage.screen.wait_for("cancelled", "#state")
        moved, left = _moved(stage.screen), orders.left()
        detail = f"{moved:,} moved, {left:,} left"
        yield Figure("12: cancelled, moved and left", moved + left, "", detail, exactly(orders.good))
        yield from each_once("12: cancelled", orders.wait_for(moved), moved)


def _rate(stage: Stage) -> int:
    """500 a second for 40,000 orders, and as long a task for fewer."""
    return max(1, stage.orders // _TASK_SECONDS)


def _opened(person: Person, orders: DeadOrders) -> int:
    """The number that the task's page shows, opened from the overview."""
    person.screen.open(f"{orders.server.url}/")
    person.press("Look")
    person.press("Look at it")
    return _moved(person.screen)


def _moved(screen: Screen) -> int:
    return int(screen.text("#moved").replace(",", ""))

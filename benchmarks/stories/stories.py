"""`python -m benchmarks stories [NUMBER …]`: ask the stories of these numbers, or all that have promises of time.

The others (3, 8, 9, 10) promise no time: `tests.browser` shows that what they say is true. Story 5 has a question of its
own, with what other callers notice of a search: `python -m benchmarks search`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from selenium.common.exceptions import TimeoutException
from tests.browser.chromium import chromium

from benchmarks.bench import Bench
from benchmarks.figures import Figure, exactly
from benchmarks.stories import event_grid, killed, redriving, schedules, watching
from benchmarks.stories.orders import Stage

Story = Callable[[Stage], Iterator[Figure]]

STORIES: Final[dict[int, Sequence[Story]]] = {
    1: (redriving.sent_back,),
    2: (redriving.stops_itself,),
    4: (watching.shown,),
    6: (watching.lifted,),
    7: (schedules.tried,),
    11: (event_grid.a_day,),
    12: (killed.killed, killed.cancelled),
}


def counters(bench: Bench) -> Iterator[Figure]:
    """The promises of each story, in the order of the stories."""
    with chromium() as screen:
        stage = Stage(screen, bench.directory, bench.scale.orders)
        try:
            for number in bench.stories or STORIES:
                for story in STORIES[number]:
                    yield from _told(number, story, stage)
        finally:
            stage.close()


def _told(number: int, story: Story, stage: Stage) -> Iterator[Figure]:
    """The figures of a story; where the page never came to say what the next of them is about, the others follow."""
    try:
        yield from story(stage)
    except TimeoutException:
        yield Figure(f"{number}: broke off", 1, "", stage.screen.url, exactly(0))

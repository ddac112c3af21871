"""First paints of the console's pages, as Chromium itself tells: with its cache, and with nothing kept.

A first paint is `first-contentful-paint` of a navigation in a tab that stands: from its beginning until the frame is
shown. The server, Chromium, its drawing without a graphics processor and its window around the page share the machine's
processors, so the floor stands beside the pages: a line of text from the same server. A page may take what the design
allows, or a little more than the floor where that is high.

Pages are looked at in turn, so that whatever else the machine does falls on all of them, each after a moment in which the
page before came to rest, as with people who read. Each look asks for another address, so that the server renders the page
anew, as for who comes to it by a link.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

import uvloop
from tests.browser.chromium import chromium
from tests.browser.screen import Screen
from tests.console.world import ROOM, ROOT

from benchmarks.bench import Bench
from benchmarks.console import DEAD, fill
from benchmarks.figures import Figure, at_most
from benchmarks.servers import redrive

PAINT_MS_MAX: Final = 100.0
ABOVE_FLOOR_MS_MAX: Final = 30.0
_LOOKS: Final = 9
_LETTERS: Final = 5_000
_FLOOR: Final = "a line of text, as a floor"
_PAGES: Final = {
    "overview": f"{ROOT}/",
    "dead-letter queues": f"{ROOM}/dead-letters",
    "workbench": DEAD,
    "queues": f"{ROOM}/queues",
    "queue": f"{ROOM}/queues/orders-0",
    "messages": f"{ROOM}/queues/orders-dead/messages",
    **{room: f"{ROOM}/{room}" for room in ("topics", "endpoints", "metrics", "alarms", "schedules")},
}
_RESTED: Final = "const [done] = arguments; setTimeout(() => requestIdleCallback(done), 250)"
_PAINTED: Final = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
const [page] = performance.getEntriesByType("navigation");
return paint ? [paint.startTime, page.responseEnd, page.domInteractive] : null;
"""


class Look(NamedTuple):
    """One look at a page; times count from the beginning of the navigation (ms)."""

    painted: float  # Until the first paint
    answered: float  # Until the whole page had come
    parsed: float  # Until it was read


def counters(bench: Bench) -> Iterator[Figure]:
    """The medians of nine looks at each page, warm and cold."""
    with redrive(bench, lambda store: uvloop.run(fill(store, _LETTERS))) as server, chromium() as screen:
        looks = _all_looks(screen, server.url)
    floor = statistics.median(look.painted for look in looks.pop(_FLOOR))
    yield Figure(f"first paint of {_FLOOR}", floor, "ms", "")
    for what, of_page in looks.items():
        yield _figure(what, of_page, max(PAINT_MS_MAX, floor + ABOVE_FLOOR_MS_MAX))


def _all_looks(screen: Screen, server: str) -> dict[str, list[Look]]:
    paths = {_FLOOR: ("/_redrive/health", False)} | {
        f"{name}, {cache}": (path, cache == "cold")
        for (name, path), cache in product(_PAGES.items(), ("warm", "cold"))
    }
    looks: dict[str, list[Look]] = {what: [] for what in paths}
    screen.open(server + _PAGES["overview"])
    for number in range(_LOOKS):
        for what in random.Random(number).sample(list(paths), len(paths)):
            path, is_cold = paths[what]
            looks[what].append(_look(screen, f"{server}{path}?look={what[-4:]}{number}", is_cold=is_cold))
    return looks


def _look(screen: Screen, url: str, *, is_cold: bool) -> Look:
    screen.run_async(_RESTED)
    if is_cold:
        screen.command("Network.clearBrowserCache")
    screen.open(url)
    return Look(*screen.until(lambda: screen.run(_PAINTED)))


def _figure(what: str, looks: Sequence[Look], most: float) -> Figure:
    paint, answered, parsed = (statistics.median(each) for each in zip(*looks, strict=True))
    painted = [look.painted for look in looks]
    detail = f"answered after {answered:.0f} ms, parsed after {parsed:.0f}; {min(painted):.0f} to {max(painted):.0f}"
    return Figure(f"first paint of {what}", paint, "ms", detail, at_most(most))

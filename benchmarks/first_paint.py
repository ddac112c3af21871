"""First paints of the console's pages, as Chromium itself tells: with its cache, and with nothing kept.

Each look asks for another address, so that the server renders the page anew, as for who comes to it by a link.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import uvloop
from tests.browser.chromium import chromium
from tests.browser.screen import Screen
from tests.console.world import ROOM, ROOT

from benchmarks.bench import Bench
from benchmarks.console import DEAD, fill
from benchmarks.figures import Figure, at_most
from benchmarks.servers import redrive

PAINT_MS_MAX: Final = 100.0
_LOOKS: Final = 9
_LETTERS: Final = 5_000
_PAGES: Final = {
    "overview": f"{ROOT}/",
    "dead-letter queues": f"{ROOM}/dead-letters",
    "workbench": DEAD,
    "queues": f"{ROOM}/queues",
    "queue": f"{ROOM}/queues/orders-0",
    "messages": f"{ROOM}/queues/orders-dead/messages",
    **{room: f"{ROOM}/{room}" for room in ("topics", "endpoints", "metrics", "alarms", "schedules")},
}
_WORD: Final = "data:text/html,word"
_PAINTED: Final = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
const [page] = performance.getEntriesByType("navigation");
return paint ? [paint.startTime, page.responseEnd, page.domInteractive] : null;
"""


def counters(bench: Bench) -> Iterator[Figure]:
    """The median of nine looks at each page, warm and cold."""
    with redrive(bench, lambda store: uvloop.run(fill(store, _LETTERS))) as server, chromium() as screen:
        screen.open(server.url + _PAGES["overview"])
        yield replace(_painted(screen, "one word, as a floor", _WORD, cold=False), bound=None)
        for name, path in _PAGES.items():
            for cache in ("warm", "cold"):
                yield _painted(screen, f"{name}, {cache}", server.url + path, cold=cache == "cold")


def _painted(screen: Screen, what: str, url: str, *, cold: bool) -> Figure:
    looks = []
    for look in range(_LOOKS):
        if cold:
            screen.command("Network.clearBrowserCache")
        screen.open(f"{url}?look={what[-4:]}{look}")
        looks.append(screen.until(lambda: screen.run(_PAINTED)))
    paint, answered, parsed = (statistics.median(each) for each in zip(*looks, strict=True))
    slowest = max(each[0] for each in looks)
    detail = f"answered after {answered:.0f} ms, parsed after {parsed:.0f}; slowest {slowest:.0f}"
    return Figure(f"first paint of {what}", paint, "ms", detail, at_most(PAINT_MS_MAX))

"""The speed of others' calls while somebody searches a million dead letters in the console, and of the search itself."""

import contextlib
import html
import re
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlsplit

import uvloop

from benchmarks.background import in_background
from benchmarks.bench import Bench
from benchmarks.console import DEAD, SLICE_MS_MAX, fill
from benchmarks.figures import Bound, Figure, under
from benchmarks.load import put_load
from benchmarks.servers import Redrive, redrive

P99_MS_MAX: Final = 30.0
_NEXT: Final = re.compile(r'data-next="([^"]*)"')
_FOUND: Final = re.compile(r'data-found="([1-9]\d*)"')


class Search:
    """Somebody's search, which asks for slice after slice, as the workbench does by itself.

    Attributes:
        slices: How many were answered.
        first_ms: How long the first took.
    """

    def __init__(self, url: str, query: str) -> None:
        """Search the dead letters of a server for this."""
        self._address = urlsplit(url).netloc
        self._path = f"{DEAD}/search?cause=all&q={query}"
        self.slices = 0
        self.first_ms = 0.0

    def run(self, ended: threading.Event) -> bool:
        """Go on until something is found or the search has come to its end, anew each time unless `ended`."""
        with contextlib.closing(HTTPConnection(self._address, timeout=60)) as connection:
            while True:
                if self._to_the_end(connection, ended):
                    return True
                if ended.is_set():
                    return False

    def _to_the_end(self, connection: HTTPConnection, ended: threading.Event) -> bool:
        path = self._path
        while path:
            began = time.perf_counter()
            connection.request("GET", path, headers={"Accept": "text/html", "X-Redrive-Part": "live"})
            text = connection.getresponse().read().decode()
            self.first_ms = self.first_ms or (time.perf_counter() - began) * 1000
            self.slices += 1
            if _FOUND.search(text):
                return True
            onward = _NEXT.search(text)
            assert onward is not None, text
            path = "" if ended.is_set() else html.unescape(onward[1])
        return False


def counters(bench: Bench) -> Iterator[Figure]:
    """The 99th percentile of GetQueueAttributes alone and beside a search; then an order is searched for."""
    number = bench.scale.backlog_messages
    with redrive(bench, lambda store: uvloop.run(fill(store, number))) as server:
        yield _beside_a_search(bench, server, "orders-0", under(P99_MS_MAX))
        yield _beside_a_search(bench, server, "orders-dead", under(P99_MS_MAX))
        found = Search(server.url, f"body.order%3A{number // 2}")
        began = time.perf_counter()
        assert found.run(threading.Event())
        seconds = time.perf_counter() - began
        yield Figure("first slice of a search", found.first_ms, "ms", "", under(SLICE_MS_MAX))
        yield Figure("an order in the middle is found", seconds, "s", f"{found.slices:,} slices")


def _beside_a_search(bench: Bench, server: Redrive, name: str, bound: Bound | None = None) -> Figure:
    """The attributes of a queue, asked for without a pause over one connection, alone and beside a search."""
    queue = f"{server.url}/000000000000/{name}"
    put_load(server, "attributes", queue, 1, 1)  # the first count of a large queue is waited for, once
    alone = put_load(server, "attributes", queue, 1, bench.scale.seconds)
    search = Search(server.url, "body.order%3Aabsent")
    with in_background(search.run):
        watched = put_load(server, "attributes", queue, 1, bench.scale.seconds)
    detail = f"alone {alone}; beside {search.slices:,} slices {watched}"
    return Figure(f"GetQueueAttributes of {name}, p99", watched.p99_ms, "ms", detail, bound)

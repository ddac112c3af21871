"""The rate on one store beside that on another, by two servers that are loaded in turn."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.publish import new_topic
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import Redrive, redrive

_LOADS: Final = ("send", "send_batch", "cycle", "publish")
_PLACES: Final = {"publish": new_topic}


def stores(bench: Bench, urls: Mapping[str, str]) -> Iterator[Figure]:
    """One figure for each load and number of connections: the first store's rate as a multiple of the other's.

    Args:
        bench: How much, and where.
        urls: Of the two stores, by their names.
    """
    first = next(iter(urls))
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(redrive(_on(bench, name, url))) for name, url in urls.items()}
        for load in _LOADS:
            place = _PLACES.get(load, Redrive.new_queue)
            lanes = [Lane(name, server, functools.partial(place, server)) for name, server in servers.items()]
            for connections in bench.scale.connections:
                runs = in_turn(bench.scale, lanes, load, connections)
                yield compared(f"{load}, {connections} connections, {first}", runs)


def _on(bench: Bench, name: str, url: str) -> Bench:
    return replace(bench, store_name=name, new_store=lambda: contextlib.nullcontext(url))

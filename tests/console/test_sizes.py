"""Sizes: script and style stay small enough to be read, and pages to be sent."""

from importlib import resources
from typing import Final

from redrive.console.rendering import FILES, ICONS
from tests.console.world import make_world, pages_of, visiting

KIB: Final = 1024
MOST: Final = {"js": 25 * KIB, "css": 30 * KIB, "icons.svg": 8 * KIB}
PAGE_MOST: Final = 60 * KIB
_ORDER: Final = '{"order": %d, "customer": "c-1231", "car": "minibus", "total": 221.90, "currency": "EUR"}'


def test_script_style_and_symbols_stay_within_their_bounds() -> None:
    root = resources.files("redrive.console") / "static"
    lengths = {name: len((root / name).read_bytes()) for name in FILES}
    assert sum(length for name, length in lengths.items() if name.endswith(".js")) <= MOST["js"]
    assert lengths["console.css"] <= MOST["css"]
    assert len((root / ICONS).read_bytes()) <= MOST["icons.svg"]


async def test_pages_stay_within_their_bound_with_fifty_rows() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        for first in range(0, 60, 10):
            seqs = await world.die(*(_ORDER % (47000 + first + each) for each in range(10)))
        for path in pages_of(world, seqs[0]):
            assert len((await visitor.get(path)).body) <= PAGE_MOST, path

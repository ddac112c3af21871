"""A store with something for each page and a key, and the form by which a browser signs in."""

import asyncio
from typing import Final, NamedTuple

from redrive.access.keys import chosen_access_key
from redrive.app import assembled
from redrive.settings import Settings
from tests.browser.screen import Screen
from tests.console.services import make_services, service_pages
from tests.console.test_event_grid import PAGE, subscribed
from tests.console.world import ROOM, SCOPE, URL, Visitor, make_world, pages_of

KEY: Final = ("AKIAAUDITOR", "a-secret-of-forty-characters,or-nearly-so")
#: In every body, log line and variable: nowhere where bodies are hidden.
MARK: Final = "MARKED"


class Made(NamedTuple):
    """The pages of what was made.

    Attributes:
        pages: The paths of every page that only looks.
        letter: The place of a dead letter in `orders-dead`.
    """

    pages: list[str]
    letter: int


def make(store: str) -> Made:
    """Make the account's things in a store, and its key."""
    return asyncio.run(_make(store))


async def _make(store: str) -> Made:
    settings = Settings(store=store, functions="on", clock="simulated")
    async with assembled(settings, URL) as server:
        await server.open()
        visitor = Visitor(server)
        world = await make_world(visitor)
        seqs = await world.die(f"{MARK} 1", f'{{"order": "{MARK}"}}')
        services = await make_services(visitor)
        await subscribed(visitor)
        await server.core.keyring.add(chosen_access_key(SCOPE.account, *KEY, 0))
        others = [f"{ROOM}/views", f"{ROOM}/audit/download", PAGE]
        return Made([*pages_of(world, seqs[0]), *service_pages(services), *others], seqs[0])


def sign_in(screen: Screen) -> None:
    """Fill in the form of the page that is there."""
    screen.fill("input[name=key]", KEY[0])
    screen.fill("input[name=secret]", KEY[1])
    screen.press("Sign in")

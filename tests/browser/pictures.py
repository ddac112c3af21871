"""`python -m tests.browser.pictures`: the pictures of the console that the documentation shows, taken anew.

Everything in them is made for it: the moment, the names and the numbers are the same at every run.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from redrive.app import assembled
from redrive.engine.ports import AttemptNote, NewDelivery
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Subscription, Topic
from redrive.runtime.simulated import DEFAULT_START
from redrive.settings import Settings
from tests.browser.chromium import chromium
from tests.browser.screen import Screen
from tests.console.world import ROOM, SCOPE
from tests.services.server import serving

IMAGES: Final = Path(__file__).parents[2] / "docs/images"
WIDTH: Final = 1120
_MINUTE: Final = 60_000
_GOOD, _BAD, _GIVEN_UP = 39_998, 2, 12


class Picture(NamedTuple):
    """A picture of a page.

    Attributes:
        name: Of its file, without its end.
        path: Of the page.
        theme: `light` or `dark`.
        height: How much of the page is seen (CSS pixels).
    """

    name: str
    path: str
    theme: str
    height: int


_DEAD: Final = f"{ROOM}/dead-letters/rentals-dead"
PICTURES: Final[Sequence[Picture]] = (
    Picture("console-dead-letters", _DEAD, "light", 640),
    Picture("console-dead-letters-dark", _DEAD, "dark", 640),
    Picture("console-plan", f"{_DEAD}/plan?what=all&cause={{cause}}", "light", 604),
)


async def make(store: str) -> str:
    """Make what is seen in a store; the cause that most orders died of, as links name it."""
    async with assembled(Settings(store=store, clock="simulated"), "http://127.0.0.1:4566") as server:
        await server.open()
        resources = server.core.engine.resources
        dead = await resources.queues.create(Queue(0, SCOPE._replace(name="rentals-dead")))
        target = DeadLetterTarget(dead.name, 4)
        orders = await resources.queues.create(Queue(0, SCOPE._replace(name="orders"), dead_letter=target))
        topic = await resources.topics.create(Topic(0, SCOPE._replace(name="Rentals"), "sns"))
        billing = await resources.subscriptions.create(_billing(topic, dead.name))
        letters = [
            *(_letter(dead, billing.queue_id, each, _note(503, each)) for each in range(_GOOD)),
            *(_letter(dead, billing.queue_id, _GOOD + each, _note(400, each)) for each in range(_BAD)),
            *(_letter(dead, orders.id, 7 * each, _note(0, each)) for each in range(_GIVEN_UP)),
        ]
        for start in range(0, len(letters), 5_000):
            await server.core.store.enqueue(letters[start : start + 5_000])
        return f"{billing.queue_id}:server_error 503"


def _billing(topic: Topic, dead: ResourceName) -> Subscription:
    url = "https://billing.example.com/hook"
    return Subscription("6f1c", topic.name, 0, SCOPE.account, "https", url, dead_letter=dead)


def _note(status: int, number: int) -> AttemptNote:
    """The last attempt that ended so; 0: a consumer's, who never says why."""
    at = DEFAULT_START - 29 * _MINUTE + number % 1_600 * 1_000
    if not status:
        return AttemptNote(4, at, 0, "exhausted", 0, "")
    if status == 503:
        return AttemptNote(4, at, 23, "server_error", status, "upstream connect error or disconnect")
    return AttemptNote(1, at, 12, "client_error", status, '{"error": "currency must be ISO 4217"}')


def _letter(dead: Queue, origin: int, number: int, note: AttemptNote) -> NewDelivery:
    currency = "EURO" if note.status == 400 else "EUR"
    body = (
        f'{{"order": {7000 + number}, "customer": "c-{300 + number % 977}",'
        f' "total": "{89 + number % 211}.90", "currency": "{currency}"}}'
    )
    sent_at = DEFAULT_START - 30 * _MINUTE + number % 1_600 * 1_000
    made = NewDelivery(dead.id, number.to_bytes(16, "big"), body, None, sent_at, sent_at, origin=origin)
    return replace(made, note=note, attempts=note.number)


def take(screen: Screen, server: str, cause: str) -> None:
    """Take all pictures of a server."""
    for picture in PICTURES:
        screen.size(WIDTH, picture.height)
        screen.media(prefers_color_scheme=picture.theme)
        screen.open(server + picture.path.format(cause=cause.replace(" ", "%20")))
        screen.until(lambda: not screen.all(".facets") or screen.all(".facets li"))  # asked after the page
        (IMAGES / f"{picture.name}.png").write_bytes(screen.picture())


def main() -> None:
    """Make the data, take the pictures, write them into the documentation."""
    with tempfile.TemporaryDirectory(prefix="redrive-pictures-") as name:
        store = f"sqlite:///{name}/redrive.db"
        cause = asyncio.run(make(store))
        with serving(store, "--clock", "simulated", directory=Path(name)) as server, chromium() as screen:
            take(screen, server.url, cause)


if __name__ == "__main__":
    main()

"""Navigation: the rooms of the console, in the order of what somebody on call does, and the place that they are of.

Pages for all accounts and regions carry the place that somebody came from in their address, as `at`: nothing is kept of
who visits, and a link that is sent to somebody leads them to the same rooms.
"""

from typing import Final, NamedTuple

from redrive.access.keys import is_account
from redrive.console.visit import Visit
from redrive.model.names import ResourceName


class Room(NamedTuple):
    """A part of the console that the navigation leads to.

    Attributes:
        path: Of its first page, below an account and region; of a room for all of them, with a slash before it.
        label: Its name.
        key: Pressed after `g`, it leads there.
        anywhere: It is also there without an account and region.
    """

    path: str
    label: str
    key: str
    anywhere: bool = False


ROOMS: Final = (
    Room("/", "Overview", "o"),
    Room("dead-letters", "Dead letters", "d"),
    Room("endpoints", "Endpoints", "e"),
    Room("queues", "Queues", "q"),
    Room("topics", "Topics", "t"),
    Room("event-grid", "Event Grid", "v"),
    Room("messages", "Find a message", "f"),
    Room("schedules", "Schedules", "s", anywhere=True),
    Room("tail", "Live tail", "l"),
    Room("metrics", "Metrics", "m"),
    Room("functions", "Functions", "u"),
    Room("logs", "Logs", "b"),
    Room("alarms", "Alarms", "a"),
    Room("stacks", "Stacks", "c"),
    Room("kms", "Encryption keys", "k"),
    Room("views", "Saved views", "w"),
    Room("/settings", "Settings", "n"),
)


async def place_of(visit: Visit) -> ResourceName | None:
    """The place whose rooms a page leads to; None: the visitor sees none.

    It is the page's own, or else the one that the visitor came from, or else the first that they see: an Amazon
    account's rather than an Azure subscription's, which has fewer rooms.
    """
    if (named := place_named(visit)) is not None:
        return named
    account = visit.session.account
    found = await visit.engine.operations.places(account or "") if account != "" else []
    public = [place for place in found if not place.private]
    return next((place for place in public if is_account(place.account)), public[0] if public else None)


def place_named(visit: Visit) -> ResourceName | None:
    """The place that the address of a page names, if the visitor sees it."""
    if "account" in visit.args:
        return visit.place
    place = read_place(visit.asked("at"))
    return place if place is not None and visit.session.sees(place.account) else None


def read_place(text: str) -> ResourceName | None:
    """The place that a text names as `account/region`."""
    account, _, region = text.partition("/")
    return ResourceName(account, region, "") if account and region and "/" not in region else None

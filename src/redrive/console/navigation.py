"""Navigation: the rooms of the console in groups, with counts, and the account and region that they are of.

Pages for all accounts and regions carry the place that somebody came from in their address, as `at`: nothing is kept of
who visits, and a link that is sent to somebody leads them to the same rooms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode

from redrive.access.keys import is_account
from redrive.console.attention import Count
from redrive.console.visit import Visit
from redrive.console.words import place_text
from redrive.model.names import ResourceName

_NOBODYS: Final = "000000000000"  # the account of who sends no key
_REGION: Final = "us-east-1"
PLACES_SHOWN: Final = 12


class Room(NamedTuple):
    """A part of the console that the navigation leads to."""

    # Of its first page, below an account and region; of a room for all of them, with a slash before it.
    path: str
    label: str  # Its name
    key: str  # Pressed after `g`, it leads there
    icon: str  # Its symbol


@dataclass(frozen=True, slots=True)
class LinkedRoom:
    """A room with its link and count for one visitor.

    Attributes:
        path, label, key, icon: See `Room`.
        link: Of its first page.
        count: Beside its name; None: nothing is counted.
    """

    path: str
    label: str
    key: str
    icon: str
    link: str
    count: Count | None


class Group(NamedTuple):
    """Rooms under one head, which the first group has none of."""

    title: str
    rooms: list[LinkedRoom]


GROUPS: Final = (
    (
        "",
        (
            Room("/", "Overview", "o", "overview"),
            Room("dead-letters", "Dead letters", "d", "dead"),
            Room("redrives", "Redrives", "r", "redrive"),
            Room("messages", "Trace", "f", "trace"),
        ),
    ),
    (
        "Messaging",
        (
            Room("topics", "Topics", "t", "topic"),
            Room("endpoints", "Subscriptions", "e", "endpoint"),
            Room("queues", "Queues", "q", "queue"),
            Room("event-grid", "Event Grid", "v", "grid"),
            Room("apis", "API Gateway", "w", "gateway"),
        ),
    ),
    (
        "Functions",
        (
            Room("functions", "Functions", "u", "function"),
            Room("event-sources", "Event sources", "i", "source"),
        ),
    ),
    (
        "Observe",
        (
            Room("tail", "Live tail", "l", "tail"),
            Room("metrics", "Metrics", "m", "metrics"),
            Room("logs", "Logs", "b", "logs"),
            Room("alarms", "Alarms", "a", "alarm"),
        ),
    ),
    (
        "Build and run",
        (
            Room("stacks", "Stacks", "c", "stack"),
            Room("schedules", "Retry lab", "s", "lab"),
            Room("kms", "Encryption keys", "k", "key"),
            Room("audit", "Audit", "z", "audit"),
            Room("views", "Saved views", "h", "save"),
            Room("/settings", "Settings", "n", "settings"),
        ),
    ),
)
ROOMS: Final = tuple(room for _, rooms in GROUPS for room in rooms)
#: The keys that are the same on every page, as the list of shortcuts shows them.
SHORTCUTS: Final = (
    ("Ctrl K", "search everything"),
    ("/", "search this page"),
    ("?", "these shortcuts"),
    ("g and a letter", "go to a page: the palette shows the letters"),
    ("j k", "next row, previous row"),
    ("Enter", "open the row"),
    ("x  X  a  Esc", "select, select a range, all shown, none"),
    ("r", "plan a redrive of what the bar says"),
    ("e", "edit and redrive"),
    ("s", "set aside"),
    ("n b", "next message, previous message"),
    ("u", "up to the list"),
    ("p", "pause live updates; on a redrive: pause it"),
    ("t", "light or dark"),
    ("y", "copy a link to the page"),
)


def linked(
    visit: Visit, place: ResourceName | None, came_from: str, counts: Mapping[str, Count]
) -> list[Group]:
    """The groups of rooms with their links, for a visitor who is in a place; None: they see none."""
    return [
        Group(title, [_linked(visit, room, place, came_from, counts) for room in rooms])
        for title, rooms in GROUPS
    ]


def _linked(
    visit: Visit, room: Room, place: ResourceName | None, came_from: str, counts: Mapping[str, Count]
) -> LinkedRoom:
    if room.path.startswith("/"):
        link = f"{visit.base}{room.path}{came_from}"
    else:
        link = visit.link_in(place or default_place(visit), room.path)
    return LinkedRoom(*room, link, counts.get(room.path))


async def place_of(visit: Visit) -> ResourceName | None:
    """The place whose rooms a page leads to; None: the visitor sees none.

    It is the page's own, or else the one that the visitor came from, or else the first that they see: an Amazon
    account's rather than an Azure subscription's, which has fewer rooms.
    """
    if (place_of_page := place_named(visit)) is not None:
        return place_of_page
    account = visit.session.account
    places = await visit.engine.operations.places(account or "") if account != "" else []
    public = [place for place in places if not place.private]
    return next((place for place in public if is_account(place.account)), public[0] if public else None)


def default_place(visit: Visit) -> ResourceName:
    """The place of a visitor before there is anything in any: their account, or the one of who sends no key."""
    return ResourceName(visit.session.account or _NOBODYS, _REGION, "")


def place_named(visit: Visit) -> ResourceName | None:
    """The place that the address of a page names, if the visitor sees it."""
    if "account" in visit.args:
        return visit.place
    place = read_place(visit.asked("at"))
    return place if place is not None and visit.session.sees(place.account) else None


def read_place(text: str) -> ResourceName | None:
    """The place that a text names as `account/region`."""
    account, _, region = text.partition("/")
    place = ResourceName(account, region, "")
    return place if account and region and "/" not in region and not place.private else None


async def places_to_go(visit: Visit, current: ResourceName | None) -> list[tuple[str, str, bool]]:
    """The places of the switcher: name, link to Overview there, and whether it is the current one."""
    places = await visit.engine.operations.places(visit.session.account or "")
    seen = [place for place in places if visit.session.sees(place.account) and not place.private]
    return [
        (place_text(place), f"{visit.base}/?{at_query(place)}", place == current)
        for place in seen[:PLACES_SHOWN]
    ]


def at_query(place: ResourceName) -> str:
    """The query by which Overview shows a place alone, and leads back to it."""
    path = f"{place.account}/{place.region}"
    return urlencode({"place": path, "at": path}, safe="/")

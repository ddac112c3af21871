"""Navigation: the rooms of the console in groups, with counts, and the account and region that they are of.

Pages for all accounts and regions carry the place that somebody came from in their address, as `at`: nothing is kept of
who visits, and a link that is sent to somebody leads them to the same rooms.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode

from redrive.access.keys import is_account
from redrive.console.visit import Visit
from redrive.console.words import scope_text
from redrive.model.names import ResourceName

_NOBODYS: Final = "000000000000"  # the account of who sends no key
_REGION: Final = "us-east-1"
SCOPES_SHOWN: Final = 12
FAILED_IN_A_ROW: Final = 3  # attempts, from which on an endpoint is said to fail


class Room(NamedTuple):
    """A part of the console that the navigation leads to."""

    # Of its first page, below an account and region; of a room for all of them, with a slash before it.
    path: str
    label: str  # Its name
    key: str  # Pressed after `g`, it leads there
    icon: str  # Its symbol


class Count(NamedTuple):
    """A number beside a room."""

    number: int  # Count
    colour: str  # `bad`, `warn` or `info` if it needs attention; empty: a total
    words: str  # After the number, for who does not see the colour


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


class RoomGroup(NamedTuple):
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
    ("r", "plan a redrive of the selection or the search"),
    ("e", "edit and redrive"),
    ("s", "set aside"),
    ("n b", "next message, previous message"),
    ("u", "back to the list"),
    ("p", "pause live updates; on a redrive: pause it"),
    ("t", "light or dark"),
    ("y", "copy a link to the page; of metrics: frozen at this time"),
)


def room_groups(
    visit: Visit, scope: ResourceName | None, came_from: str, counts: Mapping[str, Count]
) -> list[RoomGroup]:
    """The groups of rooms with their links, for a visitor who is in a scope; None: they see none."""
    return [
        RoomGroup(title, [_link_room(visit, room, scope, came_from, counts) for room in rooms])
        for title, rooms in GROUPS
    ]


def _link_room(
    visit: Visit, room: Room, scope: ResourceName | None, came_from: str, counts: Mapping[str, Count]
) -> LinkedRoom:
    """A room with its link, into this scope or else the default one, and its count."""
    if room.path.startswith("/"):
        link = f"{visit.base}{room.path}{came_from}"
    else:
        link = visit.link_in(scope or default_scope(visit), room.path)
    return LinkedRoom(*room, link, counts.get(room.path))


async def scope_of(visit: Visit) -> ResourceName | None:
    """The scope whose rooms a page leads to; None: the visitor sees none.

    It is the page's own, or else the one that the visitor came from, or else the first that they see: an Amazon
    account's rather than an Azure subscription's, which has fewer rooms.
    """
    if (scope_of_page := scope_in_address(visit)) is not None:
        return scope_of_page
    account = visit.session.account
    scopes = await visit.engine.operations.dead_letters.scopes(account or "") if account != "" else []
    public = [scope for scope in scopes if not scope.private]
    return next((scope for scope in public if is_account(scope.account)), public[0] if public else None)


def default_scope(visit: Visit) -> ResourceName:
    """The scope of a visitor before there is anything in any: their account, or the one of who sends no key."""
    return ResourceName(visit.session.account or _NOBODYS, _REGION)


def scope_in_address(visit: Visit) -> ResourceName | None:
    """The scope that the address of a page names, if the visitor sees it."""
    if "account" in visit.args:
        return visit.scope
    scope = read_scope(visit.parameter("at"))
    return scope if scope is not None and visit.session.sees(scope.account) else None


def read_scope(text: str) -> ResourceName | None:
    """The scope that a text names as `account/region`."""
    account, _, region = text.partition("/")
    scope = ResourceName(account, region)
    return scope if account and region and "/" not in region and not scope.private else None


async def scope_choices(visit: Visit, current: ResourceName | None) -> list[tuple[str, str, bool]]:
    """The scopes of the switcher: name, link to Overview there, and whether it is the current one."""
    scopes = await visit.engine.operations.dead_letters.scopes(visit.session.account or "")
    visible = [scope for scope in scopes if visit.session.sees(scope.account) and not scope.private]
    return [
        (scope_text(scope), f"{visit.base}/?{at_query(scope)}", scope == current)
        for scope in visible[:SCOPES_SHOWN]
    ]


def at_query(scope: ResourceName) -> str:
    """The query by which Overview shows a scope alone, and leads back to it."""
    path = f"{scope.account}/{scope.region}"
    return urlencode({"place": path, "at": path}, safe="/")


async def troubled_subscriptions(visit: Visit, scopes: Collection[ResourceName]) -> list[str]:
    """The keys of the subscriptions whose endpoints fail, as far as this node has seen, or are on hold."""
    operations = visit.engine.operations
    failing = (key for key, each in operations.failing.items() if each.failures >= FAILED_IN_A_ROW)
    keys = dict.fromkeys([*failing, *await operations.open_circuits()])
    return [key for key in keys if _scope_of(key) in scopes]


def _scope_of(key: str) -> ResourceName:
    account, region, *_ = [*key.split("/", 2), "", ""]
    return ResourceName(account, region)

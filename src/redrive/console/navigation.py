"""Navigation: the rooms of the console, in the order of what somebody on call does."""

from typing import Final, NamedTuple


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

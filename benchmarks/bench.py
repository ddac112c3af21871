"""The bench that a question is laid on: how much of everything, on which store, where on the disk."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a run: how much of everything.

    Attributes:
        seconds: Of one run under load.
        rounds: Runs of each server, in turn with the others; their median counts.
        connections: The numbers of connections to load with.
        backlog_messages: In the deep queue.
        groups: Message groups in the ordered queue.
        polls: Long polls that wait at once.
        idle_seconds: How long they are watched doing nothing.
        wake_ups: Messages sent to them.
        calls: Calls made in the process itself, for one reading of its processor time.
        pushes: Deliveries in the backlog of a webhook.
        webhooks: Subscribed to one topic, of which one hangs.
        publications: To that topic.
        filters: Subscriptions of a topic that do not want what is published.
        events: Published to a topic of Event Grid.
        invocations: Events for one function; a tenth as many calls of it.
        functions: Started, and left alone.
        drained: Messages in a queue that feeds a function.
        orders: Dead ones that the console's stories are about.
    """

    seconds: int = 3
    rounds: int = 5
    connections: tuple[int, ...] = (32, 128)
    backlog_messages: int = 1_000_000
    groups: int = 100_000
    polls: int = 1_000
    idle_seconds: int = 10
    wake_ups: int = 500
    calls: int = 20_000
    pushes: int = 20_000
    webhooks: int = 100
    publications: int = 100
    filters: int = 10_000
    events: int = 100_000
    invocations: int = 10_000
    functions: int = 50
    drained: int = 10_000
    orders: int = 40_000


SMALL = Scale(
    seconds=1,
    rounds=1,
    connections=(8,),
    backlog_messages=2_000,
    groups=500,
    polls=50,
    idle_seconds=1,
    wake_ups=20,
    calls=500,
    pushes=200,
    webhooks=10,
    publications=5,
    filters=100,
    events=1_000,
    invocations=200,
    functions=3,
    drained=70,
    orders=800,
)
"""Enough to see that everything runs, in half a minute; the figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Arguments of every question.

    Attributes:
        scale: How much.
        directory: On the disk that is measured.
        store_name: `sqlite`, `postgresql`, `pgbouncer` (PostgreSQL behind one) or `citus`.
        new_store: Makes an empty store; its URL holds as long as the block.
        stories: Numbers of the console's stories that are asked for; none: all of them.
        others: The URLs of other servers that speak Amazon SQS, by name, for the question of brokers.
    """

    scale: Scale
    directory: Path
    store_name: str
    new_store: Callable[[], AbstractContextManager[str]]
    stories: tuple[int, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)

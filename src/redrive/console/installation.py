"""The installation around the engine, as pages reach it: services, telemetry, access keys, and the settings in effect."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.access.keys import Keyring
from redrive.aws.apigateway.requests.answers import Web
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudwatch.alarms.records import Alarm
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.lambda_.documents.records import FunctionRecord
from redrive.console.clock_hands import ClockHands
from redrive.console.doctor import Doctor
from redrive.console.nodes import Nodes
from redrive.console.remembered import Remembered
from redrive.console.tail import Tail
from redrive.console.views import SavedView
from redrive.endpoints.containers import BlobContainers
from redrive.engine.ports import TelemetryStore
from redrive.model.task import MoveTask
from redrive.telemetry.audit import AuditTrail
from redrive.telemetry.gauges import Level

_STACK_TROUBLE: Final = ("FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_IN_PROGRESS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The settings of the console."""

    writes: bool  # Whether anything can be changed by it
    bodies_shown: bool  # Whether messages' bodies are shown
    needs_sign_in: bool  # Whether visitors have to prove who they are
    environment: str = ""  # A name that every page shows; empty: none
    # What URLs begin with, where a proxy stands before the server; empty: as the browser asked.
    public_url: str = ""
    documentation: bool = False  # Whether the server shows the documentation's site
    # True for a Host header that is answered; None: any is, since nobody said how browsers come here.
    is_own_host: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The parts of an installation that pages show beside the engine's things."""

    services: InnerCalls  # Calls Amazon's services of this server, by their own rules
    telemetry: TelemetryStore  # Metric points and log events
    # Lets what this node counted and logged arrive in `telemetry`, so that a page shows it.
    settle: Callable[[], Awaitable[None]]
    keyring: Keyring  # The access keys
    containers: BlobContainers  # The blob containers in this server's own store
    tail: Tail  # Recent events on this node
    hands: ClockHands | None  # Moves the clock, where it is a simulated one
    nodes: Nodes  # This node and the others, with the settings in effect as they may be shown
    # The size of the store's file now; None: it has none of its own here.
    store_bytes: Callable[[], int | None]
    queue_levels: Callable[[], Sequence[Level]]  # How full queues were when this node looked at them last
    alarms: Remembered[Alarm]  # Alarms of all accounts
    stacks: Remembered[Stack]  # Those that failed or were rolled back, of all accounts
    functions: Remembered[FunctionRecord]  # Functions of all accounts
    redrives: Remembered[MoveTask]  # The tasks that have not ended, of all accounts
    # Lists of saved views that have one for the navigation, of all accounts.
    starred_views: Remembered[Sequence[SavedView]]
    web: Web  # Makes requests to endpoints, within what the settings allow
    monotonic: Callable[[], float]  # Seconds that only grow
    audit: AuditTrail  # Trail of changes by the console and by Redrive's own routes
    doctor: Doctor  # Checks this node's settings and store
    # A time that half of this node's commits took at most; None: there were none yet.
    commit_seconds: Callable[[], float | None]


def stack_in_trouble(stack: Stack) -> bool:
    """True for a stack that failed or was rolled back."""
    return stack.deleted_at is None and stack.status.endswith(_STACK_TROUBLE)

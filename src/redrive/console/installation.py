"""The installation around the engine, as pages reach it: services, telemetry, access keys, and the settings in effect."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.access.keys import Keyring
from redrive.aws.apigateway.requests.outgoing import Web
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudwatch.alarms.records import Alarm
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.lambda_.documents.records import FunctionRecord
from redrive.console.clock_hands import ClockHands
from redrive.console.doctor import Doctor
from redrive.console.nodes import Nodes
from redrive.console.remembered import Remembered
from redrive.console.tail import Tail
from redrive.endpoints.containers import BlobContainers
from redrive.engine.ports import TelemetryStore
from redrive.model.task import MoveTask
from redrive.telemetry.audit import AuditTrail
from redrive.telemetry.levels import Level

_STACK_TROUBLE: Final = ("FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_IN_PROGRESS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The settings of the console.

    Attributes:
        writes: Whether anything can be changed by it.
        bodies_shown: Whether messages' bodies are shown.
        needs_sign_in: Whether visitors have to prove who they are.
        environment: A name that every page shows; empty: none.
        public_url: What URLs begin with, where a proxy stands before the server; empty: as the browser asked.
        documentation: Whether the server shows the documentation's site.
        is_own_host: True for a Host header that is answered; None: any is, since nobody said how browsers come here.
    """

    writes: bool
    bodies_shown: bool
    needs_sign_in: bool
    environment: str = ""
    public_url: str = ""
    documentation: bool = False
    is_own_host: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The parts of an installation that pages show beside the engine's things.

    Attributes:
        services: Calls Amazon's services of this server, by their own rules.
        telemetry: Metric points and log events.
        settle: Lets what this node counted and logged arrive in `telemetry`, so that a page shows it.
        keyring: The access keys.
        hands: Moves the clock, where it is a simulated one.
        tail: What just happened on this node.
        containers: The blob containers in this server's own store.
        nodes: This node and the others, with the settings in effect as they may be shown.
        store_bytes: The size of the store's file now; None: it has none of its own here.
        queue_levels: How full queues were when this node looked at them last.
        alarms: Of all accounts.
        stacks: Those that failed or were rolled back, of all accounts.
        functions: Of all accounts.
        redrives: The tasks that have not ended, of all accounts.
        web: Makes requests to endpoints, within what the settings allow.
        monotonic: Seconds that only grow.
        audit: What was done by the console and by Redrive's own routes.
        doctor: Checks this node's settings and store.
        commit_seconds: A time that half of this node's commits took at most; None: there were none yet.
    """

    services: InnerCalls
    telemetry: TelemetryStore
    settle: Callable[[], Awaitable[None]]
    keyring: Keyring
    containers: BlobContainers
    tail: Tail
    hands: ClockHands | None
    nodes: Nodes
    store_bytes: Callable[[], int | None]
    queue_levels: Callable[[], Sequence[Level]]
    alarms: Remembered[Alarm]
    stacks: Remembered[Stack]
    functions: Remembered[FunctionRecord]
    redrives: Remembered[MoveTask]
    web: Web
    monotonic: Callable[[], float]
    audit: AuditTrail
    doctor: Doctor
    commit_seconds: Callable[[], float | None]


def stack_in_trouble(stack: Stack) -> bool:
    """True for a stack that failed or was rolled back."""
    return stack.deleted_at is None and stack.status.endswith(_STACK_TROUBLE)

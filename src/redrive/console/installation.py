"""The installation around the engine, as pages reach it: services, telemetry, access keys, health checks and settings.

Pages look at some documents each second; they are read from the store again only after one of them changed.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from redrive.access.keys import Keyring
from redrive.aws.apigateway.requests.answers import Web
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudwatch.alarms.records import Alarm
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.lambda_.documents.records import FunctionRecord
from redrive.aws.sqs.consumers import Consumers
from redrive.console.busiest import Rankings
from redrive.console.clock_control import ClockControl
from redrive.console.nodes import Nodes
from redrive.console.tail import Tail
from redrive.console.views import SavedView
from redrive.endpoints.containers import BlobContainers
from redrive.engine.ports import Clock, DocumentKind, TelemetryStore
from redrive.engine.resources import Documents
from redrive.model.task import MoveTask
from redrive.telemetry.audit import AuditTrail
from redrive.telemetry.gauges import Level

_REMEMBERED_MS: Final = 30_000
Examine = Callable[[], Awaitable[Iterable[tuple[str, str, str]]]]
T = TypeVar("T")
LIMIT = 1000
_STACK_TROUBLE: Final = ("FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_IN_PROGRESS")


class Check(NamedTuple):
    """The answer to one check."""

    name: str  # Subject of the check
    fact: str = ""  # Measured value; empty: none
    wrong: str = ""  # Problem, its cost and its remedy; empty: no problem
    link: str = ""  # Page with the remedy; empty: there is none
    to: str = ""  # Text of the link


class Doctor:
    """Checks the settings and the store of this node."""

    def __init__(
        self, findings: Callable[[], Iterable[tuple[str, str]]], examine: Examine, clock: Clock
    ) -> None:
        """Check nothing yet; `findings` checks the settings, `examine` measures the store, by the system's clock."""
        self._findings = findings
        self._examine = examine
        self._clock = clock
        self._checked_at = 0
        self._checks: tuple[Sequence[Check], Sequence[Check]] = (), ()

    async def checks(self) -> tuple[Sequence[Check], Sequence[Check]]:
        """The checks of the settings, and those of the store."""
        if self._clock.now() >= self._checked_at + _REMEMBERED_MS:
            settings = [Check(name.capitalize(), wrong=wrong) for name, wrong in self._findings()]
            store = [Check(name.capitalize(), fact, wrong) for name, fact, wrong in await self._examine()]
            self._checked_at, self._checks = self._clock.now(), (settings, store)
        return self._checks


class Remembered(Generic[T]):
    """The documents of a kind that pass a test, of the first thousand of all accounts."""

    def __init__(
        self, documents: Documents, kind: DocumentKind[T], keeps: Callable[[T], bool] = lambda _: True
    ) -> None:
        self._documents = documents
        self._kind = kind
        self._keeps = keeps
        self._known: Sequence[T] | None = None
        self._changes = 0  # noted so far: tells whether one came during a read
        documents.on_change_elsewhere(lambda kind, _: self._changed(kind))
        documents.on_write(lambda kind, _key, _value: self._changed(kind))

    async def all(self) -> Sequence[T]:
        """The documents, in the order of their keys: no read, or one."""
        if self._known is not None:
            return self._known
        before = self._changes
        documents = await self._documents.find(self._kind, "", limit=LIMIT)
        known = [each for each in documents if self._keeps(each)]
        if self._changes == before:  # else one of them may have changed while they were on their way
            self._known = known
        return known

    def _changed(self, kind: str) -> None:
        if kind in ("", self._kind.name):
            self._changes += 1
            self._known = None


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
    clock_control: ClockControl | None  # Moves the clock, if it is simulated; None: real time
    nodes: Nodes  # This node and the others, with the settings in effect as they may be shown
    # The size of the store's file now; None: it has none of its own here.
    store_bytes: Callable[[], int | None]
    queue_levels: Callable[[], Sequence[Level]]  # How full queues were when this node looked at them last
    alarms: Remembered[Alarm]  # Alarms of all accounts
    stacks: Remembered[Stack]  # Those that failed or were rolled back, of all accounts
    functions: Remembered[FunctionRecord]  # Functions of all accounts
    redrives: Remembered[MoveTask]  # The tasks that have not ended or failed, of all accounts
    saved_views: Remembered[Sequence[SavedView]]  # Lists of all accounts and regions
    web: Web  # Makes requests to endpoints, within what the settings allow
    monotonic: Callable[[], float]  # Seconds that only grow
    audit: AuditTrail  # Trail of changes by the console and by Redrive's own routes
    doctor: Doctor  # Checks this node's settings and store
    consumers: Consumers  # Who receives from queues on this node
    rankings: Rankings  # The busiest queues and topics, and those that fail most
    # A time that half of this node's commits took at most; None: there were none yet.
    commit_seconds: Callable[[], float | None]


def stack_in_trouble(stack: Stack) -> bool:
    """True for a stack that failed or was rolled back; its resources may be deleted, as CloudFormation says of it too."""
    return stack.status.endswith(_STACK_TROUBLE)

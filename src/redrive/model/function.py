"""A function: user code that Redrive runs, and one invocation of it."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from redrive.model.names import ResourceName


class Isolation(enum.Enum):
    """The isolation of a function's process from the server.

    Attributes:
        NONE: A child process with a clean environment, limits on resources and no new privileges. It runs as the
            server's user, so it can read whatever that user can, the server's store included.
        USER: The same under a user of the function's own; the server must run as root.
        BUBBLEWRAP: The same in namespaces of its own, where it sees its code, its /tmp and the system's programs.
    """

    NONE = "none"
    USER = "user"
    BUBBLEWRAP = "bubblewrap"


@dataclass(frozen=True, slots=True)
class FunctionVersion:
    """Everything that is needed to run a function; a change of any of it is another revision."""

    name: ResourceName  # Account, region and name
    version: str  # `$LATEST` or a number
    revision: str  # Environments are never shared between revisions
    runtime: str  # `python3.11`, `nodejs20.x`, `java17`, `provided.al2023` …
    handler: str  # Entry point that the runtime calls, in the runtime's notation
    code: str  # The directory with the unpacked code
    layers: str = ""  # The directory with what its layers bring; empty: it has none
    timeout_ms: int = 3_000  # An invocation is killed after this
    memory_mb: int = 128  # A process that holds more is killed
    storage_mb: int = 512  # How much its /tmp may hold, where that is bounded
    variables: Mapping[str, str] = field(default_factory=dict)  # The function's own environment variables
    log_group: str = ""  # Log group of its output
    log_format: str = "Text"  # `Text` or `JSON`
    # How many invocations may run at once over all versions; None: as many as the account may.
    reserved: int | None = None
    provisioned: bool = False  # Runs in provisioned concurrency
    role: str = ""  # The ARN of the role that it acts as
    logs: bool = True  # Whether its role may write its output to the log group

    @property
    def key(self) -> tuple[ResourceName, str, str]:
        """The identity of its environments."""
        return (self.name, self.version, self.revision)


class AnswerParts(Protocol):
    """Receives the parts of an answer that a function streams."""

    def begin(self, content_type: str) -> None:
        """Take an answer of this type from now on."""
        ...

    def add(self, part: bytes, resume: Callable[[], None]) -> bool:
        """Take a part; False: no more is to be read of the process until `resume` is called."""
        ...


@dataclass(slots=True)  # frozen, it would take three times as long to make
class Invocation:
    """One call of a function."""

    request_id: str  # Unique; stays the same over the attempts of an asynchronous invocation
    payload: bytes  # The event, JSON
    invoked_as: str  # The name (ARN) that the caller used
    trace: str | None = None  # A trace header to hand on, if any
    client_context: str | None = None  # JSON of the caller's, if any
    parts: AnswerParts | None = None  # Takes a streamed answer as it comes; None: the answer is wanted whole
    # The number of runs in a row, each begun by log lines of the one before, that end with this.
    rounds: int = 0


class FunctionError(enum.StrEnum):
    """The failure of an invocation, reported by the environment and not by the handler."""

    EXIT = "Runtime.ExitError"
    TIMEOUT = "Sandbox.Timedout"
    TOO_LARGE = "Function.ResponseSizeTooLarge"
    ENTRYPOINT = "Runtime.InvalidEntrypoint"


@dataclass(slots=True)  # not frozen, as Invocation
class InvocationResult:
    """The result of an invocation."""

    payload: bytes  # The answer, or the error document
    failed: bool = False  # The payload is an error document
    # The answer went to `Invocation.parts`; the payload is empty, or the error that ended it.
    streamed: bool = False
    duration_ms: float = 0.0  # From handing the event to the process until its answer
    # How long the environment took to start, where it was started for this invocation.
    init_ms: float | None = None
    memory_mb: int = 0  # The largest resident size of the process so far
    log_tail: bytes = b""  # The last 4 KB of what was logged


class Throttled(Exception):  # noqa: N818 - a refusal that callers are told of by this word
    """No environment may be started or used for this invocation now.

    Attributes:
        by_function: The function's own reserved concurrency is used up; else the account's.
    """

    def __init__(self, *, by_function: bool) -> None:
        super().__init__("reserved concurrency" if by_function else "account concurrency")
        self.by_function = by_function

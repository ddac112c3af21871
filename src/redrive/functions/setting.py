"""The settings of functions, as a server that starts has them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from redrive.engine.ports import Clock
from redrive.functions.gateway import ServerAddress
from redrive.functions.isolation import PROCESSES_MAX, Tools
from redrive.model.function import FunctionVersion, Isolation


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings that all environments of a server share."""

    clock: Clock  # The real time: processes do not run on a simulated one
    # A count that grows steadily, in parts of a millisecond: durations are told so exactly.
    milliseconds: Callable[[], float]
    isolation: Isolation  # Isolation between processes
    tools: Tools  # Programs that isolate processes
    endpoint: ServerAddress  # This server's
    java_client: str  # The folder of the jars of Lambda's Java runtime client, or nothing
    user_key: bytes  # Draws the users of environments, where each has one
    # What each process gets besides, given its function: where the server is, and whose credentials it has.
    variables: Callable[[FunctionVersion], Awaitable[dict[str, str]]]
    processes_max: int = PROCESSES_MAX  # How many processes a function may have; with more it is killed

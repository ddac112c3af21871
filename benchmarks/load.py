"""Load by wrk, which costs less than any client in Python: a script of `loads/` for some seconds."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from benchmarks.servers import Target

BODY_BYTES: Final = 200

_LOADS: Final = Path(__file__).with_name("loads")
_GRACE_SECONDS: Final = 30  # for wrk to end by itself


class LoadFailedError(RuntimeError):
    """There is no figure: wrk is missing, or some calls were refused."""


@dataclass(frozen=True, slots=True)
class Run:
    """Results of one run.

    Attributes:
        per_second: Messages, or whole lives of messages.
        p50_ms: Half of the requests were answered sooner.
        p99_ms: All but one in a hundred were.
        cpu_us: Processor time of the server for one message, all its threads together.
        written_bytes: What the server gave the disk to write for one message.
    """

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    written_bytes: float

    @override
    def __str__(self) -> str:
        delays = f"p50 {self.p50_ms:.1f} p99 {self.p99_ms:.1f} ms"
        costs = f"{self.cpu_us:.0f} us CPU {self.written_bytes / 1024:.1f} KiB"
        return f"{self.per_second:,.0f}/s {delays} {costs}"


def put_load(target: Target, load: str, place: str, connections: int, seconds: int, groups: int = 0) -> Run:
    """Load a server from one core.

    Args:
        target: The server.
        load: A script of `loads/`.
        place: The queue's URL or the topic's ARN.
        connections: Each with one call under way.
        seconds: How long.
        groups: Message groups to spread over; 0 for a standard queue.

    Raises:
        LoadFailedError: wrk is missing, or calls were refused or lost.
    """
    process = target.process
    cpu_seconds, written_bytes = process.cpu_seconds(), process.written_bytes()
    said = _wrk(
        *("--threads=1", f"--connections={connections}", f"--duration={seconds}s"),
        *(f"--script={_LOADS / load}.lua", target.url, "--", place, str(BODY_BYTES), str(groups)),
        seconds=seconds,
    )
    result = _result(said)
    messages = result["messages"]
    if not messages or result["refused"] or result["broken"]:
        raise LoadFailedError(f"{load} at {target.name}: no figure from a run with errors\n{said}")
    return Run(
        per_second=messages / result["seconds"],
        p50_ms=result["p50_us"] / 1000,
        p99_ms=result["p99_us"] / 1000,
        cpu_us=(process.cpu_seconds() - cpu_seconds) / messages * 1e6,
        written_bytes=(process.written_bytes() - written_bytes) / messages,
    )


def _wrk(*arguments: str, seconds: int) -> str:
    program = shutil.which("wrk")
    if program is None:
        raise LoadFailedError("wrk is missing, and nothing is measured without it: apt-get install wrk")
    ended = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=seconds + _GRACE_SECONDS
    )
    if ended.returncode:
        raise LoadFailedError(f"wrk failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def _result(said: str) -> dict[str, float]:
    for line in said.splitlines():
        if line.startswith("RESULT "):
            pairs = (field.split("=") for field in line.split()[1:])
            return {name: float(value) for name, value in pairs}
    raise LoadFailedError(f"wrk gave no result:\n{said}")

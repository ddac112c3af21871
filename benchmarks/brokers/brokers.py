"""Redrive beside the brokers that are installed here, and beside others by their URLs: one load, in turn.

    python -m benchmarks brokers                                  # what is installed
    python -m benchmarks brokers elasticmq=http://127.0.0.1:9324  # and another that speaks Amazon SQS

The load program (`load/`, in Go) is built first. At full scale the results are written to a page of the documentation.
What a broker loses is what it acknowledged before it was killed and does not hand out after it is started again.
"""

import contextlib
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks import machine
from benchmarks.bench import SMALL, Bench
from benchmarks.brokers.page import page
from benchmarks.brokers.servers import BROKERS, Broker, BrokerMissingError
from benchmarks.figures import Figure
from benchmarks.load import LoadFailedError

LOADS: Final[Mapping[str, tuple[str, int]]] = {
    "send": ("send", 1),
    "life": ("life", 1),
    "send, ten a call": ("send", 10),
    "life, ten a call": ("life", 10),
}
_SOURCE: Final = Path(__file__).with_name("load")
_PAGE: Final = Path(__file__).parents[2] / "docs/explanation/beside-others.md"
_GRACE_SECONDS: Final = 60
_KILLED_AFTER_SECONDS: Final = 2
_CALLERS_WHEN_KILLED: Final = 32


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of one load on one broker.

    Attributes:
        per_second: Messages, or lives of them.
        p50_ms: Half of the calls, or lives, were answered sooner.
        p99_ms: All but one in a hundred were.
        cpu_us: Processor time of the broker for one message; None of one that was running before.
        written_kib: The KiB it gave the disk to write for one message; likewise.
    """

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float | None
    written_kib: float | None


@dataclass(frozen=True, slots=True)
class Loss:
    """The messages of one broker around `kill -9`."""

    acknowledged: int
    lost: int


Turns = dict[tuple[str, int, str], list[Turn]]  # by load, callers, broker


def counters(bench: Bench) -> Iterator[Figure]:
    """Messages a second of each broker under each load, and what each loses."""
    program = _built(bench.directory)
    quiet_machine = machine.describe(bench.directory)  # the load average afterwards is that of the loads
    with contextlib.ExitStack() as stack:
        brokers, missing = _begun(bench, stack)
        turns: Turns = {}
        for load in LOADS:
            for callers in bench.scale.connections:
                _in_turn(bench, program, brokers, load, callers, turns)
                yield from _figures(brokers, load, callers, turns)
        losses = {broker.name: _loss(program, broker, bench.directory) for broker in brokers if broker.pid}
        yield from (
            Figure(f"lost by {name} on kill -9", loss.lost, "", f"of {loss.acknowledged:,} acknowledged")
            for name, loss in losses.items()
        )
    if bench.scale.connections != SMALL.connections:
        _PAGE.write_text(page(quiet_machine, bench.scale, brokers, missing, turns, losses))


def _built(directory: Path) -> Path:
    """Build the load program, in a copy: what its libraries need is found out then, and checked by Go's own sums."""
    if shutil.which("go") is None:
        raise LoadFailedError("Go is missing, and nothing is measured without the load program")
    source = directory / "load"
    shutil.copytree(_SOURCE, source)
    for command in (("mod", "tidy"), ("build", "-o", "program", ".")):
        ended = subprocess.run(["go", *command], cwd=source, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise LoadFailedError(f"the load program cannot be built:\n{ended.stderr}")
    return source / "program"


def _begun(bench: Bench, stack: contextlib.ExitStack) -> tuple[list[Broker], list[str]]:
    """The brokers, started, and why others are not there."""
    brokers, missing = [], []
    for number, (name, make) in enumerate(BROKERS.items()):
        directory = bench.directory / f"broker-{number}"
        directory.mkdir()
        bench.directory.chmod(0o755)
        try:
            broker = make(directory)
        except BrokerMissingError as error:
            missing.append(f"{name}: {error}")
            continue
        stack.callback(broker.end)
        broker.begin()
        brokers.append(broker)
    brokers += [Broker(name, "sqs", "", "as it was started", url) for name, url in bench.others.items()]
    return brokers, missing


def _in_turn(
    bench: Bench, program: Path, brokers: Sequence[Broker], load: str, callers: int, turns: Turns
) -> None:
    for number in range(bench.scale.rounds):
        for broker in brokers:
            queue = f"q{len(turns)}x{number}x{callers}"
            turn = _turn(program, broker, load, callers, queue, bench.scale.seconds)
            turns.setdefault((load, callers, broker.name), []).append(turn)


def _turn(program: Path, broker: Broker, load: str, callers: int, queue: str, seconds: int) -> Turn:
    mode, batch = LOADS[load]
    before = _cost(broker)
    with _run(program, broker, queue, mode=mode, batch=batch, callers=callers, seconds=seconds) as report:
        after = _cost(broker)
    messages = report["messages"]
    if not messages or report["errors"] > messages / 100:
        raise LoadFailedError(f"{load} on {broker.name}: {report}")
    cpu_us = written_kib = None
    if broker.pid:
        cpu_us = (after[0] - before[0]) / messages * 1e6
        written_kib = (after[1] - before[1]) / messages / 1024
    return Turn(messages / report["seconds"], report["p50_ms"], report["p99_ms"], cpu_us, written_kib)


def _cost(broker: Broker) -> tuple[float, int]:
    """Processor time and bytes written until now, by all its processes."""
    seconds, written_bytes = 0.0, 0
    for process in broker.processes():
        with contextlib.suppress(OSError):  # one of a connection that has ended
            seconds += process.cpu_seconds()
            written_bytes += process.written_bytes()
    return seconds, written_bytes


@contextlib.contextmanager
def _run(program: Path, broker: Broker, queue: str, **options: object) -> Iterator[dict[str, Any]]:
    """The report of a load. Its connections stay as long as the block, and with them what a broker has for each."""
    flags = [f"-{name}={value}" for name, value in options.items()]
    command = [str(program), f"-kind={broker.kind}", f"-address={broker.address}", f"-queue={queue}", *flags]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as load:
        assert load.stdin is not None
        assert load.stdout is not None
        assert load.stderr is not None
        said = load.stdout.readline()
        if not said:
            raise LoadFailedError(f"the load on {broker.name} failed:\n{load.stderr.read().decode()}")
        yield orjson.loads(said)
        load.stdin.close()


def _figures(brokers: Sequence[Broker], load: str, callers: int, turns: Turns) -> Iterator[Figure]:
    for broker in brokers:
        runs = turns[load, callers, broker.name]
        rates = [run.per_second for run in runs]
        middle = sorted(runs, key=lambda run: run.per_second)[len(runs) // 2]
        detail = f"p50 {middle.p50_ms:.1f} p99 {middle.p99_ms:.1f} ms, {min(rates):,.0f} to {max(rates):,.0f}"
        yield Figure(f"{load}, {callers} callers, {broker.name}", statistics.median(rates), "/s", detail)


# ---- kill -9 -----------------------------------------------------------------------------------------------------


def _loss(program: Path, broker: Broker, directory: Path) -> Loss:
    """Kill the broker under load, start it again, and take out what it has."""
    ledger, drained = directory / "acknowledged", directory / "drained"
    killing = threading.Timer(_KILLED_AFTER_SECONDS, broker.kill)
    killing.start()
    seconds = 2 * _KILLED_AFTER_SECONDS
    load = {"batch": 1, "callers": _CALLERS_WHEN_KILLED, "seconds": seconds}
    with _run(program, broker, "kept", mode="send", ledger=ledger, **load):
        killing.join()
    broker.begin()
    acknowledged = set(ledger.read_text().split())
    kept: set[str] = set()
    until = time.monotonic() + _GRACE_SECONDS
    while acknowledged - kept and time.monotonic() < until:
        options = {"mode": "drain", "ledger": drained, "batch": 10, "callers": 4}
        # It may listen before it can be used.
        with contextlib.suppress(LoadFailedError), _run(program, broker, "kept", **options):
            kept |= set(drained.read_text().split())
    return Loss(len(acknowledged), len(acknowledged - kept))

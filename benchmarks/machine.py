"""The machine measured on, in one line: figures without it say nothing."""

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import apsw

_SYNCS: Final = 100
_PAGE_BYTES: Final = 4096


def describe(directory: Path) -> str:
    """Processor, system, versions, how busy it is already, and what an fsync costs in that directory."""
    load, _, _ = os.getloadavg()
    return (
        f"{os.cpu_count()} x {_processor()}, Linux {platform.release()}, Python {platform.python_version()},"
        f" SQLite {apsw.sqlite_lib_version()}, fsync {_fsync_ms(directory):.2f} ms, load average {load:.2f}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _fsync_ms(directory: Path) -> float:
    times = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(_PAGE_BYTES))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000

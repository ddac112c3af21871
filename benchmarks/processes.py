"""The kernel's figures of a process: its processor time, its memory and what it writes."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_USER_TICKS, _KERNEL_TICKS = 11, 12  # in /proc/PID/stat, counted from behind the program's name


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine, all its threads taken together."""

    pid: int

    def cpu_seconds(self) -> float:
        """Processor time since it began, in steps of a hundredth of a second."""
        _, _, rest = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")
        fields = rest.split()
        return (int(fields[_USER_TICKS]) + int(fields[_KERNEL_TICKS])) / _TICKS_PER_SECOND

    def resident_bytes(self) -> int:
        """Memory it holds now."""
        return self._number("status", "VmRSS") * 1024

    def written_bytes(self) -> int:
        """Return the bytes given to the disks since the process began, in whole pages."""
        return self._number("io", "write_bytes")

    def _number(self, file: str, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/{file}").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise ProcessLookupError(f"process {self.pid} has ended")


def descendants(pid: int) -> list[Process]:
    """The processes that a process started, and that those started; none of one that has ended meanwhile."""
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # a backend of PostgreSQL may be gone at any moment
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [each for child in children for each in (Process(child), *descendants(child))]

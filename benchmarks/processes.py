"""What the kernel says of a process: its processor time and its memory."""

import os
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
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"process {self.pid} has ended")

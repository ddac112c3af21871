"""Public aids for tests: virtual time, a clock to be moved by hand, and a pytest plugin with its own server."""

from redrive.runtime.simulated import SimulatedClock
from redrive.testing.server import RedriveClock, RedriveServer
from redrive.testing.virtual import NothingScheduled, VirtualClock, VirtualLoop, run_virtual

__all__ = [
    "NothingScheduled",
    "RedriveClock",
    "RedriveServer",
    "SimulatedClock",
    "VirtualClock",
    "VirtualLoop",
    "run_virtual",
]

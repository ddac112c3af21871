"""A companion serves as long as the run lives."""

import os
from pathlib import Path

from tests.services import companions

# Four times what a pipe holds; then it opens the pipe that the test waits at.
TALKATIVE = 'echo ready; head -c 262144 /dev/zero | tr "\\0" x; echo; echo served >"$0"'


def test_a_companion_that_writes_much_goes_on(tmp_path: Path) -> None:
    directory, served = tmp_path / f"redrive-tests-{os.getpid()}-x" / "talkative", tmp_path / "served"
    directory.mkdir(parents=True)
    os.mkfifo(served)
    companions.run(directory, "/bin/sh", "-c", TALKATIVE, str(served), ready="ready")
    assert served.read_text() == "served\n"
    assert (directory / "log").stat().st_size > 1 << 16

"""Leftovers of servers that were killed."""

import subprocess
from pathlib import Path

import pytest

from redrive.functions import processes
from redrive.functions.isolation import FIRST_USER
from redrive.model.function import Isolation
from tests.functions.conftest import LEVELS, tools_for

_GONE = 4_194_303  # the largest number that a process may have; nobody began at the kernel's first tick


@pytest.mark.skipif(Isolation.USER not in LEVELS, reason="only root gives functions users of their own")
def test_processes_of_an_environments_user_end_though_they_carry_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner = f"{_GONE}.1.{Path('/proc/self/ns/pid').stat().st_ino}"
    environment = tmp_path / f"redrive-functions-{owner}-x" / "environments" / "mark"
    environment.mkdir(parents=True)
    user = FIRST_USER + 4_711
    (tmp_path / f"redrive-functions-{owner}-other").mkdir()
    for folder, whose in ((environment, user), (tmp_path / f"redrive-functions-{owner}-other", user)):
        _give(folder, whose)
    with subprocess.Popen(
        ["/usr/bin/sleep", "86400"], user=user, group=user, extra_groups=[], env={}
    ) as process:
        processes.end_leftovers(tools_for(Isolation.USER, tmp_path))
        assert process.wait(10) == -9
    assert [folder.name for folder in tmp_path.iterdir()] == [f"redrive-functions-{owner}-other"]


def _give(folder: Path, user: int) -> None:
    subprocess.run(["/usr/bin/chown", f"{user}:{user}", str(folder)], check=True)

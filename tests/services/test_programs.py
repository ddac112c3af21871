"""A forked start is a start like any other, save where `prefork` says that it is not."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.programs import FORKED, START_VARIABLE, Program
from tests.services.server import PROGRAM, redrive, serving

HEAVY = """
import pathlib
with pathlib.Path(__file__).with_name("imports").open("a") as file:
    file.write("imported\\n")
"""
# `python -m odd CASE`: tells about its process, or ends in one of the ways in which a process can end.
ODD = """
import atexit, json, os, random, signal, sys, threading, time
import heavy

def told():
    descriptors = os.listdir("/proc/self/fd")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "words": sys.argv[1:],
        "module": __name__,
        "environment": dict(os.environ),
        "zone": time.tzname,
        "directory": os.getcwd(),
        "input": sys.stdin.read(),
        "streams": [(file.fileno(), file.encoding, file.errors, file.line_buffering) for file in streams],
        "descriptors": sorted(n for n in descriptors if os.path.exists(f"/proc/self/fd/{n}")),
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM)],
        "blocked": [str(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "group": os.getpgid(0),
        "threads": threading.active_count(),
    }

def late():
    threading.main_thread().join()
    print("a thread")

match sys.argv[1]:
    case "tells":
        print(json.dumps(told()))
    case "dices":
        print(random.random(), os.urandom(8))
    case "raises":
        raise ValueError("odd")
    case "complains":
        sys.exit("too odd")
    case "leaves":
        atexit.register(print, "an end")
        threading.Thread(target=late).start()
        sys.exit(7)
    case "stays":
        print("here", flush=True)
        signal.pause()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "heavy.py").write_text(HEAVY)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "__main__.py").write_text(ODD)
    program = Program(
        "odd", ("heavy",), (sys.executable, "-P", "-m", "odd"), {**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    yield program
    program.end()


def both(program: Program, *words: str, **environment: str) -> list[Any]:
    """The exit status, the output and the last line of complaint of a forked start, and of a cold one."""
    ended = []
    for cold in (False, True):
        process = program.start(
            words, {**program.environment, **environment}, stderr=subprocess.STDOUT, cold=cold
        )
        assert process.stdout is not None
        with process.stdout:
            said = process.stdout.read()
        ended.append((process.wait(), said))
    return ended


def test_a_forked_process_finds_what_a_cold_one_finds(program: Program) -> None:
    forked, cold = both(program, "tells", "ü", "", TZ="Asia/Seoul", ODD="1 = 2")
    assert (forked[0], json.loads(forked[1])) == (cold[0], json.loads(cold[1]))
    assert json.loads(forked[1])["zone"] == ["KST", "KST"]


@pytest.mark.parametrize(("case", "status"), [("raises", 1), ("complains", 1), ("leaves", 7)])
def test_a_forked_process_ends_as_a_cold_one_does(program: Program, case: str, status: int) -> None:
    forked, cold = both(program, case)
    assert (forked[0], forked[1].splitlines()[-2:]) == (cold[0], cold[1].splitlines()[-2:])
    assert forked[0] == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_forked_process_and_is_its_status(program: Program, number: int) -> None:
    process, other = (
        program.start(["stays"], program.environment, stderr=subprocess.STDOUT) for _ in range(2)
    )
    for started in (process, other):
        assert started.stdout is not None
        with started.stdout:
            assert started.stdout.readline() == "here\n"
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(10) == process.returncode == -number
    process.kill()  # of a process that has ended: nothing
    assert other.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.01)
    other.kill()
    other.wait(10)


def test_imports_are_done_once_and_chance_is_drawn_anew(program: Program, tmp_path: Path) -> None:
    said = {program.run(["dices"], program.environment).stdout for _ in range(3)}
    assert len(said) == 3
    assert (tmp_path / "imports").read_text() == "imported\n"


def test_forked_processes_of_a_killed_run_are_ended(tmp_path: Path) -> None:
    killed_run = (
        "import os, signal\n"
        "from tests.services.server import PROGRAM\n"
        "server = PROGRAM.start(['serve', '--port=0', '--store=sqlite://:memory:'], dict(os.environ))\n"
        "print(server.stdout.readline(), server.pid, sep='', flush=True)\n"
        "input()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, START_VARIABLE: FORKED}
    with subprocess.Popen(
        [sys.executable, "-c", killed_run],
        cwd=Path(__file__).parents[2],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert run.stdout.readline().startswith("Redrive ready on ")
        server = os.pidfd_open(int(run.stdout.readline()))
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.wait(10) == -signal.SIGKILL
    assert select.select([server], [], [], 30)[0], "the server goes on"
    os.close(server)


def test_the_server_starts_cold_as_people_start_it(tmp_path: Path) -> None:
    """The installed script and `python -m redrive`; other tests fork."""
    with serving("sqlite://:memory:", directory=tmp_path, cold=True) as server:
        assert isinstance(server.process, subprocess.Popen)
        assert server.ask("GET", "/_redrive/health")[0] == 200
        assert server.stop() == 0
    for command in (PROGRAM.command, (sys.executable, "-m", "redrive")):
        cold = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        forked = redrive("--version")
        assert (cold.returncode, cold.stdout, cold.stderr) == (0, forked.stdout, forked.stderr)

"""Handlers of the tests' functions."""

import os
import select
import sys
from pathlib import Path
from typing import Any

calls = 0


def echo(event: Any, context: Any) -> Any:
    sys.stdout.write(f"seen {event}\n")
    return event


def count(event: float, context: Any) -> int:
    global calls  # noqa: PLW0603 - what an environment keeps between invocations
    calls += 1
    select.select([], [], [], event)
    return calls


def fail(event: Any, context: Any) -> None:
    global calls  # noqa: PLW0603 - what an environment keeps between invocations
    calls += 1
    raise ValueError(f"boom {calls}")


def keep(event: str, context: Any) -> bool:
    kept = Path(os.environ["TMPDIR"]) / "kept"
    if event == "hang":
        kept.write_text("x")
        sys.stdin.read()
        os.read(os.pipe()[0], 1)
    return kept.exists()


def leave(event: int, context: Any) -> None:
    os._exit(event)


def eat(event: Any, context: Any) -> int:
    held = bytearray(400_000_000)
    os.read(os.pipe()[0], 1)
    return len(held)


def long_answer(event: int, context: Any) -> str:
    return "x" * event


def print_much(event: int, context: Any) -> int:
    for _ in range(event):
        sys.stdout.write("y" * 1023 + "\n")
    return 1


def variables(event: Any, context: Any) -> dict[str, str]:
    return dict(os.environ)


def process(event: Any, context: Any) -> int:
    return os.getpid()


def flee(event: Any, context: Any) -> int:
    child = os.fork()
    if child == 0:
        os.setsid()
        os.read(os.pipe()[0], 1)
    return child


def look_round(event: str, context: Any) -> list[Any]:
    seen = b"".join(
        (process / "environ").read_bytes() for process in Path("/proc").iterdir() if process.name.isdigit()
    )
    Path("/tmp/mine").write_text("x")
    return [Path(event).exists(), Path("/etc/shadow").exists(), b"PYTEST" in seen, str(Path.cwd())]

"""Handlers of the tests' functions."""

import json
import os
import select
import sys
from http.client import HTTPConnection
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
    if event == "leave":
        os._exit(3)
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


def multiply(event: Any, context: Any) -> int:
    """Fork until somebody ends it; not more than that, so that a server which does not is not much hurt."""
    for _ in range(event):
        if not os.fork():
            os.read(os.pipe()[0], 1)
    os.read(os.pipe()[0], 1)
    return event


def shout(event: int, context: Any) -> int:
    """Write so many bytes past Python's own buffer."""
    for _ in range(event // 65_536):
        os.write(1, b"z" * 65_535 + b"\n")
    return event


def leave_shouting(event: Any, context: Any) -> int:
    """Leave a process behind that writes without end."""
    child = os.fork()
    while not child:
        os.write(1, b"z" * 65_536)
    return child


def hang_up(event: bool, context: Any) -> bool:
    """Close every socket of the runtime client; something else stands in their places."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in Path("/proc/self/fd").iterdir() if event else ():
        if file.is_symlink() and str(file.readlink()).startswith("socket:"):
            os.dup2(nothing, int(file.name))
    os.close(nothing)
    return event


def meddle(event: Any, context: Any) -> list[Any]:
    """Answer somebody else's invocation."""
    api = HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    api.request("POST", "/2018-06-01/runtime/invocation/somebody-else/response", b"{}")
    answer = api.getresponse()
    return [answer.status, json.loads(answer.read())]


def spin(event: Any, context: Any) -> None:
    """Work for ever."""
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    while True:
        pass

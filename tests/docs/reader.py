"""Somebody who follows a page from its beginning to its end."""

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import boto3  # type: ignore[import-untyped]  # boto3 ships no types

from redrive.cli.main import main
from tests.docs.pages import Fence, Page
from tests.services.clients import AWS
from tests.services.programs import free_port
from tests.services.server import Server

_DEFAULT_PORT: Final = "4566"
_DEFAULT_ADDRESS: Final = f"127.0.0.1:{_DEFAULT_PORT}"
_AZ_PLACE: Final = Path(__file__).parents[2] / ".venv-az/bin"  # `make az`
_NO_MARK: Final = ("", "no-run")


@dataclass
class Reader:
    """One reader at work.

    Attributes:
        directory: Where everything happens.
        stand_ins: Texts of the page, and what they are here: addresses, above all.
        said: What the last fence printed.
    """

    directory: Path
    stand_ins: dict[str, str] = field(default_factory=dict)
    said: str = ""
    _namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    _servers: dict[str, Server] = field(default_factory=dict)
    _environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{_AZ_PLACE}:{os.environ['PATH']}",
            "HOME": str(self.directory),
            "LANG": "C.UTF-8",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def follow(self, page: Page) -> None:
        """Do what the page says, and compare."""
        for fence in page.fences:
            try:
                self._do(fence)
            except Exception as error:
                error.add_note(f"{page}:{fence.line}")
                raise

    def close(self) -> None:
        """Let go of clients and servers."""
        for value in self._namespace.values():
            if hasattr(value, "close") and not isinstance(value, type):
                value.close()
        for server in self._servers.values():
            server.kill()

    def _do(self, fence: Fence) -> None:
        if _DEFAULT_ADDRESS in fence.text and fence.mark != "serve" and not self._servers:
            self._start(["redrive", "serve"])  # the page takes it for granted
        match fence.language, fence.mark:
            case "console", "serve":
                self._serve(fence)
            case "console", "run":
                self._run(fence)
            case "python", "":
                self._execute(fence)
            case _, "output":
                self._compare(fence.text)
            case _, name if "." in name:
                (self.directory / name).write_text(self._here(fence.text))
            case _, mark:
                assert mark in _NO_MARK, f"unknown mark {mark}"

    def _here(self, text: str) -> str:
        for shown, actual in self.stand_ins.items():
            text = text.replace(shown, actual)
        return text

    def _compare(self, expected: str) -> None:
        wanted, got = self._here(expected).strip(), self.said.strip()
        pattern = re.escape(wanted).replace("…", ".*?")
        assert re.fullmatch(pattern, got, re.DOTALL), f"\nshown:\n{wanted}\n\nprinted:\n{got}"

    # ---- servers -------------------------------------------------------------------------------------------------

    def _serve(self, fence: Fence) -> None:
        for command, expected in _commands(fence.text):
            url = self._start(shlex.split(self._here(command)))
            self.said = f"Redrive ready on {url}\n"
            if expected:
                self._compare(expected)

    def _start(self, words: list[str]) -> str:
        settings = dict(word.split("=", 1) for word in _leading_settings(words))
        flags = _flags(words[len(settings) :])
        port = _documented_port(flags, settings)
        if port in self._servers:
            self._servers[port].stop()
        actual = self.stand_ins.get(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
        self.stand_ins |= {f"127.0.0.1:{port}": actual, f"localhost:{port}": actual}
        environment = {**self._environment, **settings, "REDRIVE_PORT": actual.rpartition(":")[2]}
        log = self.directory / f"server-{port}.log"
        server = self._servers[port] = Server(tuple(_without_port(flags)), log, environment)
        server.start()
        if port == _DEFAULT_PORT:
            self._environment["REDRIVE_URL"] = server.url
        return server.url

    # ---- commands ------------------------------------------------------------------------------------------------

    def _run(self, fence: Fence) -> None:
        for command, expected in _commands(fence.text):
            self.said = self._shell(self._here(command))
            self._compare(expected)

    def _shell(self, command: str) -> str:
        """Run a command; what it exports stays for those that follow."""
        if command.startswith("curl "):
            return _curl(shlex.split(command)[1:])
        if not re.search(
            r"[|$<>]", command
        ):  # each start of these takes a second of a processor, or half of one
            if command.startswith("redrive "):
                return self._redrive(shlex.split(command)[1:])
            if command.startswith("aws "):
                return self._aws(shlex.split(command)[1:])
        after = self.directory / ".environment"
        script = f"{command}\nstatus=$?\nenv -0 > {shlex.quote(str(after))}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"exit status {done.returncode} of {command}:\n{done.stdout}"
        self._environment = dict(line.split("=", 1) for line in after.read_text().split("\0") if line)
        return done.stdout

    def _aws(self, words: list[str]) -> str:
        """The AWS CLI, forked from a process that has imported it."""
        done = AWS.run(words, self._environment, self.directory)
        assert done.returncode == 0, (
            f"exit status {done.returncode} of aws {shlex.join(words)}:\n{done.stderr}"
        )
        return done.stdout + done.stderr

    def _redrive(self, words: list[str]) -> str:
        """Redrive's own commands, in this process."""
        printed = io.StringIO()
        with self._as_reader(printed), contextlib.redirect_stderr(printed):
            status = main(words)
        assert status == 0, f"exit status {status} of redrive {shlex.join(words)}:\n{printed.getvalue()}"
        return printed.getvalue()

    # ---- Python --------------------------------------------------------------------------------------------------

    def _execute(self, fence: Fence) -> None:
        code = compile(self._here(fence.text), f"<snippet of line {fence.line}>", "exec")
        boto3.DEFAULT_SESSION = None  # which remembers the environment it was made in
        printed = io.StringIO()
        with self._as_reader(printed):
            exec(code, self._namespace)
        self.said = printed.getvalue()

    @contextlib.contextmanager
    def _as_reader(self, printed: io.StringIO) -> Iterator[None]:
        """This process with the reader's environment, printing there."""
        with mock.patch.dict(os.environ, self._environment, clear=True), contextlib.redirect_stdout(printed):
            yield


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a fence, with the lines below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.replace("\\\n", "").partition("\n")
        yield command, expected


def _leading_settings(words: list[str]) -> list[str]:
    settings = []
    for word in words:
        if not re.match(r"[A-Z_]+=", word):
            break
        settings.append(word)
    return settings


def _flags(words: list[str]) -> list[str]:
    match words:
        case ["make", "run"]:
            return []
        case ["make", "run", arguments]:
            return shlex.split(arguments.removeprefix("args="))
        case ["redrive", "serve", *flags]:
            return flags
    raise AssertionError(f"not a command that serves: {shlex.join(words)}")


def _documented_port(flags: list[str], settings: Mapping[str, str]) -> str:
    if "--port" in flags:
        return flags[flags.index("--port") + 1]
    return settings.get("REDRIVE_PORT", _DEFAULT_PORT)


def _without_port(flags: list[str]) -> list[str]:
    if "--port" not in flags:
        return flags
    at = flags.index("--port")
    return flags[:at] + flags[at + 2 :]


def _curl(words: list[str]) -> str:
    """As much of curl as the pages need; not every machine has it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-d", dest="body")
    parser.add_argument("url")
    asked = parser.parse_args(words)
    body = None if asked.body is None else asked.body.encode()
    request = urllib.request.Request(asked.url, body, method=asked.method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()

"""Launch: which program runs a function of which runtime, and what its environment holds."""

import asyncio
import importlib.util
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Self

from redrive.functions.isolation import Folders
from redrive.model.function import FunctionVersion

RUNTIME_FOLDER: Final = Path(__file__).with_name("runtime")
_PYTHON: Final = re.compile(r"python(3\.\d+)")
_NODE: Final = re.compile(r"nodejs(\d+)\.x")
_JAVA: Final = re.compile(r"java(\d+)(\.al2(023)?)?")
_JAVA_CLIENT: Final = "com.amazonaws.services.lambda.runtime.api.client.AWSLambda"
_SEEN: Final = "/usr/local/bin:/usr/bin:/bin"


class Unsupported(Exception):  # noqa: N818 - a refusal
    """No program on this machine runs the runtime; its text says what is missing."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program that runs a function."""

    command: Sequence[str]  # With its arguments; `{handler}` and the folders are filled in
    folders: Sequence[str] = ()  # Folders that the command needs besides the system's
    remark: str = ""  # One line for the function's log, where it is not exactly what the runtime's name says
    variables: Mapping[str, str] | None = None  # Additional environment variables of the runtime


def program_for(function: FunctionVersion, folders: Folders, java_client: str) -> Program:
    """The program for a function.

    Args:
        function: Whose runtime and handler it is.
        folders: As the process sees them.
        java_client: The folder with the jars of Lambda's Java runtime client; empty: there is none.

    Raises:
        Unsupported: None is on this machine.
    """
    runtime = function.runtime
    if match := _PYTHON.fullmatch(runtime):
        return _python(match[1], function, folders)
    if match := _NODE.fullmatch(runtime):
        return _node(match[1], folders)
    if match := _JAVA.fullmatch(runtime):
        return _java(match[1], function, folders, java_client)
    if runtime.startswith("provided"):
        return _bootstrap(function, folders)
    raise Unsupported(f"Redrive does not run {runtime}: it runs python3.x, nodejs.x, java and provided.*")


def environment_of(
    function: FunctionVersion, folders: Folders, api: str, stream: str, program: Program
) -> dict[str, str]:
    """The variables of a function's process, as AWS sets them; nothing of the server's own environment."""
    name = function.name
    variables = {
        "_HANDLER": function.handler,
        "LAMBDA_TASK_ROOT": folders.task,
        "LAMBDA_RUNTIME_DIR": folders.runtime,
        "AWS_LAMBDA_RUNTIME_API": api,
        "AWS_REGION": name.region,
        "AWS_DEFAULT_REGION": name.region,
        "AWS_LAMBDA_FUNCTION_NAME": name.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": stream,
        "AWS_LAMBDA_LOG_FORMAT": function.log_format,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency" if function.provisioned else "on-demand",
        "TZ": ":UTC",
        "LANG": "C.UTF-8",
        "PATH": f"{_SEEN}:{folders.layers}/bin",
        "LD_LIBRARY_PATH": f"{folders.task}:{folders.task}/lib:{folders.layers}/lib",
        "TMPDIR": folders.temporary,
        "HOME": folders.temporary,
        "PWD": folders.task,
    }
    if not function.runtime.startswith("provided"):
        variables["AWS_EXECUTION_ENV"] = f"AWS_Lambda_{function.runtime}"
    return variables | dict(program.variables or {})


# ---- one runtime each -----------------------------------------------------------------------------------


def _python(version: str, function: FunctionVersion, folders: Folders) -> Program:
    """Lambda's own client, which needs the interpreter that it was installed for: the server's."""
    own_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    client = importlib.util.find_spec("awslambdaric")
    if client is None or client.origin is None:
        raise Unsupported("awslambdaric is not installed: pip install awslambdaric")
    site = str(Path(client.origin).parents[1])  # its package's __init__.py
    interpreter = str(Path(sys.executable).resolve())
    remark = ""
    if version != own_version:
        remark = f"python{version} is served by Python {own_version}, the server's own"
    layers = f"{folders.layers}/python:{folders.layers}/python/lib/python{own_version}/site-packages"
    return Program(
        [interpreter, "-m", "awslambdaric", function.handler],
        [_installation(interpreter), site],
        remark,
        {"PYTHONPATH": f"{layers}:{site}", "LC_CTYPE": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
    )


def _installation(program: str) -> str:
    """The folder whose `bin` has a program, and whose `lib` has what that needs."""
    return str(Path(program).resolve().parents[1])


def _node(version: str, folders: Folders) -> Program:
    """Node, of whatever version there is, with a client of our own for the runtime API."""
    program = shutil.which(f"node{version}") or shutil.which("node")
    if program is None:
        raise Unsupported(f"nodejs{version}.x needs node on the server's PATH")
    major = _major(program)
    remark = "" if major == version else f"nodejs{version}.x is served by node {major}"
    layers = f"{folders.layers}/nodejs/node{major}/node_modules:{folders.layers}/nodejs/node_modules"
    return Program(
        [program, f"{folders.runtime}/node/index.js"],
        [_installation(program)],
        remark,
        {"NODE_PATH": f"{layers}:{folders.task}/node_modules"},
    )


def _java(version: str, function: FunctionVersion, folders: Folders, client: str) -> Program:
    """Java, of whatever version there is, with Lambda's own client; four fifths of the memory are for its heap."""
    program = shutil.which("java")
    if program is None:
        raise Unsupported(f"java{version} needs java on the server's PATH")
    if not client or not list(Path(client).glob("aws-lambda-java-runtime-interface-client-*.jar")):
        raise Unsupported(
            f"java{version} needs the jars of com.amazonaws:aws-lambda-java-runtime-interface-client in a folder"
            " that the setting functions-java-client names"
        )
    major = _major(program)
    remark = "" if major == version else f"java{version} is served by Java {major}"
    classes = f"{folders.task}:{folders.task}/lib/*:{folders.layers}/java/lib/*:{client}/*"
    heap = max(16, function.memory_mb * 4 // 5)
    return Program(
        [
            program,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            f"-Xmx{heap}m",
            f"-Djava.io.tmpdir={folders.temporary}",
            "-cp",
            classes,
            _JAVA_CLIENT,
            function.handler,
        ],
        [_installation(program), client],
        remark,
    )


def _bootstrap(function: FunctionVersion, folders: Folders) -> Program:
    """The function's own program; where it stands is looked at outside any namespace."""
    for outside, inside in ((function.code, folders.task), (function.layers, folders.layers)):
        if outside and (Path(outside) / "bootstrap").is_file():
            return Program([f"{inside}/bootstrap"])
    raise Unsupported("Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]")


@lru_cache(maxsize=16)
def _major(program: str) -> str:
    """The major version that an interpreter of Node or Java tells of itself."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 - found on PATH
    match = re.search(r"(\d+)\.", output.stdout)
    return match[1] if match else "?"


# The channel to a launcher: what it is to run goes in, sockets that listen in its network namespace come out.


class LaunchChannel:
    """A pair of connected sockets, one of which the launcher inherits."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(0)

    def __enter__(self) -> Self:
        """Hand `theirs` to a process within."""
        return self

    def __exit__(self, *_: object) -> None:
        """The process has it."""
        self.theirs.close()

    async def tell(
        self, command: Sequence[str], variables: Mapping[str, str], folder: str, ports: Sequence[int]
    ) -> list[socket.socket]:
        """Tell the launcher what to run, and return the sockets that listen on these ports of its namespace.

        Raises:
            OSError: It ended before it could listen.
        """
        document = {"command": list(command), "variables": variables, "folder": folder, "ports": list(ports)}
        with self._ours as ours:
            await asyncio.get_running_loop().sock_sendall(ours, json.dumps(document).encode())
            ours.shutdown(socket.SHUT_WR)
            return await _receive_sockets(ours, len(ports)) if ports else []


def _set(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


async def _receive_sockets(channel: socket.socket, count: int) -> list[socket.socket]:
    """The listening sockets that the launcher sends over the channel."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(channel)
    _, descriptors, *_ = socket.recv_fds(channel, 1, count)
    listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    if len(listeners) < count:
        raise ConnectionResetError("the launcher ended")
    return listeners

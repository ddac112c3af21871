"""LocalStack's conventions: programs that fill a server once it answers (`ready.d`), and some of its routes."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from redrive import __version__
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import StoreUnavailable
from redrive.model.http import Request, Response
from redrive.server.client_environment import client_variables, misleading_variables
from redrive.server.control import Reset, Route
from redrive.server.owned import SIGNING_NAME, json_answer, method_of
from redrive.settings.values import SettingsInvalid

logger = logging.getLogger(__name__)

READY: Final = "ready.d"
#: LocalStack's stages, of which this server runs the scripts of `READY`.
STAGES: Final = ("BOOT", "START", "READY", "SHUTDOWN")
_SUFFIXES: Final = frozenset({".sh", ".py"})

State = Literal["UNKNOWN", "RUNNING", "SUCCESSFUL", "ERROR"]


@dataclass(slots=True)
class _Script:
    path: Path
    state: State = "UNKNOWN"


class InitScripts:
    """The scripts of a folder, and how far they are.

    A script runs as this server's user, one after the other in order of their names, and one that fails does not
    keep the others from running. Its output goes to the server's standard error.
    """

    def __init__(self, folder: str) -> None:
        """Look for scripts.

        Args:
            folder: Has `ready.d`, with `*.sh` (executable, with a first line that names their interpreter) and `*.py`
                (run by this server's Python), also in folders below; empty: there are no scripts.

        Raises:
            SettingsInvalid: There is no such folder.
        """
        self._scripts = [_Script(path) for path in _paths(Path(folder).absolute())] if folder else []
        self._is_completed = False

    async def run(self, url: str, region: str) -> None:
        """Run all of them, with an environment in which clients ask the server at this URL."""
        variables = client_variables(os.environ, url, region, "test")
        environment = {**os.environ, **variables}
        for name in misleading_variables(os.environ, variables):
            del environment[name]
        for script in self._scripts:
            script.state = "RUNNING"
            status = await _exit_status(script.path, environment)
            script.state = "ERROR" if status else "SUCCESSFUL"
            level = logging.WARNING if status else logging.INFO
            logger.log(level, "init.script path=%s status=%s", script.path, status)
        self._is_completed = True

    def stages(self) -> Mapping[str, Any]:
        """The stages that are over and the state of each script, as LocalStack's `/_localstack/init` has it."""
        return {"completed": {stage: self._is_over(stage) for stage in STAGES}, "scripts": self._listing()}

    def stage(self, name: str) -> Mapping[str, Any]:
        """The same of one stage, in capitals."""
        return {"completed": self._is_over(name), "scripts": self._listing() if name == "READY" else []}

    def _is_over(self, stage: str) -> bool:
        return self._is_completed if stage == "READY" else stage != "SHUTDOWN"

    def _listing(self) -> list[dict[str, str]]:
        return [
            {"stage": "READY", "name": script.path.name, "state": script.state} for script in self._scripts
        ]


def _paths(folder: Path) -> Iterator[Path]:
    """The scripts of a folder before those of the folders in it, each in order of their names."""
    if not (folder / READY).is_dir():
        raise SettingsInvalid(f"init_scripts {folder} has no folder {READY}")
    for below, folders, files in os.walk(folder / READY):
        folders.sort()
        yield from (Path(below, name) for name in sorted(files) if Path(name).suffix in _SUFFIXES)


async def _exit_status(path: Path, environment: Mapping[str, str]) -> int | str:
    """The exit status of a script, or why it cannot be run; no process of it outlives the server."""
    command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
        )
    except OSError as error:
        return f"{error.strerror}"
    try:
        return await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


PREFIXES: Final = ("/_localstack/", "/_aws/")
_OFFERED: Final = (
    "/_localstack/health, /_localstack/init, /_localstack/state/reset (with --allow-reset),"
    " /_aws/sqs/messages, /_aws/sns/subscription-tokens (with --allow-reset), /_aws/sns/sms-messages (with --sms-gateway"
    " memory) and /_aws/lambda/runtimes (where functions run)"
)
_RESET: Final = "/_localstack/state/reset"
_INIT: Final = "/_localstack/init"


class EmulatorRoutes:
    """Answers what LocalStack would, besides the routes that services have themselves."""

    def __init__(
        self,
        services: Mapping[str, str],
        reset: Reset | None,
        scripts: InitScripts,
        authentication: Authentication,
    ) -> None:
        """Answer for a server with these services; `reset` removes everything, where that may be asked for."""
        self._services = services
        self._reset = reset
        self._scripts = scripts
        self._authentication = authentication
        self._routes: Mapping[tuple[str, str], Route] = {
            ("GET", "/_localstack/health"): self._answer_health,
            ("GET", _INIT): self._answer_init,
            ("POST", _RESET): self._answer_reset,
        }

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        path = _INIT if request.path.startswith(f"{_INIT}/") else request.path
        route = self._routes.get((method_of(request), path))
        if route is None:
            return _not_offered(request)
        try:
            return await route(request)
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        except StoreUnavailable as error:
            return json_answer(503, {"message": str(error)})

    async def _answer_health(self, _: Request) -> Response:
        return json_answer(200, {"services": self._services, "edition": "redrive", "version": __version__})

    async def _answer_init(self, request: Request) -> Response:
        """The state of all init scripts, or of those of the stage in the path."""
        stage = request.path.removeprefix(_INIT).removeprefix("/").upper()
        if stage and stage not in STAGES:
            return _not_offered(request)
        # Strangers are refused: the answer has the names of the operator's files.
        await self._authentication.caller(request, SIGNING_NAME)
        return json_answer(200, self._scripts.stage(stage) if stage else self._scripts.stages())

    async def _answer_reset(self, request: Request) -> Response:
        """Remove everything, where that may be asked for."""
        if self._reset is None:
            needed = "a server that was started with --allow-reset has it"
            return json_answer(404, {"message": f"no route POST {_RESET}; {needed}"})
        await self._authentication.caller(request, SIGNING_NAME)
        await self._reset()
        return json_answer(200, {"status": "ok"})


def _not_offered(request: Request) -> Response:
    message = f"no route {request.method} {request.path}; of LocalStack's own routes Redrive has {_OFFERED}"
    return json_answer(404, {"message": message})

"""Init scripts: programs that fill a server once it answers, from a folder as LocalStack has one (`ready.d`)."""

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

from redrive.server.client_environment import client_variables, misleading
from redrive.settings.invalid import SettingsInvalid

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
        self._completed = False

    async def run(self, url: str, region: str) -> None:
        """Run all of them, with an environment in which clients ask the server at this URL."""
        variables = client_variables(os.environ, url, region, "test")
        environment = {**os.environ, **variables}
        for name in misleading(os.environ, variables):
            del environment[name]
        for script in self._scripts:
            script.state = "RUNNING"
            status = await _exit_status(script.path, environment)
            script.state = "ERROR" if status else "SUCCESSFUL"
            level = logging.WARNING if status else logging.INFO
            logger.log(level, "init.script path=%s status=%s", script.path, status)
        self._completed = True

    def stages(self) -> Mapping[str, Any]:
        """The stages that are over and the state of each script, as LocalStack's `/_localstack/init` has it."""
        return {
            "completed": {stage: self._is_over(stage) for stage in STAGES},
            "scripts": self._listing(),
        }

    def stage(self, name: str) -> Mapping[str, Any]:
        """The same of one stage, in capitals."""
        return {"completed": self._is_over(name), "scripts": self._listing() if name == "READY" else []}

    def _is_over(self, stage: str) -> bool:
        return self._completed if stage == "READY" else stage != "SHUTDOWN"

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

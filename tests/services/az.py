"""The Azure CLI, unmodified, in an environment of its own: a process a command, 0.4 s each and the first one more."""

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import orjson

from tests.services.clients import CommandFailedError
from tests.services.companions import CompanionMissingError

_AZ: Final = Path(__file__).parents[2] / ".venv-az/bin/az"


class Az:
    """`az("group", "create", "-n", "rg")` returns the command's JSON output, or None."""

    def __init__(self, home: Path, authority: Path) -> None:
        """Run it with settings of its own.

        Args:
            home: A directory for its settings, so that it reads nobody else's.
            authority: The certificate that it trusts, and no other.

        Raises:
            CompanionMissingError: It is not installed.
        """
        if not _AZ.exists():
            raise CompanionMissingError("The Azure CLI is not installed: `make az` installs it")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AZURE_CONFIG_DIR": str(home),
            "REQUESTS_CA_BUNDLE": str(authority),
        }

    def __call__(self, *arguments: str) -> Any:
        """Run one command.

        Raises:
            CommandFailedError: Its exit status is not 0.
        """
        done = subprocess.run(
            [str(_AZ), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise CommandFailedError(done.stderr.strip(), done.returncode)
        return orjson.loads(done.stdout) if done.stdout.lstrip().startswith(("{", "[", '"')) else None

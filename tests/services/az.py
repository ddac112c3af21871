"""The Azure CLI, unmodified, in an environment of its own: a process a command."""

import os
from pathlib import Path
from typing import Any, Final

import orjson

from tests.services.clients import CommandFailedError
from tests.services.companions import CompanionMissingError
from tests.services.programs import Program

_AZ: Final = Path(__file__).parents[2] / ".venv-az/bin/az"
# Of the commands that tests give: 0.2 s of a processor each, and not 0.6.
_MODULES: Final = (
    *("azure.cli.core", "azure.cli.core.aaz", "azure.cli.core.auth.identity", "azure.cli.core.commands"),
    *(
        f"azure.cli.command_modules.{name}"
        for name in ("cloud", "eventgrid", "profile", "resource", "storage")
    ),
    *("azure.mgmt.eventgrid", "azure.mgmt.resource.deployments.models", "azure.mgmt.storage"),
    *("azure.storage.blob", "azure.storage.fileshare"),
)


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
            "AZ_INSTALLER": "PIP",
        }
        # The imports read the environment, so that others with settings of their own share nothing with these.
        self._program = Program(
            "azure.cli",
            modules=_MODULES,
            command=(str(_AZ),),
            environment=self._environment,
            interpreter=str(_AZ.with_name("python")),
        )

    def __call__(self, *arguments: str) -> Any:
        """Run one command.

        Raises:
            CommandFailedError: Its exit status is not 0.
        """
        done = self._program.run(arguments, self._environment)
        if done.returncode != 0:
            raise CommandFailedError(done.stderr.strip(), done.returncode)
        return orjson.loads(done.stdout) if done.stdout.lstrip().startswith(("{", "[", '"')) else None

"""Azurite, the emulator of Azure's storage accounts: one process a test run, which keeps all in memory.

It takes 2 s to start. Tests share its one account, so each makes containers and queues of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.services import companions
from tests.services.programs import free_port

ACCOUNT: Final = "teststore"
KEY: Final = "c2VjcmV0"  # "secret"
RESOURCE: Final = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Storage"
    f"/storageAccounts/{ACCOUNT}"
)
_PROGRAM: Final = Path(__file__).parents[2] / ".azurite/node_modules/azurite/dist/src/azurite.js"
_ADVICE: Final = "`make azurite` installs it and what it needs"


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running emulator.

    Attributes:
        blob_url: Its account's blob service.
        queue_url: Its account's queue service.
    """

    blob_url: str
    queue_url: str

    @property
    def connection_string(self) -> str:
        """The connection string for clients of Azure's storage accounts."""
        return ";".join(
            (
                f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY}",
                f"BlobEndpoint={self.blob_url}",
                f"QueueEndpoint={self.queue_url}",
            )
        )


def shared_azurite(run_directory: Path) -> Azurite:
    """The run's emulator, started by whichever process asks first.

    Raises:
        CompanionMissingError: It is not installed.
    """
    return Azurite(**companions.shared(run_directory, "azurite", _start))


def _start(directory: Path) -> Mapping[str, str]:
    if not _PROGRAM.exists():
        raise companions.CompanionMissingError(f"Azurite is not installed: {_ADVICE}")
    ports = {service: free_port() for service in ("blob", "queue", "table")}
    companions.run(
        directory,
        companions.program("node", _ADVICE),
        str(_PROGRAM),
        "--inMemoryPersistence",
        "--silent",
        "--disableTelemetry",
        "--skipApiVersionCheck",  # clients may be newer than the emulator
        *(f"--{service}Port={port}" for service, port in ports.items()),
        ready="successfully listening",
        count=len(ports),
        AZURITE_ACCOUNTS=f"{ACCOUNT}:{KEY}",
    )
    return {f"{service}_url": f"http://127.0.0.1:{ports[service]}/{ACCOUNT}" for service in ("blob", "queue")}

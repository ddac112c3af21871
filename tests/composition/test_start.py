"""A server's start loads what every server needs, and leaves the rest for whoever needs it."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

from redrive.app import assembled
from redrive.aws.services import FOLDERS
from redrive.settings import Settings

SERVES: Final = """
import asyncio, sys
from redrive.cli.main import parser
from redrive.app import assembled
from redrive.settings import Settings

parser("serve")

async def serve():
    async with assembled(Settings(store=sys.argv[1]), "http://127.0.0.1:4566") as server:
        await server.open()

asyncio.run(serve())
print(*sys.modules)
"""
# Each would be one to ten hundredths of the start.
LEFT: Final = {
    "aiosmtplib": "mail, where a relay is named",
    "asyncpg": "PostgreSQL",
    "boto3": "nothing",
    "botocore": "commands that ask servers, and functions elsewhere",
    "cryptography.x509": "TLS, and the first signature",
    "h2": "Apple's push service",
    "jinja2": "the console's first visit",
    "jwt": "the first token",
    "obstore": "the first blob",
    "opentelemetry": "a collector",
    "rich": "commands that draw on a terminal",
    "samtranslator": "a process of its own",
    "shtab": "redrive completion",
}


#: Services that every server has at hand; of the others a start loads what stands for them.
AT_HAND: Final = {"sqs", "sns", "kms"}


async def loaded(folder: Path) -> set[str]:
    """The modules of a server that starts on a store which another has made, with the installation's key in it."""
    store = f"sqlite:///{folder}/redrive.db"
    async with assembled(Settings(store=store), "http://127.0.0.1:4566"):
        pass
    command = [sys.executable, "-c", SERVES, store]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


async def test_a_start_loads_no_library_that_few_servers_need(tmp_path: Path) -> None:
    assert not LEFT.keys() & await loaded(tmp_path)


async def test_a_start_loads_no_service_that_nobody_asked_for(tmp_path: Path) -> None:
    modules = await loaded(tmp_path)
    assert {f"redrive.aws.{folder}.service" for folder in FOLDERS.values()} <= modules
    later = {folder.partition(".")[0] for folder in FOLDERS.values()} - AT_HAND
    assert not {f"redrive.composition.{name}" for name in later} & modules
    assert not {"redrive.aws.iam.users", "redrive.aws.ssm.parameters", "redrive.aws.sts.sessions"} & modules
    assert not {"redrive.composition.event_grid_delivery", "redrive.composition.event_grid_gateway"} & modules

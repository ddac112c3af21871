"""A server's start loads what every server needs, and leaves the rest for whoever needs it."""

import subprocess
import sys
from typing import Final

from redrive.aws.services import FOLDERS

SERVES: Final = """
import asyncio, sys
from redrive.cli.main import parser
from redrive.app import assembled
from redrive.settings import Settings

parser("serve")

async def serve():
    async with assembled(Settings(store="sqlite://:memory:"), "http://127.0.0.1:4566") as server:
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
    "h2": "Apple's push service",
    "jinja2": "the console's first visit",
    "opentelemetry": "a collector",
    "rich": "commands that draw on a terminal",
    "samtranslator": "a process of its own",
    "shtab": "redrive completion",
}


#: Services that every server has at hand; of the others a start loads what stands for them.
AT_HAND: Final = {"sqs", "sns", "kms"}


def test_a_start_loads_no_library_that_few_servers_need() -> None:
    done = subprocess.run([sys.executable, "-c", SERVES], capture_output=True, text=True, check=True)
    assert not LEFT.keys() & set(done.stdout.split())


def test_a_start_loads_no_service_that_nobody_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", SERVES], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {f"redrive.aws.{folder}.service" for folder in FOLDERS.values()} <= loaded
    later = {folder.partition(".")[0] for folder in FOLDERS.values()} - AT_HAND
    assert not {f"redrive.composition.{name}" for name in later} & loaded
    assert not {"redrive.aws.iam.users", "redrive.aws.ssm.parameters", "redrive.aws.sts.assuming"} & loaded

"""A server that wants signatures, one that trusts everybody on loopback, and a key."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.server import REDRIVE, Server, serving

ACCOUNT = "111111111111"
STRANGER = "222222222222"


@pytest.fixture(scope="session")
def strict() -> Iterator[Server]:
    """Signatures are required; nothing that is tried may leave a traceback in its log."""
    directory = Path(tempfile.mkdtemp(prefix="attack-"))
    with serving(f"sqlite:///{directory}/redrive.db", "--auth", "required", directory=directory) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.fixture(scope="session")
def trusting() -> Iterator[Server]:
    """Everybody on loopback is taken at their word."""
    with serving("sqlite://:memory:", "--allow-reset") as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def new_key(server: Server, account: str) -> tuple[str, str]:
    """A key of an account: its id and its secret."""
    store = server.flags[server.flags.index("--store") + 1]
    command = [str(REDRIVE), "keys", "create", "--account", account, "--store", store]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.fullmatch(r"AWS_ACCESS_KEY_ID=(\S+)\nAWS_SECRET_ACCESS_KEY=(\S+)\n", printed)
    assert found is not None, printed
    return found[1], found[2]


@pytest.fixture(scope="session")
def key(strict: Server) -> tuple[str, str]:
    """A key of `ACCOUNT`."""
    return new_key(strict, ACCOUNT)


@pytest.fixture(scope="session")
def other_key(strict: Server) -> tuple[str, str]:
    """A key of `STRANGER`."""
    return new_key(strict, STRANGER)

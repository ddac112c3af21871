"""A server that wants signatures, one that trusts everybody on loopback, and a key."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.server import Server, new_key, serving

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


@pytest.fixture(scope="session")
def key(strict: Server) -> tuple[str, str]:
    """A key of `ACCOUNT`."""
    return new_key(strict.store, ACCOUNT)


@pytest.fixture(scope="session")
def other_key(strict: Server) -> tuple[str, str]:
    """A key of `STRANGER`."""
    return new_key(strict.store, STRANGER)

"""A server whose time stands still, and commands that ask it."""

from collections.abc import Iterator

import pytest

from redrive.cli.main import main
from tests.cli.telling import Command
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.services.server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--allow-reset") as server:
        yield server


@pytest.fixture
def sns(server: Server, monkeypatch: pytest.MonkeyPatch) -> Sns:
    """The caller, whom commands sign as; nothing is there yet."""
    server.reset()
    sns = Sns(server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sns.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return sns


@pytest.fixture
def redrive(sns: Sns, server: Server, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str, status: int = 0) -> str:
        assert main([*words, "--url", server.url, "--region", sns.region]) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    return run


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook().serving() as webhook:
        yield webhook

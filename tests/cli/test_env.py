"""`redrive env` in a shell that is set up for the real AWS."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.cli.main import main
from tests.services.server import Server

# A shell in which every tool asks the real AWS, with credentials that may be good there.
_PRODUCTION = {
    "AWS_PROFILE": "production",
    "AWS_SESSION_TOKEN": "token",
    "AWS_ACCESS_KEY_ID": "AKIAPRODUCTION000000",
    "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "NO_PROXY": "example.org",
}


@pytest.fixture(autouse=True)
def _production(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**_PRODUCTION, "AWS_CA_BUNDLE": os.devnull}.items():
        monkeypatch.setenv(name, value)


def _lines(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["env", *words]) == 0
    return capsys.readouterr().out


def _shell(script: str, home: Path) -> str:
    """The output of a script in a shell that finds the AWS CLI."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(home)}
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_client_in_the_shell_asks_the_server(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _lines(capsys, "--url", server.url, "--region", "eu-west-1", "--account", "123456789012")
    boto3 = "import boto3; print(boto3.client('sqs').list_queues()['QueueUrls'])"
    printed = _shell(
        f'{lines}\naws sqs create-queue --queue-name env --query QueueUrl\n"{sys.executable}" -c "{boto3}"',
        tmp_path,
    )
    url = f"{server.url}/123456789012/env"
    assert printed.splitlines() == [f'"{url}"', f"['{url}']"]


def test_nothing_that_is_set_leads_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, "--url", "https://queues.example:8443")
    environment = dict(line.split("=", 1) for line in _shell(f"{lines}\nenv", tmp_path).splitlines())
    assert {name: value for name, value in environment.items() if name.startswith("AWS_")} == {
        "AWS_ENDPOINT_URL": "https://queues.example:8443",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "000000000000",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CA_BUNDLE": os.devnull,
    }
    assert environment["NO_PROXY"] == "queues.example,example.org"
    assert environment["REDRIVE_URL"] == "https://queues.example:8443"


def test_an_account_has_twelve_digits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["env", "--account", "prod; rm"])
    assert "'prod; rm' is not an account: 12 digits" in capsys.readouterr().err

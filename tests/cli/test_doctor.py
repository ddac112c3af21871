"""`redrive doctor`: each thing that leaves a server open is found, and nothing is found that does not."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from redrive.cli import doctor
from redrive.cli.main import main
from redrive.settings import Settings
from redrive.settings.hardening import findings

HARDENED: dict[str, Any] = {
    "auth": "required",
    "host": "10.1.2.3",
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "store": "postgresql://redrive@db.example/redrive?sslmode=verify-full",
    "store_key_file": "store.key",
    "forbid_private_endpoints": True,
    "allow_private_endpoints": "10.1.0.0/16",
    "aws_endpoints": "arn:aws:lambda:us-east-1:000000000000:function:bill=http://127.0.0.1:9000",
    "functions": "on",
    "functions_isolation": "bubblewrap",
    "smtp_host": "mail.example",
    "smtp_starttls": True,
}


def test_a_hardened_server_has_nothing_open() -> None:
    found = list(findings(Settings(**HARDENED)))
    assert [finding for finding in found if finding.open] == []
    assert len(found) > 10


@pytest.mark.parametrize(
    ("check", "changed", "told"),
    [
        ("signatures", {"auth": "off", "host": "127.0.0.1"}, "auth = required"),
        ("test switches", {"allow_reset": True, "clock": "simulated"}, "allow_reset, clock: for tests"),
        ("test switches", {"insecure_test_keys": True}, "insecure_test_keys"),
        ("test switches", {"skip_queue_waits": True}, "skip_queue_waits"),
        ("sealed secrets", {"store_key_file": ""}, "store_key_file seals them"),
        ("encryption", {"tls_cert": "", "tls_key": ""}, "in clear"),
        ("database", {"store": "postgresql://redrive@db.example/redrive?sslmode=require"}, "verify-full"),
        ("listening", {"host": "0.0.0.0"}, "every network"),
        ("listening", {"host": "::"}, "every network"),
        (
            "pushes",
            {"host": "127.0.0.1", "forbid_private_endpoints": False},
            "forbid_private_endpoints = true",
        ),
        ("pushes", {"allow_private_endpoints": "0.0.0.0/0"}, "0.0.0.0/0 in allow_private_endpoints"),
        ("pushes", {"allow_private_endpoints": "10.0.0.0/8,169.254.0.0/16"}, "169.254.0.0/16 in allow"),
        ("lent credentials", {"aws_endpoints": "lambda=aws"}, "credentials of lambda"),
        ("lent credentials", {"azure_endpoints": "store=AccountKey=c2VjcmV0"}, "credentials of store"),
        ("functions", {"functions_isolation": "none"}, "bubblewrap"),
        ("mail", {"smtp_starttls": False}, "smtp_starttls = true"),
    ],
)
def test_each_open_door_is_found_with_the_setting_that_closes_it(
    check: str, changed: dict[str, Any], told: str
) -> None:
    found = [each for each in findings(Settings(**(HARDENED | changed))) if each.open]
    assert [finding.check for finding in found] == [check]
    assert told in found[0].open


def test_any_host_is_open_where_nobody_signs() -> None:
    (found,) = [each for each in findings(Settings(allow_hosts="a,*")) if each.check == "hosts"]
    assert "any web page" in found.open
    (found,) = [
        each for each in findings(Settings(allow_hosts="*", auth="required")) if each.check == "hosts"
    ]
    assert not found.open


@pytest.mark.parametrize(
    "store", ["sqlite:///redrive.db", "postgresql:///redrive", "postgresql://127.0.0.1/redrive"]
)
def test_a_store_on_this_machine_needs_no_proof(store: str) -> None:
    (found,) = [each for each in findings(Settings(store=store)) if each.check == "database"]
    assert not found.open


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is open."""
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, 1_000_000))


def checks(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str | None]]:
    status = main(["doctor", "--json", *arguments])
    said = json.loads(capsys.readouterr().out)
    return status, {each["check"]: each["open"] for each in said["checks"]}


@pytest.mark.usefixtures("careful")
def test_files_that_others_can_read_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config, key, store = tmp_path / "redrive.toml", tmp_path / "store.key", tmp_path / "redrive.db"
    config.write_text(f'auth = "required"\nforbid_private_endpoints = true\nstore_key_file = "{key}"\n')
    for file in (config, key, store):
        file.touch()
        file.chmod(0o600)
    flags = ("--config", str(config), "--store", f"sqlite:///{store}")
    assert checks(capsys, *flags)[0] == 0
    key.chmod(0o640)
    store.chmod(0o604)
    status, found = checks(capsys, *flags)
    assert (status, found["files"]) == (1, f"others can read {store} (604), {key} (640); chmod 600")


@pytest.mark.usefixtures("careful")
def test_a_settings_file_is_secret_where_it_holds_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "redrive.toml"
    config.write_text("port = 5000\n")
    config.chmod(0o644)
    monkeypatch.setenv("REDRIVE_CONFIG", str(config))
    assert checks(capsys)[1]["files"] is None
    config.write_text('smtp_password = "s3cret"\n')
    assert checks(capsys)[1]["files"] == f"others can read {config} (644); chmod 600"
    config.write_text('[[keys]]\nid = "ci"\nsecret = "sixteen-characters-or-more"\n')
    assert checks(capsys)[1]["files"] == f"others can read {config} (644); chmod 600"


@pytest.mark.usefixtures("careful")
def test_root_and_few_files_are_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = checks(capsys)[1]
    assert (found["user"], found["open files"]) == (None, None)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, 4096))
    found = checks(capsys)[1]
    assert "root" in (found["user"] or "")
    assert (found["open files"] or "").startswith("4096 are allowed")
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    assert checks(capsys, "--functions", "on", "--functions-isolation", "user")[1]["user"] is None


def test_a_line_a_check_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("OPEN  signatures        whoever reaches the port")
    assert "ok    test switches" in lines

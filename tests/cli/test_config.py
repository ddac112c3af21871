import json
from pathlib import Path

import pytest

from redrive.cli.main import main


def test_settings_come_with_where_they_are_from_and_no_secret_in_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_SMTP_PASSWORD", "s3cret")
    monkeypatch.setenv("REDRIVE_SMS_GATEWAY", "smpp://me:s3cret@smsc:2775?window=5")
    monkeypatch.setenv("REDRIVE_AZURE_ENDPOINTS", "letters=AccountKey=s3cret")
    assert main(["config", "--store", "postgresql://me:s3cret@db/redrive", "--fifo-quotas"]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines()}
    assert lines["store"] == ["postgresql://me:***@db/redrive", "flag"]
    assert lines["fifo_quotas"] == ["true", "flag"]
    assert lines["port"] == ["4566", "default"]
    assert lines["smtp_password"] == ["***", "environment", "(REDRIVE_SMTP_PASSWORD)"]
    assert lines["sms_gateway"][0] == "smpp://me:***@smsc:2775?window=5"
    assert "s3cret" not in said


def test_the_file_can_be_named_in_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named, given = tmp_path / "named.toml", tmp_path / "given.toml"
    named.write_text("port = 5001\n")
    given.write_text("port = 5002\n")
    monkeypatch.setenv("REDRIVE_CONFIG", str(named))
    assert main(["config"]) == 0
    assert f"port         5001                             file ({named})" in capsys.readouterr().out
    assert main(["config", "--config", str(given)]) == 0
    assert f"file ({given})" in capsys.readouterr().out


def test_a_variable_that_names_no_setting_is_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_PROT", "5000")
    monkeypatch.setenv("REDRIVE_URL", "http://127.0.0.1:1")
    assert main(["config"]) == 0
    warning = "redrive: warning: REDRIVE_PROT is not a setting; did you mean REDRIVE_PORT?\n"
    assert capsys.readouterr().err == warning


def test_the_help_of_serve_names_the_variables(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "(REDRIVE_PORT, default: 4566)" in shown
    assert "settings in a TOML file (REDRIVE_CONFIG)" in shown


@pytest.mark.parametrize(
    ("setting", "value", "shown"),
    [
        (
            "store",
            "postgresql://db/redrive?user=me&password=s3cret",
            "postgresql://db/redrive?user=me&password=***",
        ),
        ("push_endpoints", "fcm=https://me:s3cret@gateway/x", "fcm=https://me:***@gateway/x"),
        ("blob_store", "s3://me:s3cret@bucket/prefix", "s3://me:***@bucket/prefix"),
        ("sms_gateway", "smpp://me:s3cret%2F@smsc:2775", "smpp://me:***@smsc:2775"),
        ("aws_endpoints", "lambda=http://me:s3cret@h:1", "***"),
    ],
)
def test_no_password_within_a_setting_is_printed(
    setting: str, value: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"REDRIVE_{setting.upper()}", value)
    assert main(["config"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{setting} "))
    assert line.split()[1] == shown


def test_settings_and_keys_are_json_for_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "--port", "5000", "--json"]) == 0
    settings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["settings"]}
    assert settings["port"] == {"name": "port", "value": "5000", "source": "flag"}
    store = ("--store", f"sqlite:///{tmp_path}/redrive.db")
    assert main(["keys", "create", "--account", "123456789012", *store]) == 0
    made = capsys.readouterr().out.split()[0].partition("=")[2]
    assert main(["keys", "list", "--json", *store]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "keys": [{"id": made, "account": "123456789012", "active": True}]
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_be_told_what_there_is_to_complete(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("redrive", "serve", "trace", "--store", "cancel"):
        assert word.removeprefix("--") in script

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

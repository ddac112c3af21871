"""Settings that expose something are warned of, and no others."""

import pytest

from redrive.settings import Settings, risks


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "redrive.example.org"])
def test_plain_http_beyond_loopback_is_warned_of(host: str) -> None:
    (risk,) = risks(Settings(host=host, auth="required"))
    assert risk.startswith(f"server.plain_http host={host}: anyone on the network path can read requests")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(host="::1"),
        Settings(host="0.0.0.0", auth="required", tls="auto"),
        Settings(host="0.0.0.0", auth="required", tls_cert="cert.pem", tls_key="key.pem"),
    ],
    ids=["loopback", "loopback6", "auto", "certificate"],
)
def test_an_encrypted_or_a_local_server_is_not_warned_of(settings: Settings) -> None:
    assert list(risks(settings)) == []

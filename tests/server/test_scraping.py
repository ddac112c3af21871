"""Metrics name the queues of all accounts: who may read them."""

import pytest

from redrive.model.http import Request
from redrive.server.guard import BrowserGuard, KnownHosts, Scrapers
from tests.server.test_guard import Refused

TOKEN = "a-token-of-a-scraper"
LOCAL = {"host": "localhost:4566"}


def status(
    token: str, client: str, headers: dict[str, str], *, runs_functions: bool = False
) -> tuple[int, list[str]]:
    """The status of the refusal, 200 without one, and the reasons that were counted."""
    refused = Refused()
    scrapers = Scrapers(token, BrowserGuard(KnownHosts(), refused), refused, runs_functions=runs_functions)
    answer = scrapers.refusal(Request("GET", "/_redrive/metrics", "", headers, b"", client_host=client))
    assert answer is None or answer.status != 401 or answer.headers["WWW-Authenticate"] == "Bearer"
    return 200 if answer is None else answer.status, [reason for reason, _ in refused.reasons]


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
def test_a_scraper_on_this_machine_needs_no_setting(client: str) -> None:
    assert status("", client, {**LOCAL, "user-agent": "Prometheus/3.0"}) == (200, [])


def test_a_machine_that_runs_functions_of_others_has_scrapers_bring_the_token() -> None:
    """A function is a program on this machine, and could read the names of all accounts' queues."""
    assert status("", "127.0.0.1", LOCAL, runs_functions=True) == (401, ["MetricsTokenMissing"])
    brought = {**LOCAL, "authorization": f"Bearer {TOKEN}"}
    assert status(TOKEN, "127.0.0.1", brought, runs_functions=True) == (200, [])


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("192.0.2.7", LOCAL),
        ("172.17.0.1", LOCAL),
        ("", LOCAL),
        ("127.0.0.1", {**LOCAL, "x-forwarded-for": "192.0.2.7"}),
        ("127.0.0.1", {**LOCAL, "forwarded": "for=192.0.2.7"}),
        ("::1", {**LOCAL, "via": "1.1 proxy"}),
        ("192.0.2.7", {**LOCAL, "authorization": "Bearer "}),
    ],
)
def test_remote_and_proxied_clients_are_refused(client: str, headers: dict[str, str]) -> None:
    assert status("", client, headers) == (401, ["MetricsTokenMissing"])


@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.7"])
@pytest.mark.parametrize("headers", [LOCAL, {**LOCAL, "x-forwarded-for": "192.0.2.7"}])
def test_with_a_metrics_token_only_its_bearer_is_admitted(client: str, headers: dict[str, str]) -> None:
    assert status(TOKEN, client, {**headers, "authorization": f"Bearer {TOKEN}"}) == (200, [])
    assert status(TOKEN, client, headers) == (401, ["MetricsTokenMissing"])
    for wrong in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xe9"):
        assert status(TOKEN, client, {**headers, "authorization": wrong}) == (401, ["MetricsTokenInvalid"])
    assert status(TOKEN, client, {**headers, "authorization": f"Basic {TOKEN}"})[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example.com:4566"},
        {**LOCAL, "origin": "https://evil.example.com"},
        {**LOCAL, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_a_web_page_on_this_machine_is_refused(headers: dict[str, str]) -> None:
    assert status("", "127.0.0.1", headers)[0] == 403

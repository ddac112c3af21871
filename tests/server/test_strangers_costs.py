"""Nobody without a credential costs more than a few plain requests do: Azure's interfaces, and the control routes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.attack.spending import Wire, send, times_plain
from tests.services.server import Server, serving

TIMES_PLAIN_MAX: Final = 8  # a plain request takes 0.1 to 0.2 ms, connection included: 1 ms of processor time
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
TOPIC: Final = "/eventgrid/00000000-0000-0000-0000-000000000000/rg/orders/api/events"
GRANT: Final = b"grant_type=client_credentials&client_id="

ATTACKS: Final = {
    "a path of many parts": Wire("POST", "/eventgrid/" + "a/" * 7_500 + "api/events"),
    "a path of escapes": Wire("POST", "/eventgrid/1/rg/" + "%41" * 5_000 + "/topics/t:publish"),
    "a path of colons": Wire("POST", "/eventgrid/" + ":/" * 7_500),
    "a path at a host": Wire(
        "POST", "/topics/" + "%41" * 5_000 + ":publish", {"Host": "x.r.eventgrid.azure.net"}
    ),
    "a scope of many parts": Wire("PUT", "/subscriptions/" + "a/" * 7_500),
    "a query of many fields": Wire("POST", f"{TOPIC}?" + "a=%41&" * 2_600 + "aeg-sas-key=x"),
    "a signature of escapes": Wire(
        "POST", TOPIC, {"aeg-sas-token": "r=" + "%41" * 20_000 + "&e=2030-01-01T00:00:00Z&s=AAAA"}
    ),
    "a long bearer": Wire(
        "GET",
        "/subscriptions/1",
        {"Authorization": "Bearer " + "W1tb" * 8_000 + "." + "W1tb" * 8_000 + ".eA"},
    ),
    "a form of escapes": Wire("POST", "/common/oauth2/token", FORM, GRANT + b"%41" * 20_000),
    "a form as long as it may be": Wire("POST", "/common/oauth2/token", FORM, GRANT + b"%41" * 1_300),
    "a link of many fields": Wire("GET", "/eventsubscriptions/a/validate?" + "id=%41&" * 2_300),
    "a token of scrapers": Wire("GET", "/_redrive/metrics", {"Authorization": "Bearer " + "x" * 60_000}),
    "hosts that are passed on": Wire("GET", "/_redrive/metrics", {"X-Forwarded-For": "x" * 60_000}),
}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("strangers")
    flags = ("--auth", "required", "--metrics-token", "a-token-of-a-scraper")
    with serving("sqlite://:memory:", *flags, directory=directory) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_stranger_is_refused_at_little_cost(strict: Server, attack: Wire) -> None:
    assert 400 <= send(strict, attack)[0] < 500
    assert times_plain(strict, attack) < TIMES_PLAIN_MAX

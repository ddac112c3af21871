"""The documentation's site in a browser, as `make docs` built it."""

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.screen import Screen
from tests.docs.pages import ROOT
from tests.services.server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--docs", str(ROOT / ".site/html")) as server:
        yield server


def test_a_reader_comes_from_the_console_and_finds_a_page_by_its_words(
    server: Server, screen: Screen
) -> None:
    screen.open(f"{server.url}/_redrive/console/")
    assert screen.find("header a[href$='/_redrive/docs/']").get_attribute("textContent") == "Documentation"
    screen.open(f"{server.url}/_redrive/docs/")
    screen.fill("input[name=q]", "circuit breakers")
    screen.leaving(lambda: screen.keys(Keys.ENTER))
    screen.wait_for("Circuit breakers", "#search-results")
    screen.leaving(lambda: screen.click("#search-results a[href*='how-to/circuit-breakers']"))
    assert "/_redrive/docs/docs/how-to/circuit-breakers.html" in screen.url
    assert screen.text("h1").startswith("Leave a failing endpoint alone")

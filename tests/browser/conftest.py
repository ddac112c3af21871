"""A server whose time stands still, and Debian's Chromium with the driver of the same package."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.browser.screen import Screen
from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server, serving

AXE = Path(__file__).parents[2] / ".axe/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--allow-reset") as server:
        yield server


@pytest.fixture
def sns(server: Server) -> Sns:
    server.reset()
    return Sns(server)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook().serving() as webhook:
        yield webhook


@pytest.fixture(scope="session")
def browser() -> Iterator[Screen]:
    """The one browser of a test process."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "Chromium is missing: make chromium"
    assert driver, "Chromium's driver is missing: make chromium"
    assert AXE.exists(), "axe-core is missing: make axe"
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield Screen(chrome, AXE.read_text())
    chrome.quit()


@pytest.fixture
def screen(browser: Screen) -> Iterator[Screen]:
    """The browser's window; a test fails that leaves a complaint on its console.

    It is left before the next test removes what it shows, for which it would go on asking.
    """
    yield browser
    browser.leave()
    assert browser.complaints() == []

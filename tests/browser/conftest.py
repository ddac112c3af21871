"""A server whose time stands still, and Debian's Chromium with the driver of the same package."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server, serving

AXE = Path(__file__).parents[2] / ".axe/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
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
def axe() -> str:
    assert AXE.exists(), "axe-core is missing: make axe"
    return AXE.read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "Chromium is missing: make chromium"
    assert driver, "Chromium's driver is missing: make chromium"
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(autouse=True)
def _nothing_to_complain_of(browser: webdriver.Chrome) -> Iterator[None]:
    """No violation of the content security policy, and no error on the browser's console."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    yield
    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]  # Selenium has no types here
    assert not complaints

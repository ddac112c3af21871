"""Debian's Chromium with the driver of the same package, as a screen."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.browser.screen import Screen

AXE: Final = Path(__file__).parents[2] / ".axe/node_modules/axe-core/axe.min.js"
#: A host of a story, which leads to this machine; certificates of a test are nobody's whom a browser knows.
PUBLIC_HOST: Final = "ops.example.com"
_ARGUMENTS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--window-size=1280,900", "--hide-scrollbars", "--force-color-profile=srgb"),
    "--force-prefers-reduced-motion",  # a dot that pulses is drawn sixty times a second: half a processor for nobody
    *(f"--host-resolver-rules=MAP {PUBLIC_HOST} 127.0.0.1", "--ignore-certificate-errors"),
)


def _axe() -> str:
    """The source of axe-core, which only those need who judge pages."""
    assert AXE.exists(), "axe-core is missing: make axe"
    return AXE.read_text()


@contextmanager
def chromium() -> Iterator[Screen]:
    """A browser for the time of a block."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "Chromium is missing: make chromium"
    assert driver, "Chromium's driver is missing: make chromium"
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Screen(chrome, _axe)
    finally:
        chrome.quit()

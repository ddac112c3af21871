"""Somebody on call: presses, writes, and thinks for a second before each of it; and the moments at which a page tells."""

import math
import time
from collections.abc import Callable
from typing import Final

from selenium.common.exceptions import TimeoutException
from tests.browser.screen import Screen

THINKS_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.05
_NOTICE: Final = """
const [css, text] = arguments;
window.noticedAt = 0;
const look = () => {
  if (!window.noticedAt && document.querySelector(css)?.textContent.includes(text)) window.noticedAt = Date.now();
};
new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
look();
"""


class Person:
    """Somebody at a screen.

    Attributes:
        screen: The browser.
        actions: Clicks and fields filled so far; typing an address is none.
    """

    def __init__(self, screen: Screen) -> None:
        """Sit down at a screen."""
        self.screen = screen
        self.actions = 0

    def press(self, text: str) -> None:
        """Press the link or button that says this; return when the next page is there."""
        self._think()
        self.screen.press(text)

    def follow(self, css: str) -> None:
        """Follow a link; return when the next page is there."""
        self._think()
        self.screen.follow(css)

    def click(self, css: str) -> None:
        """Click on what leads nowhere."""
        self._think()
        self.screen.click(css)

    def fill(self, css: str, text: str) -> None:
        """Write into a field."""
        self._think()
        self.screen.fill(css, text)

    def choose(self, css: str, option: str) -> None:
        """Choose what a list offers, by its beginning."""
        self._think()
        self.screen.find(css).send_keys(option)

    def _think(self) -> None:
        time.sleep(THINKS_SECONDS)
        self.actions += 1


def notice(screen: Screen, text: str, css: str = "main") -> None:
    """Let the page note the moment at which it says this, without being asked."""
    screen.run(_NOTICE, css, text)


def noticed_at(screen: Screen) -> float:
    """The moment (s since the epoch) at which the page began to say it; infinity if it has not within a minute."""
    try:
        return float(screen.until(lambda: screen.run("return window.noticedAt"))) / 1000
    except TimeoutException:
        return math.inf


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Return once something holds, or so many seconds have passed; True if it does."""
    ends = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < ends:
        time.sleep(_LOOK_SECONDS)
    return held

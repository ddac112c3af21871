"""A browser's window as people use it: what they press, type and see, each waited for and never slept for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeVar

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

#: Far above what a page takes: on a busy machine Chromium alone may stand still for seconds.
PATIENCE_SECONDS: Final = 60
#: A page that asks again by itself exchanges its middle at any moment.
_EXCHANGED: Final = (
    StaleElementReferenceException,
    NoSuchElementException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
)
_STOPS_MAX: Final = 60
_FOCUSED: Final = (
    "const at = document.activeElement;"
    " return at.matches('a, button, input, select') ? (at.labels?.[0] ?? at).innerText : ''"
)
_LATER: Final = """
const [ms, done] = arguments, real = Date.now;
Date.now = () => real() + ms;
let ticks = 0;
const timer = setInterval(() => { if (++ticks === 4) { clearInterval(timer); done(); } }, 250);
"""
_LOADED: Final = "return performance.getEntriesByType('navigation')[0].responseEnd / 1000"
_AXE: Final = """
const [rules, done] = arguments;
const only = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
axe.run(document, only).then(found => done(found.violations.map(
  each => `${each.id}: ${each.nodes.map(node => node.html).join(" | ")}`)));
"""


class Screen:
    """One window of Chromium."""

    def __init__(self, chrome: Chrome, axe: Callable[[], str]) -> None:
        """Look through this browser.

        Args:
            chrome: Driven by Selenium.
            axe: Reads the source of axe-core.
        """
        self._chrome = chrome
        self._axe = axe
        self._scripts: list[str] = []

    # ---- going -----------------------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Type an address."""
        self._chrome.get(url)

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._chrome.current_url

    def press(self, text: str) -> None:
        """Press the first link or button of the page that says this; return when the next page is there."""
        path = f"//main//*[self::a or self::button][starts-with(normalize-space(.), '{text}')]"
        self.leaving(lambda: _click(self._chrome.find_element(By.XPATH, path)))

    def follow(self, css: str) -> None:
        """Follow the first link of this kind; return when the next page is there."""
        self.leaving(lambda: _click(self._chrome.find_element(By.CSS_SELECTOR, css)))

    def leaving(self, act: Callable[[], object]) -> None:
        """Do what leads to another page, and return when that is there.

        A click returns before the browser has begun to load what it leads to: who looks at once sees the page before.
        """
        before = self._document()
        self._done(act)
        self.until(lambda: self._document() != before)

    def _done(self, act: Callable[[], object]) -> None:
        """Do something as soon as the page lets it be done."""

        def done() -> bool:
            act()
            return True

        self.until(done)

    def _document(self) -> str:
        return self._chrome.find_element(By.TAG_NAME, "html").id

    # ---- looking ---------------------------------------------------------------------------------------------

    def until(self, holds: Callable[[], T]) -> T:
        """The answer to a question, once it is true."""
        wait = WebDriverWait(self._chrome, PATIENCE_SECONDS, 0.1, _EXCHANGED)
        return wait.until(lambda _: holds())

    def find(self, css: str) -> WebElement:
        """The first element of this kind, once there is one."""
        return self.until(lambda: self._chrome.find_element(By.CSS_SELECTOR, css))

    def all(self, css: str) -> list[WebElement]:
        """The elements of this kind that are there now."""
        return self._chrome.find_elements(By.CSS_SELECTOR, css)

    def text(self, css: str = "main") -> str:
        """The text of the first element of this kind."""
        return self.until(lambda: self._chrome.find_element(By.CSS_SELECTOR, css).text)

    def wait_for(self, text: str, css: str = "main", *, reload: bool = False) -> None:
        """Return when the page says this, loaded anew each time where it cannot ask again by itself."""

        def says() -> bool:
            if text in self._chrome.find_element(By.CSS_SELECTOR, css).text:
                return True
            if reload:
                self._chrome.refresh()
            return False

        self.until(says)

    # ---- doing -----------------------------------------------------------------------------------------------

    def click(self, css: str) -> None:
        """Click on what leads nowhere: a box, a switch."""
        self._done(lambda: _click(self._chrome.find_element(By.CSS_SELECTOR, css)))

    def fill(self, css: str, text: str) -> None:
        """Write into a field in place of what stands there."""
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def keys(self, *keys: str) -> None:
        """Type, wherever the focus is."""
        ActionChains(self._chrome).send_keys(*keys).perform()

    def tab_to(self, text: str, *keys: str) -> None:
        """Press the tabulator until the focus is on what says this, and then these keys."""
        for _ in range(_STOPS_MAX):
            self.keys(Keys.TAB)
            if text in str(self.run(_FOCUSED)):
                self.keys(*keys)
                return
        raise AssertionError(f"the tabulator never comes to {text!r}")

    def run(self, script: str, *args: object) -> Any:
        """Run a script in the page; the answer."""
        return self._chrome.execute_script(script, *args)

    def run_async(self, script: str, *args: object) -> Any:
        """Run a script in the page whose last argument is called with the answer."""
        return self._chrome.execute_async_script(script, *args)

    # ---- the browser around it ---------------------------------------------------------------------------------

    @contextmanager
    def other_tab(self, kind: Literal["tab", "window"] = "tab") -> Iterator[None]:
        """Look through a second tab meanwhile, or through a second window, beside which the first is seen."""
        first = self._chrome.current_window_handle
        self._chrome.switch_to.new_window(kind)
        second = self._chrome.current_window_handle
        yield
        self._chrome.switch_to.window(second)
        self._chrome.close()
        self._chrome.switch_to.window(first)

    @contextmanager
    def minimized(self) -> Iterator[None]:
        """Put the window away meanwhile: nobody sees its page."""
        window = self.command("Browser.getWindowForTarget")["windowId"]
        self.command("Browser.setWindowBounds", windowId=window, bounds={"windowState": "minimized"})
        yield
        self.command("Browser.setWindowBounds", windowId=window, bounds={"windowState": "normal"})

    def scripts(self, *, on: bool) -> None:
        """Switch JavaScript off, or on again, for pages that are loaded from now on."""
        self.command("Emulation.setScriptExecutionDisabled", value=not on)

    def size(self, width: int, height: int = 900) -> None:
        """Make the window this wide and high (CSS pixels)."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, **features: str) -> None:
        """Let media queries find these features: `prefers_color_scheme="dark"`."""
        given = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", features=given)

    def command(self, name: str, **params: object) -> Any:
        """Give a command of Chromium's own protocol."""
        return self._chrome.execute_cdp_cmd(name, params)

    def before_each_page(self, script: str) -> None:
        """Run a script in each page before its own, until `leave`."""
        made = self.command("Page.addScriptToEvaluateOnNewDocument", source=script)
        self._scripts.append(made["identifier"])

    def pass_time(self, seconds: int) -> None:
        """Let the page's clock jump, and its own clockwork look at it a few times."""
        self.run_async(_LATER, seconds * 1000)

    def press_clock(self, by: str) -> None:
        """Press a button of the simulated clock: so many milliseconds on, or `next`."""
        self.follow(f".clock button[value='{by}']")

    def loaded_seconds(self) -> float:
        """The time from asking for the page until it was there."""
        seconds: float = self.run(_LOADED)
        return seconds

    def requests(self) -> int:
        """The number of requests that the page has made since it was loaded."""
        number: int = self.run("return performance.getEntriesByType('resource').length")
        return number

    def cookies(self) -> list[dict[str, Any]]:
        """The cookies that the page's host has set."""
        return self._chrome.get_cookies()

    def picture(self) -> bytes:
        """The window as a PNG."""
        return self._chrome.get_screenshot_as_png()

    # ---- judging ---------------------------------------------------------------------------------------------

    def axe(self, *rules: str) -> list[str]:
        """The violations that axe finds, by these rules or by all."""
        if not self.run("return Boolean(window.axe)"):
            self.run(self._axe())
        found: list[str] = self.run_async(_AXE, rules)
        return found

    def complaints(self) -> list[str]:
        """The errors on the browser's console since the last look; violations of its content security policy are such."""
        entries = self._chrome.get_log("browser")  # type: ignore[no-untyped-call]  # Selenium has no types here
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def leave(self) -> None:
        """Go where nothing asks the server any more, as on the first day."""
        kept = "local_storage,cookies"
        self.command("Storage.clearDataForOrigin", origin=_origin(self.url), storageTypes=kept)
        self._chrome.get("about:blank")
        while self._scripts:
            self.command("Page.removeScriptToEvaluateOnNewDocument", identifier=self._scripts.pop())
        self.command("Emulation.clearDeviceMetricsOverride")
        self.media()
        self.scripts(on=True)


def _click(element: WebElement) -> None:
    """Click on an element in the middle of the window: at its edges are bars that stay."""
    element.parent.execute_script("arguments[0].scrollIntoView({ block: 'center' })", element)
    element.click()


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3])

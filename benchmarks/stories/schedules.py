"""Story 7: the lab's curve and sentence follow what is typed, and a number without sense is refused at its field."""

from collections.abc import Iterator
from typing import Final

from selenium.webdriver.common.keys import Keys
from tests.browser.screen import Screen

from benchmarks.figures import Figure, at_most, under
from benchmarks.stories.orders import CONSOLE, Stage

FOLLOWS_MS_MAX: Final = 300.0
REFUSED_MS_MAX: Final = 50.0
_CHANGES: Final = 10
_LAB: Final = """
const live = document.getElementById("live"), field = document.querySelector("input[name=numRetries]");
const curve = () => document.querySelector("svg.waits polyline")?.getAttribute("points");
const sentence = () => live.querySelector("[role=status]")?.textContent;
const timed = window.timed = { followed: 0, refused: 0, answered: 0 };
document.getElementById("lab").addEventListener("input", () => {
  Object.assign(timed, { typed: performance.now(), curve: curve(), sentence: sentence(), followed: 0, refused: 0 });
}, true);
new MutationObserver(() => {
  const now = performance.now();
  if (!timed.followed && curve() !== timed.curve && sentence() !== timed.sentence) timed.followed = now;
  if (!timed.refused && field.matches("[aria-invalid=true]")) timed.refused = now;
  if (!timed.answered && document.getElementById("refused").textContent) {
    const asked = performance.getEntriesByType("resource").at(-1);
    if (asked) timed.answered = asked.responseEnd - asked.requestStart;
  }
}).observe(document.querySelector("main"), {
  subtree: true, childList: true, characterData: true, attributes: true,
});
"""

#: The browser's clock has steps of 0.1 ms, within one of which a field may be marked: no time at all is no answer.
_REFUSED: Final = "return timed.refused && Math.max(timed.refused - timed.typed, 0.1)"


def tried(stage: Stage) -> Iterator[Figure]:
    """One more retry, ten times; then more than any schedule may have."""
    screen = stage.screen
    with stage.server() as server:
        screen.open(f"{server.url}{CONSOLE}/schedules")
        screen.run(_LAB)
        times = [_followed(screen) for _ in range(_CHANGES)]
        detail = f"{min(times):.0f} at best of {_CHANGES}, after a pause of 150 in typing"
        yield Figure("7: curve and sentence follow", max(times), "ms", detail, at_most(FOLLOWS_MS_MAX))
        screen.fill("input[name=numRetries]", "1000000000")
        refused = float(screen.until(lambda: screen.run(_REFUSED)))
        yield Figure("7: 10^9 retries are refused at the field", refused, "ms", "", under(REFUSED_MS_MAX))
        answered = float(screen.until(lambda: screen.run("return timed.answered")))
        said = screen.text("#refused")
        yield Figure("7: the server's answer to them", answered, "ms", said, under(REFUSED_MS_MAX))


def _followed(screen: Screen) -> float:
    """The time (ms) from a key to the curve and the sentence that come of it."""
    screen.find("input[name=numRetries]").send_keys(Keys.ARROW_UP)
    return float(screen.until(lambda: screen.run("return timed.followed && timed.followed - timed.typed")))

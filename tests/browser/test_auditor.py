"""Story 8: an auditor looks at everything, changes nothing and reads no message."""

from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from redrive.console import PATH, routes
from tests.browser.screen import Screen
from tests.browser.signing_in import MARK, Made, make, sign_in
from tests.console.world import SCOPE
from tests.services.server import serving

#: Pages of a body, of searched bodies and of downloaded ones: refused where bodies are hidden.
REFUSED: Final = ("/edit", "q=order", "/download")
#: A search of names, and the audit, which has no bodies.
_OTHERS: Final = ("/find?", "/audit")
#: Forms whose button is disabled, and the console's own way out.
_ACTS: Final = "main form[method=post] button:not([disabled], [formmethod=get]), form.clock button"
_LOOK: Final = """
const [paths, done] = arguments;
(async () => {
  const found = {};
  for (const path of paths) {
    const answer = await fetch(path), text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    found[path] = [answer.status, text, page.querySelectorAll("ACTS").length];
  }
  done(found);
})();
""".replace("ACTS", _ACTS)
_POST: Final = """
const [paths, done] = arguments;
(async () => {
  const found = {};
  for (const path of paths) {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams({ do: "cancel", id: "1" }) });
    found[path] = [answer.status, await answer.text()];
  }
  done(found);
})();
"""


def test_an_auditor_sees_every_page_and_no_body_and_changes_nothing(screen: Screen, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'redrive.db'}"
    made = make(store)
    flags = ("--auth", "required", "--console", "read-only", "--console-bodies", "hidden")
    with serving(store, *flags, "--clock", "simulated", "--functions", "on", directory=tmp_path) as server:
        screen.open(f"{server.url}/")
        sign_in(screen)
        screen.follow("main li a[href*='/dead-letters/']")
        assert "read-only" in screen.text("header")
        assert "Server error 503" in screen.text(".causes")
        assert "not shown" in screen.text("#letters")
        assert screen.complaints() == []
        _every_page_is_shown(screen, made)
        _every_form_is_refused(screen, made)
        # A browser complains of each answer that refuses; nothing else may be among them.
        assert all("status of 40" in each for each in screen.complaints())
        screen.leave()


def _every_page_is_shown(screen: Screen, made: Made) -> None:
    """Every page that looks has an answer without a body's text and without a button that acts."""
    found: dict[str, Any] = screen.run_async(_LOOK, made.pages)
    seen = set()
    for path, (status, text, buttons) in found.items():
        refused = any(each in path for each in REFUSED) and not any(each in path for each in _OTHERS)
        assert status == (400 if refused else 200), path
        assert MARK not in text, path
        assert "VARIABLE" not in text, path
        assert buttons == 0, path
        route = routes.find("GET", path.partition("?")[0].removeprefix(PATH))
        assert route is not None, path
        seen.add(route[0].pattern)
    looking = {each.pattern for each in routes.ROUTES if each.method == "GET" and not each.open}
    assert looking - seen <= _NOT_SEEN


#: Pages of what is not there: a task of a redrive, and a message of a queue that was not received; and a way to a page.
_NOT_SEEN: Final = {
    "/place",
    "/{account}/{region}/dead-letters/{queue}/download",
    "/{account}/{region}/dead-letters/{queue}/tasks/{task}",
    "/{account}/{region}/queues/{queue}/messages/{seq}",
}


def _every_form_is_refused(screen: Screen, made: Made) -> None:
    """Every route that changes something refuses what the signed-in browser itself sends from a page of the console."""
    named = {
        "account": SCOPE.account,
        "region": SCOPE.region,
        "queue": "orders-dead",
        "seq": str(made.letter),
    }
    named |= {"topic": "Rentals", "subscription": "6f1c", "function": "bill", "stack": "shop"}
    writing = [route.pattern for route in routes.ROUTES if route.method == "POST" and not route.open]
    paths = [PATH + pattern.format_map(defaultdict(lambda: "x", named)) for pattern in writing]
    assert len(paths) >= 15
    found: dict[str, Any] = screen.run_async(_POST, paths)
    for path, (status, text) in found.items():
        assert status == 403, path
        assert "is read-only" in text, path

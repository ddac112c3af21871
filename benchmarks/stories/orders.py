"""The orders that died: 40,000, as `redrive demo --stay` lets them die, in a store of which each story gets a copy."""

import contextlib
import itertools
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from tests.browser.screen import Screen
from tests.services.server import Server, serving

from benchmarks.stories.person import Person, wait_until
from redrive.cli.demo_server import ACCOUNT, Billing, DemoServer
from redrive.cli.demo_stay import BAD, GIVEN_UP, QUEUE, SCOPE, Scene

CONSOLE: Final = "/_redrive/console"
WORKBENCH: Final = f"{CONSOLE}/{SCOPE}/dead-letters/{QUEUE}"
REMAIN: Final = BAD + GIVEN_UP
#: The task waits so long after Start: until then to cancel undoes all.
DELAY_SECONDS: Final = 5
_BUSY: Final = "server_error 503"
_PAGE: Final = 1_000
_SIGNED: Final = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20260101/us-east-1/redrive/aws4_request"
}
_DELIVERED_SECONDS_MAX: Final = 180


@dataclass(frozen=True)
class DeadOrders:
    """A server with the orders that died, and their endpoint, which is well unless it is told otherwise.

    Attributes:
        server: Of this story alone.
        billing: The endpoint, of all stories.
        good: The number of orders that died of 503.
        before: The number of visits to billing before this story.
    """

    server: Server
    billing: Billing
    good: int
    before: int

    def delivered(self) -> Counter[str]:
        """The orders that billing took in this story, and how often each."""
        return Counter(visit.order for visit in self.billing.visits[self.before :] if visit.status == 200)

    def wait_for(self, orders: int) -> Counter[str]:
        """The orders that billing took, once it took that many different ones, or has had time enough."""
        visited = self.before + orders
        wait_until(
            lambda: len(self.billing.visits) >= visited and len(self.delivered()) >= orders,
            _DELIVERED_SECONDS_MAX,
        )
        return self.delivered()

    def causes(self) -> dict[str, int]:
        """The number of dead letters of each cause."""
        return {cause["failure"]: cause["letters"] for cause in self._causes()}

    def left(self) -> int:
        """The number of dead letters that died of 503."""
        return self.causes().get(_BUSY, 0)

    def letters(self) -> list[int]:
        """The places of those that died of 503, in order of arrival."""
        cause = next(cause["cause"] for cause in self._causes() if cause["failure"] == _BUSY)
        found: list[int] = []
        while True:
            asked = {"queue": QUEUE, "cause": cause, "limit": _PAGE, "after": found[-1] if found else 0}
            page = self._asked(f"/_redrive/dead-letters?{urlencode(asked)}")
            found += [letter["id"] for letter in page["letters"]]
            if not page["more"]:
                return found

    def _causes(self) -> list[dict[str, Any]]:
        causes: list[dict[str, Any]] = self._asked(f"/_redrive/dead-letter-causes?queue={QUEUE}")["causes"]
        return causes

    def _asked(self, path: str) -> Any:
        status, body = self.server.ask("GET", path, headers=_SIGNED)
        assert status == 200, body
        return orjson.loads(body)

    def start(self, person: Person, pace: str = "", rate: int = 0) -> int:
        """Go from the overview to a redrive that was just started; the number that its plan named."""
        person.screen.open(f"{self.server.url}/")
        person.press("Look")
        person.follow("a.cause[href*='503']")
        person.press("Redrive all")
        heading = person.screen.text("h1")
        if pace:
            person.click(f"input[value={pace}]")
        if rate:
            person.fill("input[name=rate]", str(rate))
        person.press("Start in 5 seconds")
        return int(heading.removeprefix("Redrive ").partition(" ")[0].replace(",", ""))


class Stage:
    """The things that stories share: the browser, and the store of the orders that died, made for the first that asks."""

    def __init__(self, screen: Screen, directory: Path, orders: int) -> None:
        """Play with so many orders, and keep everything in this directory."""
        self.screen = screen
        self.orders = orders
        self._directory = directory
        self._numbers = itertools.count(1)
        self._billing: Billing | None = None

    @property
    def good(self) -> int:
        """The number of orders that are worth sending back."""
        return self.orders - BAD

    def close(self) -> None:
        """Let go of the endpoint."""
        if self._billing is not None:
            self._billing.close()

    @contextlib.contextmanager
    def server(self, *flags: str, store: str = "") -> Iterator[Server]:
        """A server of a story's own; the browser looks elsewhere before it ends."""
        directory = self._directory / f"story-{next(self._numbers)}"
        directory.mkdir()
        with serving(store or f"sqlite:///{directory}/redrive.db", *flags, directory=directory) as server:
            yield server
            self.screen.leave()

    @contextlib.contextmanager
    def dead_orders(self) -> Iterator[DeadOrders]:
        """The orders that died, on a server that was just started."""
        billing = self._billing or self._made()
        billing.answers = lambda _: 200
        copied = self._directory / f"copy-{next(self._numbers)}"
        shutil.copytree(self._made_in, copied)
        with self.server(store=f"sqlite:///{copied}/redrive.db") as server:
            yield DeadOrders(server, billing, self.good, len(billing.visits))
        shutil.rmtree(copied)

    @property
    def _made_in(self) -> Path:
        return self._directory / "orders"

    def _made(self) -> Billing:
        self._made_in.mkdir()
        self._billing = Billing(time.time)
        server = DemoServer.start("--allow-reset", "--store", f"sqlite:///{self._made_in}/redrive.db")
        try:
            Scene(server, self._billing, self.orders).make(lambda _: None)
        finally:
            server.stop()
        return self._billing

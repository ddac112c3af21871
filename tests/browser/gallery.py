"""`python -m tests.browser.gallery DIRECTORY`: a picture of every page of the console, in both themes and three widths.

For the eye: whoever has changed how pages look goes through these. Their data is made up, and the same at every run.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redrive.app import Server as InProcess
from redrive.app import assembled
from redrive.engine.ports import NewDelivery
from redrive.engine.tasks.redrive import TASK
from redrive.model.circuit import USUAL
from redrive.model.metric import MetricPoint, Statistics
from redrive.model.names import ResourceName
from redrive.model.outage import FAILURES
from redrive.model.queue import DAY_MS, DeadLetterTarget, Queue
from redrive.model.task import MoveTask, TaskState
from redrive.model.topic import Message, Subscription, Topic
from redrive.runtime.simulated import DEFAULT_START
from redrive.settings import Settings
from redrive.telemetry.accumulators import arrivals_at, arrivals_in, scope_series
from tests.browser import pictures
from tests.browser.chromium import chromium
from tests.browser.screen import Screen
from tests.browser.services import Things, make_services
from tests.console.test_event_grid import subscribed
from tests.console.world import ROOM, ROOT, SCOPE, Visitor
from tests.services.server import serving

WIDTHS: Final = (1280, 820, 320)
THEMES: Final = ("light", "dark")
_HEIGHT_MIN: Final = 700
_HEIGHT_MAX: Final = 4000
_MINUTE: Final = 60_000
_AZURE: Final = f"{ROOT}/00000000-0000-0000-0000-000000000000/rg"
_DEAD: Final = f"{ROOM}/dead-letters/rentals-dead"
_ORDERS: Final = f"{ROOM}/queues/orders"
_MESSAGES: Final = 60
_POLICY: Final = (
    '{"healthyRetryPolicy": {"numRetries": 10, "minDelayTarget": 10, "maxDelayTarget": 300,'
    ' "backoffFunction": "geometric"}}'
)


async def make(store: str) -> tuple[str, Subscription]:
    """Make what pages of messages show in a store; the cause that most died of, and a subscription."""
    cause = await pictures.make(store)
    async with assembled(Settings(store=store, clock="simulated"), "http://127.0.0.1:4566") as server:
        await server.open()
        rests = await _make_topics(server)
        await _make_messages(server)
        await _make_traffic(server)
        await _make_redrives(server)
        await subscribed(Visitor(server))
        await server.core.engine.resources.topics.create(
            Topic(0, ResourceName("111111111111", "eu-west-1", "elsewhere"), "sns")
        )
        return cause, rests


async def _make_topics(server: InProcess) -> Subscription:
    """Endpoints in every condition; the one that rests."""
    engine = server.core.engine
    resources = engine.resources
    orders = SCOPE._replace(name="OrdersOfAllRentalCarStationsInScandinavia")
    topic = await resources.topics.create(Topic(0, orders, "sns", created_at=DEFAULT_START - 9 * _MINUTE))
    made = []
    for number, endpoint in enumerate(
        (
            "https://billing.example.com/hook",
            "https://a-very-long-host-name.of-a-partner.example.com/deliveries/of/orders/v2/confirmed",
            "https://mail.example.com/in",
        )
    ):
        wanted = Subscription(
            f"6f1c2a90-4b7e-4d0a-8a55-00000000000{number}",
            topic.name,
            0,
            SCOPE.account,
            "https",
            endpoint,
            created_at=DEFAULT_START - 8 * _MINUTE,
            filter_text='{"city": ["Oslo", "Bergen", {"prefix": "Trond"}], "total": [{"numeric": [">", 100]}]}'
            if number
            else None,
            attributes={"DeliveryPolicy": _POLICY} if number == 1 else {},
            dead_letter=SCOPE._replace(name="rentals-dead") if number < 2 else None,
        )
        made.append(await resources.subscriptions.create(wanted))
    now = server.core.runtime.clock.now()
    await engine.parts.circuits.note(made[0], USUAL, FAILURES["503"], now)
    owed = [
        NewDelivery(made[0].queue_id, number.to_bytes(16, "big"), "{}", b"", now + 60_000, now)
        for number in range(1204)
    ]
    await server.core.store.enqueue(owed)
    return made[0]


async def _make_messages(server: InProcess) -> None:
    engine = server.core.engine
    queue = await engine.resources.queues.get(SCOPE._replace(name="orders"))
    assert queue is not None
    bodies = [f'{{"order": {81_000 + each}, "customer": "c-{each}"}}' for each in range(_MESSAGES)]
    await engine.messages.send(queue, [Message(engine.runtime.message_id(), body) for body in bodies])
    await engine.messages.receive(queue, 3, wait_ms=0)


async def _make_traffic(server: InProcess) -> None:
    """Make a quarter of an hour of traffic."""
    of_each = {"sent": 72_240, "received": 71_940, "pushed": 18_600, "failed": 14}
    points = [
        MetricPoint(
            scope_series(SCOPE, counter),
            DEFAULT_START - minute * _MINUTE,
            "",
            Statistics.of(most * (abs(minute - 7) + 1) // 9),
        )
        for counter, most in of_each.items()
        for minute in range(1, 18)
    ]
    dead = arrivals_at(SCOPE._replace(name="rentals-dead"))
    came = MetricPoint(dead, DEFAULT_START, "", Statistics.of(39_998))
    quiet = arrivals_in(ResourceName("111111111111", "eu-west-1"))
    long_ago = MetricPoint(quiet, DEFAULT_START - 3 * DAY_MS, "", Statistics.of(2))
    await server.core.store.add_points([*points, came, long_ago])


async def _make_redrives(server: InProcess) -> None:
    """Make a redrive that failed, and one that stopped itself."""
    engine, queues = server.core.engine, server.core.engine.resources.queues
    for name in ("returns", "invoices"):
        dead = await queues.create(Queue(0, SCOPE._replace(name=f"{name}-dead")))
        await queues.create(Queue(0, SCOPE._replace(name=name), dead_letter=DeadLetterTarget(dead.name, 4)))
        bodies = (f'{{"order": {each}}}' for each in range(40))
        await engine.messages.send(dead, [Message(engine.runtime.message_id(), body) for body in bodies])
        task = await engine.operations.redrives.start(dead, None, None)
        ended = replace(task, moved=12, state=TaskState.FAILED, failure="destination")
        if name == "invoices":
            why = "10 of 10 failed their first attempt: server_error 503"
            ended = replace(task, moved=12, state=TaskState.PAUSED, stopped_why=why)
        await engine.parts.redriver.stop()
        await engine.resources.documents.update(TASK, task.key, _let(ended))


def _let(task: MoveTask) -> Callable[[MoveTask], MoveTask]:
    return lambda _: task


def pages(screen: Screen, url: str, cause: str, rests: Subscription) -> Iterator[tuple[str, str]]:
    """The pages of messages, by a name each; those that have to be come to are come to."""
    yield from _AT_FIRST
    yield from _of_a_letter(screen, url, quote(cause))
    yield from _AFTER_THAT
    yield from _of_topics(screen, url, f"{ROOM}/topics/{rests.topic.name}", rests.id)
    yield from _of_messages(screen, url)


_AT_FIRST: Final = (
    ("overview", f"{ROOT}/"),
    ("overview-quiet", f"{ROOT}/?place=111111111111/eu-west-1"),
    ("keys", f"{ROOT}/keys"),
    ("login", f"{ROOT}/login"),
    ("not-there", f"{ROOT}/nowhere"),
    ("no-queue", f"{ROOM}/queues/absent"),
    ("unusable", f"{_DEAD}?q=size:x"),
    ("dead-letters", f"{ROOM}/dead-letters"),
    ("dead-letters-none", f"{ROOT}/111111111111/eu-west-1/dead-letters"),
    ("workbench", _DEAD),
    ("workbench-all", f"{_DEAD}?cause=all&order=oldest"),
    ("workbench-search", f"{_DEAD}?q=body.order:7001"),
)
_AFTER_THAT: Final = (
    ("overview-task", f"{ROOT}/?"),
    ("workbench-task", f"{_DEAD}?"),
    ("endpoints", f"{ROOM}/endpoints"),
    ("endpoints-all", f"{ROOM}/endpoints?state=all"),
    ("queues", f"{ROOM}/queues"),
    ("queues-none", f"{ROOM}/queues?prefix=zzz"),
    ("queue-new", f"{ROOM}/new-queue"),
    ("dead-letter-queue", f"{ROOM}/dead-letter-queue?queue=orders"),
    ("queue", _ORDERS),
    ("messages", f"{_ORDERS}/messages"),
    ("messages-none", f"{_ORDERS}/messages?view=delayed"),
    ("send", f"{_ORDERS}/send"),
    ("topics", f"{ROOM}/topics"),
    ("find", f"{ROOM}/messages"),
    ("life", f"{ROOM}/messages/00000000-0000-0000-0000-000000000007"),
    ("life-none", f"{ROOM}/messages/absent"),
    ("lab", f"{ROOT}/schedules"),
    ("lab-event-grid", f"{ROOM}/schedules?plan=event-grid&outage=4+h"),
    ("lab-managed", f"{ROOM}/schedules?plan=managed"),
    ("lab-refused", f"{ROOM}/schedules?numRetries=1e9"),
    ("event-grid", f"{_AZURE}/event-grid"),
    ("event-grid-none", f"{ROOM}/event-grid"),
    ("event-subscription", f"{_AZURE}/event-grid/topics%3Aorders/billing"),
    ("views", f"{ROOM}/views"),
    ("view-new", f"{ROOM}/views?to=/{SCOPE.account}/{SCOPE.region}/queues"),
    ("tail-none", f"{ROOM}/tail"),
)


def _of_a_letter(screen: Screen, url: str, cause: str) -> Iterator[tuple[str, str]]:
    """A dead letter, edited; and a plan, begun."""
    letter = _first(screen, url, _DEAD, "#letters a").partition("?")[0]
    yield "letter", letter
    yield "letter-edit", f"{letter}/edit"
    screen.open(f"{url}{letter}/edit")
    screen.fill("textarea", '{\n  "order": 7001,\n  "currency": "EUR"\n}')
    screen.press("Check")
    yield "letter-checked", ""
    yield "plan-picked", f"{_DEAD}/plan?what=picked&id={letter.rpartition('/')[2]}"
    plan = f"{_DEAD}/plan?what=all&cause={cause}"
    yield "plan", plan
    screen.open(f"{url}{plan}")
    screen.press("Start in")
    yield "task", screen.url.removeprefix(url)


def _of_topics(screen: Screen, url: str, topic: str, rests: str) -> Iterator[tuple[str, str]]:
    served = f"{rests[:-1]}1"
    yield "topic", topic
    yield "topic-tried", f"{topic}?attributes=%7B%22city%22%3A%22Oslo%22%7D&body=x"
    yield "subscription", f"{topic}/{rests}"
    yield "subscription-policy", f"{topic}/{served}"
    yield "subscription-test", f"{topic}/{served}/test"
    yield "publish", f"{topic}/publish"
    screen.open(f"{url}{topic}/{served}")
    screen.press("Simulate other values")
    yield "lab-policy", f"{screen.url.removeprefix(url)}&outage=4+h"


def _of_messages(screen: Screen, url: str) -> Iterator[tuple[str, str]]:
    yield "message", _first(screen, url, f"{_ORDERS}/messages")
    screen.open(f"{url}{_ORDERS}/send")
    screen.fill("textarea", '{"order": 7}')
    screen.press("Send")
    yield "messages-told", screen.url.removeprefix(url)
    yield "tail", f"{ROOM}/tail?"
    yield "metrics", f"{ROOM}/metrics"
    screen.open(f"{url}{ROOM}/views?to=/{SCOPE.account}/{SCOPE.region}/queues")
    screen.fill("input[name=name]", "All queues")
    screen.press("Save")
    yield "views-saved", f"{ROOM}/views?"


def _first(screen: Screen, url: str, path: str, link: str = "tr[data-row] a") -> str:
    """The path that the first such link of a page leads to."""
    screen.open(url + path)
    return (screen.find(link).get_attribute("href") or "").removeprefix(url)


def service_pages(things: Things) -> Iterator[tuple[str, str]]:
    """The pages of services, by a name each."""
    yield "functions", f"{ROOM}/functions"
    yield "function", f"{ROOM}/functions/bill"
    yield "invoke", f"{ROOM}/functions/bill/invoke"
    yield "metrics-of-function", f"{ROOM}/metrics?of=bill"
    yield "logs", f"{ROOM}/logs"
    yield "log-streams", f"{ROOM}/logs/streams?name=checkout/api"
    yield "log-events", f"{ROOM}/logs/group?name=checkout/api"
    yield "log-function", f"{ROOM}/logs/group?name=/aws/lambda/bill"
    yield "alarms", f"{ROOM}/alarms"
    yield "alarm", f"{ROOM}/alarms/alarm?name=waiting"
    yield "alarm-state", f"{ROOM}/alarms/state?name=waiting"
    yield "alarm-new", f"{ROOM}/alarms/new?queue=orders"
    yield "stacks", f"{ROOM}/stacks"
    yield "stack", f"{ROOM}/stacks/shop"
    yield "stack-template", f"{ROOM}/stacks/shop/template"
    yield "stack-delete", f"{ROOM}/stacks/shop/delete"
    yield "kms", f"{ROOM}/kms"
    yield "kms-key", f"{ROOM}/kms/{things.key}"
    yield "kms-delete", f"{ROOM}/kms/{things.key}/delete"
    yield "apis", f"{ROOM}/apis"
    yield "api-route", f"{ROOM}/apis/{things.api}/route?key=POST+%2F"
    yield "event-sources", f"{ROOM}/event-sources"
    yield "event-source", f"{ROOM}/event-sources/{things.mapping}?record=%7B%22city%22%3A%22Rome%22%7D"
    yield "audit", f"{ROOM}/audit"
    yield "health-check", f"{ROOT}/settings/health"
    yield "settings", f"{ROOT}/settings"
    yield "access-keys", f"{ROOT}/settings/keys"
    yield "access-key-delete", f"{ROOT}/settings/keys/{things.access_key}"


class Gallery:
    """Takes pictures of whole pages into a directory."""

    def __init__(self, screen: Screen, directory: Path, wanted: str = "") -> None:
        """Take them through this window; those alone whose names contain `wanted`."""
        self._screen = screen
        self._directory = directory
        self._wanted = wanted

    def take(self, url: str, found: Iterator[tuple[str, str]]) -> None:
        """Take every page in both themes and widths; an empty path is the page that the window is at."""
        for name, path in found:
            if self._wanted in name:
                self._take(name, url + path if path else "")

    def _take(self, name: str, url: str) -> None:
        screen = self._screen
        for width in WIDTHS:
            screen.size(width, _HEIGHT_MIN)
            for theme in THEMES:
                screen.media(prefers_color_scheme=theme)
                if url:
                    screen.open(url)
                height = int(screen.run("return document.documentElement.scrollHeight"))
                screen.size(width, min(height, _HEIGHT_MAX))
                (self._directory / f"{name}-{width}-{theme}.png").write_bytes(screen.picture())
                screen.size(width, _HEIGHT_MIN)
        screen.size(WIDTHS[0])


_ROOMS: Final = (
    "functions",
    "logs",
    "alarms",
    "stacks",
    "kms",
    "topics",
    "endpoints",
    "metrics",
    "dead-letters",
    "apis",
    "event-sources",
    "audit",
)
_EMPTY: Final = (
    ("empty-overview", f"{ROOT}/"),
    *((f"empty-{room}", f"{ROOM}/{room}") for room in _ROOMS),
)


def main() -> None:
    """Make the data, and take all pictures."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="redrive-gallery-") as name, chromium() as screen:
        gallery = Gallery(screen, directory, *sys.argv[2:3])
        store = f"sqlite:///{name}/redrive.db"
        cause, rests = asyncio.run(make(store))
        with serving(store, "--clock", "simulated", directory=Path(name)) as server:
            gallery.take(server.url, pages(screen, server.url, cause, rests))
        with serving("sqlite://:memory:", "--clock", "simulated", "--functions", "on") as server:
            gallery.take(server.url, service_pages(make_services(server)))
        with serving("sqlite://:memory:") as server:
            gallery.take(server.url, iter(_EMPTY))
        with serving("sqlite://:memory:", "--auth", "required") as server:
            gallery.take(server.url, iter([("signed-out", f"{ROOT}/login")]))


if __name__ == "__main__":
    main()

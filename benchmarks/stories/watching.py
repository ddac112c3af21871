"""Stories 4 and 6: a message is seen as it arrives, and an endpoint's rest is lifted before somebody else's eyes."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from tests.browser.dying import SIGNED, rest_when_failing
from tests.browser.screen import Screen
from tests.cli.telling import POLICY
from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import ACCOUNT, REGION
from tests.services.server import Server

from benchmarks.figures import Figure, at_most, exactly
from benchmarks.stories.orders import CONSOLE, Stage
from benchmarks.stories.person import THINKS_SECONDS, Person, notice, noticed_at, wait_until
from redrive.cli.demo_server import Billing

SHOWN_SECONDS_MAX: Final = 2.5
HIDDEN_SECONDS: Final = 10
DRAINS_SECONDS_MAX: Final = 1.0
OTHERS_SECONDS_MAX: Final = 3.0
TOLD_SECONDS_MAX: Final = 1.0
_SENDS: Final = 5
_HELD: Final = 1_000
_REFUSED: Final = 404
_OK: Final = 200
_REST_SECONDS: Final = 300  # after a 404
_CONFIRMED_SECONDS_MAX: Final = 30
_ROOM: Final = f"{CONSOLE}/{ACCOUNT}/{REGION}"


# ---- a message comes ---------------------------------------------------------------------------------------------


def shown(stage: Stage) -> Iterator[Figure]:
    """Story 4: boto3 sends while the queue's page is open; then the window is hidden."""
    with stage.server() as server:
        queue = Sns(server).sqs.queue()
        stage.screen.open(f"{server.url}{_ROOM}/queues/{queue.name}/messages")
        stage.screen.run("window.sameDocument = true")
        times = []
        for number in range(_SENDS):
            time.sleep(number * 0.4)  # in every phase of the page's own two seconds
            notice(stage.screen, f"order {number}", "#live")
            queue.send(f"order {number}")
            sent = time.time()
            times.append(noticed_at(stage.screen) - sent)
        detail = ", ".join(f"{seconds:.2f}" for seconds in times)
        yield Figure(
            "4: shown after it was sent", max(times), "s", f"each: {detail}", at_most(SHOWN_SECONDS_MAX)
        )
        same = bool(stage.screen.run("return window.sameDocument"))
        yield Figure("4: without a reload", same, "", "", exactly(1))
        yield _hidden(stage.screen)


def _hidden(screen: Screen) -> Figure:
    """Requests of a window that nobody sees."""
    with screen.minimized():
        state = screen.run("return document.visibilityState")
        asked = screen.requests()
        time.sleep(HIDDEN_SECONDS)
        more = screen.requests() - asked
    return Figure(f"4: requests in {HIDDEN_SECONDS} s, {state}", more, "", "", exactly(0))


# ---- a rest is lifted --------------------------------------------------------------------------------------------


def lifted(stage: Stage) -> Iterator[Figure]:
    """Story 6: a thousand deliveries wait for an endpoint that rests; somebody lifts the rest in another window."""
    billing = Billing(time.time)
    with stage.server() as server:
        sns = Sns(server)
        topic = sns.topic()
        rest_when_failing(server, topic, _confirmed(topic, billing))
        billing.answers = lambda _: _REFUSED
        topic.publish("refused")
        endpoints = f"{server.url}{_ROOM}/endpoints"
        wait_until(lambda: bool(_resting(server)), _REST_SECONDS)
        billing.answers = lambda _: _OK
        for start in range(0, _HELD, 10):
            entries = [{"Id": str(each), "Message": f"held {each}"} for each in range(start, start + 10)]
            topic.call("publish_batch", PublishBatchRequestEntries=entries)
        stage.screen.open(endpoints)
        yield from _told(stage.screen, billing.visits[0].at, _resting(server))
        yield from _drained(stage.screen, endpoints, billing)
    billing.close()


def _confirmed(topic: Topic, billing: Billing) -> str:
    """A subscription that billing confirmed by itself; its id."""
    arn = topic.subscribe("http", billing.url, DeliveryPolicy=orjson.dumps(POLICY).decode())
    client = topic.sns.client

    def confirmed() -> bool:
        found = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
        return bool(found["PendingConfirmation"] == "false")

    assert wait_until(confirmed, _CONFIRMED_SECONDS_MAX), arn
    return arn.rpartition(":")[2]


def _resting(server: Server) -> dict[str, Any]:
    """The server's own word of the rest: since and until (ms); empty while there is none."""
    _, body = server.ask("GET", "/_redrive/endpoints", headers=SIGNED)
    found = orjson.loads(body)["endpoints"]
    rest: dict[str, Any] = (found[0]["probation"] or {}) if found else {}
    return rest


def _told(screen: Screen, failed_at: float, rest: dict[str, Any]) -> Iterator[Figure]:
    """The row of the endpoint that rests, beside the moment of its failure."""
    row = " ".join(screen.text("tr[data-row]").split())
    since = datetime.fromisoformat(
        screen.find("tr[data-row] time").get_attribute("datetime") or ""
    ).timestamp()
    until = datetime.fromtimestamp(rest["until"] / 1000, UTC)
    yield Figure("6: why it rests is told", "client_error 404" in row, "", row, exactly(1))
    off = abs(since - failed_at)
    yield Figure("6: since, beside the failure", off, "s off", f"{since:.3f}", at_most(TOLD_SECONDS_MAX))
    detail = f"{until:%H:%M:%S} UTC"
    yield Figure("6: until is told to the second", f"until {until:%H:%M:%S}" in row, "", detail, exactly(1))
    off = abs(until.timestamp() - failed_at - _REST_SECONDS)
    yield Figure("6: until, beside the failure and 300 s", off, "s off", "", at_most(TOLD_SECONDS_MAX))


def _drained(screen: Screen, endpoints: str, billing: Billing) -> Iterator[Figure]:
    """Lift the rest in a second window while the first is watched by nobody but itself."""
    notice(screen, "No endpoint rests or fails.")
    with screen.other_tab("window"):
        person = Person(screen)
        screen.open(endpoints)
        before, pressed = len(billing.visits), time.time()
        person.press("Lift")
        lifted_at = pressed + THINKS_SECONDS
        wait_until(lambda: len(billing.visits) >= before + _HELD, _REST_SECONDS)
    first, last = billing.visits[before].at - lifted_at, billing.visits[-1].at - lifted_at
    detail = f"{len(billing.visits) - before:,} held, the last after {last:.1f} s"
    yield Figure("6: draining begins after Lift", first, "s", detail, at_most(DRAINS_SECONDS_MAX))
    seen = noticed_at(screen) - lifted_at
    yield Figure("6: another window shows it", seen, "s", "", at_most(OTHERS_SECONDS_MAX))

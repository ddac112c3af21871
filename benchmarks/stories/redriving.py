"""Stories 1 and 2: the good orders go back in five clicks; an endpoint that is still broken gets ten and no more."""

import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.browser.screen import Screen
from tests.contracts.aws.sns.client import Sns

from benchmarks.figures import Figure, at_most, exactly, under
from benchmarks.stories.orders import DELAY_SECONDS, REMAIN, WORKBENCH, DeadOrders, Stage
from benchmarks.stories.person import Person, notice, noticed_at
from redrive.cli.demo_server import ACCOUNT

CLICKS_MAX: Final = 5
STORY_SECONDS_MAX: Final = 120.0
MOVING_SECONDS_MAX: Final = 30.0
PAGE_MS_MAX: Final = 60.0
STOPS_SECONDS_MAX: Final = 15.0
CAREFUL_FIRST: Final = 10
_LOOKS: Final = 9
_DID: Final = re.compile(
    r"console\.did \S+ (by=\S+ did='redrive \S+ of ([\d,]+) \(server_error 503\), fast')"
)
#: SNS's own default: the ten that fail go on by it, and find the endpoint mended at their next attempt.
_POLICY: Final = '{"healthyRetryPolicy": {"numRetries": 3, "minDelayTarget": 20, "maxDelayTarget": 20}}'


def sent_back(stage: Stage) -> Iterator[Figure]:
    """Story 1, at the pace "as fast as the store takes them"."""
    with stage.dead_orders() as orders:
        yield _workbench(orders)
        person, began = Person(stage.screen), time.time()
        planned = orders.start(person, "fast")
        pressed = time.time()
        notice(stage.screen, "completed", "#state")
        moving = noticed_at(stage.screen) - pressed - DELAY_SECONDS
        delivered = orders.wait_for(orders.good)
        seconds = time.time() - began
        yield Figure("1: clicks", person.actions, "", "", at_most(CLICKS_MAX))
        yield Figure("1: orders that the plan names", planned, "", "", exactly(orders.good))
        yield Figure("1: moved as fast as it goes", moving, "s", "", under(MOVING_SECONDS_MAX))
        detail = f"until billing had the last; {person.actions} s of it thinking"
        yield Figure("1: the whole story", seconds, "s", detail, under(STORY_SECONDS_MAX))
        yield from each_once("1", delivered, orders.good)
        causes = orders.causes()
        yield Figure("1: dead letters that remain", sum(causes.values()), "", str(causes), exactly(REMAIN))
        line = _DID.search(orders.server.log.read_text())
        named = int(line[2].replace(",", "")) if line else 0
        yield Figure("1: orders in the audit line", named, "", line[1] if line else "", exactly(orders.good))


def each_once(story: str, delivered: Counter[str], orders: int) -> Iterator[Figure]:
    """Each order came, and none twice."""
    yield Figure(f"{story}: different orders that came", len(delivered), "", "", exactly(orders))
    twice = sum(1 for times in delivered.values() if times > 1)
    yield Figure(f"{story}: orders that came twice", twice, "", "", exactly(0))


def _workbench(orders: DeadOrders) -> Figure:
    """The page of all causes, each look at another URL, since the same is rendered once a second."""
    times = []
    for look in range(_LOOKS):
        began = time.perf_counter()
        status, _ = orders.server.ask("GET", f"{WORKBENCH}?look={look}", headers={"Accept": "text/html"})
        times.append((time.perf_counter() - began) * 1000)
        assert status == 200, status
    detail = f"{min(times):.1f} ms at best, {max(times):.1f} at worst of {_LOOKS}, connection included"
    return Figure("1: the page of causes", statistics.median(times), "ms", detail, at_most(PAGE_MS_MAX))


def stops_itself(stage: Stage) -> Iterator[Figure]:
    """Story 2: at the pace "careful", then as fast as it goes."""
    with stage.dead_orders() as orders:
        _retry_later(orders)
        before = orders.letters()
        orders.billing.answers = lambda _: 503
        orders.start(Person(stage.screen))
        pressed = time.time()
        notice(
            stage.screen, f"It stopped itself: {CAREFUL_FIRST} of {CAREFUL_FIRST} failed their first attempt"
        )
        stopped = noticed_at(stage.screen) - pressed - DELAY_SECONDS
        said = stage.screen.text("#live [role=alert]").partition(" Mend")[0]
        yield Figure("2: it stops itself", stopped, "s", said, at_most(STOPS_SECONDS_MAX))
        left = orders.letters()
        kept = len(left) if left == before[CAREFUL_FIRST:] else 0
        untouched = orders.good - CAREFUL_FIRST
        yield Figure("2: untouched and in order", kept, "", "", exactly(untouched))
        orders.billing.answers = lambda _: 200
        _resume(stage.screen)
        yield from each_once("2", orders.wait_for(orders.good), orders.good)


def _retry_later(orders: DeadOrders) -> None:
    """Let billing's subscription retry as SNS does unless it is told otherwise."""
    sns = Sns(orders.server, ACCOUNT).client
    (subscription,) = sns.list_subscriptions()["Subscriptions"]
    sns.set_subscription_attributes(
        SubscriptionArn=subscription["SubscriptionArn"],
        AttributeName="DeliveryPolicy",
        AttributeValue=_POLICY,
    )


def _resume(screen: Screen) -> None:
    """Resume as fast as it goes: at its own pace it would take two minutes."""
    person = Person(screen)
    person.choose("select[name=pace]", "as fast")
    person.press("Resume")

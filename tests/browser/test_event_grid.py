"""Story 11: a day of an event's attempts at a webhook that fails, by the buttons of the simulated clock."""

from typing import Final

from azure.eventgrid import EventGridEvent

from tests.browser.screen import Screen
from tests.contracts.azure.grid import Grid, Subscriber
from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION
from tests.services.server import Server

#: The waits before the second to the fifth attempt (seconds): minima, which jitter lengthens by a tenth at most.
WAITS: Final = (10, 30, 60, 300)
DAY_ATTEMPTS: Final = 11
DAY_SECONDS_MAX: Final = 20
_MOMENTS: Final = (
    "return [...document.querySelectorAll('[aria-label=Attempts] time')]"
    ".map(at => Date.parse(at.getAttribute('datetime')) / 1000)"
)


def test_a_day_of_attempts_passes_by_the_clocks_buttons(
    screen: Screen, server: Server, grid: Grid, subscriber: Subscriber
) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber, container="dead")
    subscriber.status = 500
    event = EventGridEvent("/orders/7001", "Order.Placed", {"order": 7001}, "1.0")
    assert grid.publish(topic, [event]) == 200
    screen.open(f"{server.url}/_redrive/console/{SUBSCRIPTION}/{GROUP}/event-grid")
    screen.press("watcher")
    assert subscriber.next().document[0]["data"] == {"order": 7001}
    screen.follow("[aria-labelledby=owed] a")
    _attempts_come_when_they_fall_due(screen)
    screen.press_clock("86400000")
    assert screen.loaded_seconds() < DAY_SECONDS_MAX
    assert f"{DAY_ATTEMPTS} attempts" in screen.text()
    screen.press_clock("86400000")  # its time to live is looked at when its next attempt falls due
    screen.wait_for("dead letter")
    assert f"{DAY_ATTEMPTS} attempts" in screen.text()
    screen.follow(".trace .who a")
    assert "TimeToLiveExceeded" in screen.text()
    assert len(screen.all("svg.timeline circle")) == DAY_ATTEMPTS
    for _ in range(1, DAY_ATTEMPTS):
        subscriber.next()
    subscriber.status = 200
    screen.press("Redrive this")
    screen.press("Redrive 1 message")
    screen.wait_for("1 of 1 sent back")
    screen.press_clock("60000")
    assert subscriber.next().document[0]["data"] == {"order": 7001}
    assert subscriber.is_idle
    screen.wait_for("No dead letters")


def _attempts_come_when_they_fall_due(screen: Screen) -> None:
    for number, wait in enumerate(WAITS, 2):
        screen.press_clock("next")
        screen.wait_for(f"{number} attempts")
        moments = screen.run(_MOMENTS)
        assert len(moments) == number
        assert wait <= moments[-1] - moments[-2] <= wait * 1.1 + 1

"""Story 11: a day of an event's attempts passes by a button of the simulated clock."""

from collections.abc import Iterator
from typing import Final

from azure.eventgrid import EventGridEvent
from tests.browser.screen import Screen
from tests.contracts.azure.grid import Grid, Subscriber
from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION
from tests.contracts.azure.resources import Resources, Webhook

from benchmarks.figures import Figure, exactly, under
from benchmarks.stories.orders import CONSOLE, Stage

DAY_SECONDS_MAX: Final = 20.0
ATTEMPTS: Final = 11  # of a day: 10 s, 30 s, 1 min, 5 min … 12 h
_DAY_MS: Final = "86400000"


def a_day(stage: Stage) -> Iterator[Figure]:
    """An event of which each attempt ends in 500, for a day."""
    with stage.server("--clock", "simulated") as server, Subscriber().serving() as subscriber:
        resources = Resources(server, Webhook())
        grid = Grid(resources)
        topic = grid.topic()
        grid.subscribe(topic.id, subscriber, container="dead")
        subscriber.status = 500
        event = EventGridEvent("/orders/7001", "Order.Placed", {"order": 7001}, "1.0")
        grid.publish(topic, [event])
        stage.screen.open(f"{server.url}{CONSOLE}/{SUBSCRIPTION}/{GROUP}/event-grid")
        stage.screen.press("watcher")
        stage.screen.follow("[aria-labelledby=owed] a")
        stage.screen.press_clock(_DAY_MS)
        seconds = stage.screen.loaded_seconds()
        yield Figure("11: 24 h of virtual time", seconds, "s", "", under(DAY_SECONDS_MAX))
        yield _attempts(stage.screen)
        grid.close()
        resources.client.close()


def _attempts(screen: Screen) -> Figure:
    made = len(screen.all("[aria-label=Attempts] time"))
    return Figure("11: attempts on an event's timeline", made, "", "", exactly(ATTEMPTS))

"""Events on their way to a webhook, in batches, through kill -9: none is lost, and no schedule starts over."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from azure.eventgrid import EventGridEvent
from azure.mgmt.eventgrid import models

from tests.contracts.azure.grid import Grid, Subscriber, grid_at
from tests.services.server import Server, new_server

DAY = 86_400


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    sqlite = request.param == "sqlite"
    store = f"sqlite:///{tmp_path}/redrive.db" if sqlite else request.getfixturevalue("postgres_database")
    blobs = f"file://{tmp_path}/blobs"
    one = new_server(store, "--clock", "simulated", "--blob-store", blobs, directory=tmp_path)
    one.start()
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture
def grid(server: Server) -> Iterator[Grid]:
    with grid_at(server) as grid:
        yield grid


@pytest.fixture
def subscriber() -> Iterator[Subscriber]:
    with Subscriber().serving() as subscriber:
        yield subscriber


def event(number: int) -> EventGridEvent:
    return EventGridEvent(
        subject="/orders", event_type="Order.Placed", data={"order": number}, data_version="1"
    )


def orders(subscriber: Subscriber) -> list[int]:
    """Return the orders the subscriber got since the last call."""
    found: list[int] = []
    while not subscriber.is_idle:
        found += [one["data"]["order"] for one in subscriber.next().document]
    return found


def batches(events: int) -> dict[str, Any]:
    return {"max_events_per_batch": events, "preferred_batch_size_in_kilobytes": 64}


class Deadly(Subscriber):
    """Kills the server instead of answering some of its requests.

    They stand further apart than requests are under way at once (32): each kill is of another start of the server.
    """

    def __init__(self, server: Server, *requests: int) -> None:
        self._server_to_kill = server
        self._requests = set(requests)
        self._seen = 0
        self._said = 200
        self.killed: queue.Queue[int] = queue.Queue()
        super().__init__()

    @property
    def status(self) -> int:
        if self._said == 200:
            self._seen += 1
            if self._seen in self._requests:
                self._server_to_kill.kill()
                self.killed.put(self._seen)
        return self._said

    @status.setter
    def status(self, status: int) -> None:
        self._said = status


def test_batches_cut_short_arrive_whole(grid: Grid, server: Server) -> None:
    with Deadly(server, 1, 45, 90).serving() as subscriber:
        topic = grid.topic()
        grid.subscribe(topic.id, subscriber, destination=batches(20))
        subscriber.status = 503
        for number in range(0, 2000, 100):
            grid.publish(topic, [event(one) for one in range(number, number + 100)])
        subscriber.status = 200
        orders(subscriber)
        kills = 0
        while True:
            try:
                server.advance(240)  # longer than a rest, and than the probe and then the claims of the dead
                break
            except ConnectionError:
                subscriber.killed.get(timeout=10)
                kills += 1
                server.start()
        arrived = orders(subscriber)
    assert kills == 3
    assert sorted(set(arrived)) == list(range(2000))
    assert len(arrived) <= 2000 + kills * 32 * 20, "what was delivered is not delivered again"


def test_a_schedule_goes_on_where_it_was(
    grid: Grid, subscriber: Subscriber, server: Server, tmp_path: Path
) -> None:
    topic = grid.topic()
    grid.subscribe(
        topic.id,
        subscriber,
        container="dead",
        destination=batches(10),
        retry_policy=models.RetryPolicy(max_delivery_attempts=30, event_time_to_live_in_minutes=1440),
    )
    subscriber.status = 500
    server.advance(1)
    grid.publish(topic, [event(1), event(2)])
    attempts = [len(orders(subscriber))]
    for seconds in (15, 160, 1200, 2 * 3600, 3 * DAY):
        server.advance(seconds)
        attempts.append(len(orders(subscriber)))
        server.kill()
        server.start()
    assert sum(attempts) == 2 * 11, "delays of 10 s to 12 h make 11 attempts in a day, of two events each"
    assert sum(count > 0 for count in attempts) > 3, "the kills have to come in different steps"
    (blob,) = (tmp_path / "blobs").rglob("*.json")
    letters = orjson.loads(blob.read_bytes())
    assert [(one["data"]["order"], one["deliveryAttempts"]) for one in letters] == [(1, 11), (2, 11)]


def test_a_probation_survives_kill_9(grid: Grid, subscriber: Subscriber, server: Server) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber)
    subscriber.status = 404  # five minutes
    grid.publish(topic, event(1))
    server.advance(1)
    assert orders(subscriber) == [1]
    server.kill()
    server.start()
    subscriber.status = 200
    grid.publish(topic, event(2))
    server.advance(290)
    assert orders(subscriber) == []
    server.advance(20)
    assert sorted(orders(subscriber)) == [1, 2]

"""Queues and topics shown by name, and the turns in which backlogs are looked at."""

import pytest

from redrive.engine.ports import Counts, Occupied
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.telemetry import backlogs
from redrive.telemetry.backlogs import BacklogGauges
from redrive.telemetry.gauges import OTHERS, Level, fullest
from tests.telemetry.facts import HERE, TOPIC, subscription


def level(name: str, number: int, age_seconds: int = 0, *, private: bool = False) -> Level:
    region = ":sms" if private else HERE.region
    return Level(ResourceName(HERE.account, region, name), Counts(number, 0, 0), age_seconds)


def test_all_are_shown_where_there_is_room() -> None:
    levels = [level("a", 1), level("b", 2)]
    assert fullest(levels, 2) == levels
    assert fullest([], 2) == []


def test_the_fullest_are_shown_and_the_others_together() -> None:
    shown = fullest([level("a", 1, 7), level("b", 20), level("c", 3, 5), level("d", 10)], 2)
    assert [each.name.name for each in shown] == ["b", "d", OTHERS.name]
    assert shown[-1] == Level(OTHERS, Counts(4, 0, 0), 7)


def test_private_names_are_counted_among_the_others() -> None:
    shown = fullest([level("a", 1), level("+15550100", 2, private=True)], 5)
    assert [each.name.name for each in shown] == ["a", OTHERS.name]


class Store:
    """Backlogs with the numbers 1 to 5, each with as many deliveries as its number."""

    def __init__(self) -> None:
        self.looks: list[int] = []
        self.held = [1, 2, 3, 4, 5]

    async def occupied(self, after: int, limit: int) -> list[Occupied]:
        return [Occupied(number, number * 1000, None) for number in self.held if number > after][:2]

    async def count(self, queue_id: int, now: int) -> Counts:
        self.looks.append(queue_id)
        return Counts(queue_id, 0, 0)


async def of_backlog(queue_id: int) -> Subscription | None:
    return None if queue_id == 5 else subscription()


async def test_backlogs_take_turns_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlogs, "LOOKS_MAX", 3)
    store = Store()
    gauges = BacklogGauges(store, of_backlog)  # type: ignore[arg-type]  # two verbs of a store
    await gauges.sample(10_000)
    assert store.looks == [1, 2, 3]
    assert gauges.levels == [Level(TOPIC.name, Counts(6, 0, 0), 9)]
    await gauges.sample(20_000)
    assert store.looks[3:] == [4, 1, 2]
    assert gauges.levels == [Level(TOPIC.name, Counts(10, 0, 0), 19)]
    store.held = [4]
    await gauges.sample(20_000)
    assert gauges.levels == [Level(TOPIC.name, Counts(4, 0, 0), 16)]
    store.held = []
    await gauges.sample(20_000)
    assert not gauges.busy

"""Listeners hear what they are registered for, and only what they have a method for."""

import random

import pytest

from redrive.engine.node.memory import Audience, Listeners
from redrive.engine.ports.facts import Listener
from redrive.model.queue import Queue
from redrive.model.topic import Topic
from redrive.testing import VirtualClock
from tests.engine.stage import Stage, name

TOPIC = Topic(1, name("orders"), "plain")
QUEUE = Queue(2, name("work"))


class Hearing(Listener):
    """Keeps what it hears of."""

    def __init__(self, heard: list[str], text: str = "") -> None:
        self._heard = heard
        self._text = text

    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        self._heard.append(f"{self._text}published {messages}")

    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:
        self._heard.append(f"{self._text}sent {messages}")


def test_a_listener_with_names_hears_those_alone_and_others_hear_all() -> None:
    heard: list[str] = []
    listeners = Listeners([Hearing(heard, "all: ")])
    listeners.add(Hearing(heard, "one: "), "plain", "plainer")
    for dialect in ("plain", "plainer", "other"):
        listeners.of(dialect).published(TOPIC, 3, 1, 10, 0)
    assert heard == ["all: published 3", "one: published 3"] * 2 + ["all: published 3"]


def test_facts_of_queues_reach_no_listener_of_a_dialect() -> None:
    heard: list[str] = []
    listeners = Listeners()
    listeners.add(Hearing(heard), "plain")
    listeners.queues.sent(QUEUE, 1, 5, 0)
    assert heard == []
    listeners.add(Hearing(heard))
    listeners.queues.sent(QUEUE, 1, 5, 0)
    assert heard == ["sent 1"]


def test_a_listener_that_comes_later_is_heard_of_where_others_were_before() -> None:
    heard: list[str] = []
    listeners = Listeners()
    listeners.of("plain").published(TOPIC, 1, 1, 1, 0)
    listeners.add(Hearing(heard), "plain")
    listeners.of("plain").published(TOPIC, 2, 1, 1, 0)
    assert heard == ["published 2"]


def test_an_audience_calls_only_the_listeners_that_override_a_fact() -> None:
    listener = Hearing([])
    alone = Audience([listener, Listener()])
    assert alone.sent == listener.sent  # the method itself, with nothing in between
    assert alone.received.__func__ is Listener.received  # type: ignore[attr-defined]  # a method


async def test_registering_with_an_open_engine_is_refused(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    stage.engine.add_listener(Hearing([]), "plain")
    await stage.engine.open()
    for late in (
        lambda: stage.engine.add_listener(Hearing([])),
        lambda: stage.engine.add_endpoint("push", stage.endpoint),
        lambda: stage.engine.add_profile("plain", stage.profile),
    ):
        with pytest.raises(RuntimeError, match="open"):
            late()
    await stage.engine.close()


def test_a_listener_that_is_removed_hears_no_more_and_others_go_on() -> None:
    heard: list[str] = []
    leaving = Hearing(heard, "leaving: ")
    listeners = Listeners([Hearing(heard, "staying: ")])
    listeners.add(leaving)
    listeners.of("plain").published(TOPIC, 1, 1, 10, 0)
    listeners.remove(leaving)
    listeners.of("plain").published(TOPIC, 2, 1, 10, 0)
    listeners.queues.sent(QUEUE, 3, 10, 0)
    assert heard == [
        "staying: published 1",
        "leaving: published 1",
        "staying: published 2",
        "staying: sent 3",
    ]

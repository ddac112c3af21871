"""Who wants a message, as one node remembers it."""

import asyncio

from redrive.engine.engine import Engine
from redrive.model.filtering import Subject
from redrive.model.topic import Subscription, Topic
from tests.engine.held_store import HeldStore
from tests.engine.samples import named


async def test_who_wants_a_message_is_read_once_for_all_who_ask_meanwhile(
    store: HeldStore, engine: Engine
) -> None:
    topic = await engine.topics.create(Topic(0, named("orders"), "plain"))
    await engine.topics.subscribe(Subscription("s", topic.name, 0, "1", "push", "somewhere"))
    held = store.hold("find")
    before = store.calls.count("find")
    asking = [asyncio.create_task(engine.topics.wanted(topic, Subject({}, "text"))) for _ in range(5)]
    await held.reached
    held.let_go()
    found = await asyncio.gather(*asking)
    assert [[one.id for one in each.subscriptions] for each in found] == [["s"]] * 5
    assert store.calls.count("find") - before == 1

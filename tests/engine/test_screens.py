"""A publication with a screen: each subscriber gets what it may see, and one that may see nothing gets nothing."""

import random
from dataclasses import replace

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Outcome
from redrive.model.topic import Publication, Subscription
from redrive.testing import VirtualClock
from tests.engine.stage import Stage

WITHHELD = Attempt(AttemptResult.REFUSED, Reason.WITHHELD, 403, "not for you")


async def test_each_subscriber_gets_what_it_may_see(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    queues = [await stage.queue(name) for name in ("all", "some", "none")]
    for queue in queues:
        text = queue.name.name
        await stage.subscribe(topic, text, f"queue:{text}", dead_letter=dead.name)
    await stage.subscribe(topic, "pushed", "to:some")
    await stage.publish(topic, "before")  # the router remembers where each leads
    publication = Publication(b"0" * 16, "secret", {}, {}, b"{}", 6)
    masked = replace(publication, body="######")

    def screen(subscription: Subscription) -> Publication | Attempt:
        if subscription.id == "all":
            return publication
        return WITHHELD if subscription.id == "none" else masked

    stage.memory.attempts.clear()
    publication.screen = screen
    await stage.engine.messages.publish(topic, [publication])
    await stage.publish(topic, "after")
    assert [await stage.bodies_in(queue) for queue in queues] == [
        ["before", "secret", "after"],
        ["before", "######", "after"],
        ["before", "after"],
    ]
    assert await stage.bodies_in(dead) == []
    (refused,) = [fact for fact in stage.memory.attempts if fact.attempt is WITHHELD]
    assert (refused.subscription.id, refused.transition.outcome) == ("none", Outcome.DROPPED)
    assert [letter.attempt for letter in stage.memory.dead] == [WITHHELD]
    told = {fact.subscription.id: fact.delivery.body for fact in stage.memory.attempts[:3]}
    assert told == {"all": "secret", "some": "######", "none": "secret"}
    await stage.engine.until_quiet()
    assert sorted(body for _, body in stage.endpoint.pushed) == ["######", "after", "before"]
    await stage.engine.close()

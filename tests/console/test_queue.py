"""A queue's page: who empties it, and how it is emptied at once."""

import re

from redrive.aws.lambda_.documents.backlogs import DIALECT
from redrive.aws.sqs.consumers import CONSUMERS_MAX, Consumers
from redrive.console.needs import WAITED_MINUTES
from redrive.model.metric import MINUTE_MS
from redrive.model.names import ResourceName
from redrive.model.topic import Message, Subscription, Topic
from tests.console.services import Services, make_function
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, URL, make_world, visiting

QUEUE = f"{ROOM}/queues/orders"


async def test_consumers_are_shown_with_their_address_and_client_the_latest_first() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        assert "Nobody has received from it on this node" in text(await visitor.get(QUEUE))
        await Services(visitor).call(
            "sqs", "SendMessage", QueueUrl=f"{URL}/{SCOPE.account}/orders", MessageBody="m"
        )
        receive = f"/?Action=ReceiveMessage&Version=2012-11-05&QueueUrl={URL}/{SCOPE.account}/orders"
        for agent in ("worker/1.0 <b>", "worker/1.1"):
            await visitor.get(receive, **{"user-agent": agent})
        (consumer,) = visitor.server.core.consumers.of(world.orders.id)
        assert (consumer.receives, consumer.messages, consumer.agent) == (2, 1, "worker/1.0 <b>")
        page = text(await visitor.get(f"{QUEUE}?again"))
        assert "root 127.0.0.1 worker/1.0 2 1" in page
        assert "Since this node started." in page


async def test_the_last_receive_of_any_node_is_that_of_the_latest_minute_with_one() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        assert "no receive in the last hour" in text(await visitor.get(QUEUE))
        await world.engine.messages.send(world.orders, [Message(bytes(16), "m")])
        await world.engine.messages.receive(world.orders, 1, wait_ms=0)
        for _ in range(3):
            await time.advance(4 * MINUTE_MS)
        assert "last receive, on any node: 2026-01-01 00:00:00Z" in text(await visitor.get(f"{QUEUE}?again"))


async def test_a_queue_for_a_functions_dead_letters_needs_no_receiver() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        await world.engine.messages.send(world.orders, [Message(bytes(16), "m")])
        for _ in range(WAITED_MINUTES + 2):
            await time.advance(MINUTE_MS)
        warning = f"No receives from this queue for {WAITED_MINUTES} minutes."
        assert warning in text(await visitor.get(QUEUE))
        private = ResourceName(SCOPE.account, f"{SCOPE.region}:{DIALECT}", "bill:$LATEST")
        resources = world.engine.resources
        await resources.topics.create(Topic(0, private, DIALECT))
        carrier = Subscription(
            "dead-letter", private, 0, SCOPE.account, "target", "arn", carries_to=world.orders.name
        )
        await resources.subscriptions.create(carrier)
        assert warning not in text(await visitor.get(f"{QUEUE}?again"))


async def test_functions_that_read_a_queue_are_named() -> None:
    async with visiting() as visitor:
        await make_function(Services(visitor))
        assert "Function bill reads it, and is switched off" in text(await visitor.get(f"{ROOM}/queues/work"))


def test_the_consumer_that_was_silent_for_longest_makes_room() -> None:
    consumers = Consumers()
    for number in range(CONSUMERS_MAX + 1):
        consumers.note(1, "arn", f"10.0.0.{number}", "agent", 0, number)
    addresses = [each.address for each in consumers.of(1)]
    assert (addresses[0], addresses[-1], len(addresses)) == ("10.0.0.50", "10.0.0.1", CONSUMERS_MAX)
    assert consumers.of(2) == []


async def test_a_queue_is_purged_once_its_name_is_typed() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        seqs = await world.die("a", "b")
        dead = f"{ROOM}/queues/{world.dead.name.name}"
        assert re.search(r'href="[^"]+/purge"', (await visitor.get(dead)).body.decode())
        form = text(await visitor.get(f"{dead}/purge"))
        assert "2 messages are destroyed : 2 waiting, 0 in flight, 0 delayed" in form
        assert "It holds dead letters of queue orders" in form
        assert (await visitor.post(f"{dead}/purge", {"typed": "orders"})).status == 400
        assert sum(await world.engine.messages.count(world.dead)) == len(seqs)
        assert (await visitor.post(f"{dead}/purge", {"typed": world.dead.name.name})).status == 303
        assert sum(await world.engine.messages.count(world.dead)) == 0
        again = await visitor.post(f"{dead}/purge", {"typed": world.dead.name.name})
        assert (again.status, "is allowed every 60 seconds" in text(again)) == (400, True)
    async with visiting(console="read-only") as visitor:
        await make_world(visitor)
        assert "/purge" not in (await visitor.get(QUEUE)).body.decode()
        assert (await visitor.post(f"{QUEUE}/purge", {"typed": "orders"})).status == 403

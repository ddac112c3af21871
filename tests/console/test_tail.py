"""The live tail, without a browser."""

from redrive.console.tail import LEASE_MS, LINES_MAX, Tail
from redrive.engine.node.memory import Listeners
from redrive.model.delivery import DeadLetterReason
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Message, Topic
from tests.console.test_schedules import text
from tests.console.world import ROOM, make_world, visiting

SCOPE = ResourceName("000000000000", "us-east-1")
ORDERS = Queue(1, SCOPE._replace(name="orders"))
RENTALS = Topic(2, SCOPE._replace(name="rentals"), "sns")


class Clock:
    """Real time that stands still."""

    at = 0

    def now(self) -> int:
        return self.at


def tail_of(listeners: Listeners) -> tuple[Tail, Clock]:
    clock = Clock()
    tail = Tail(listeners.add, listeners.remove, clock.now)
    listeners.add(tail.losses)
    return tail, clock


def test_facts_are_heard_only_while_somebody_looks_but_losses_always() -> None:
    listeners = Listeners()
    tail, _ = tail_of(listeners)
    listeners.queues.sent(ORDERS, 1, 10, 5)
    listeners.queues.buried(ORDERS, 2, DeadLetterReason.EXHAUSTED, 6)
    assert [(line.what, line.messages) for line in tail.lines()] == [("dead-lettered", 2)]
    listeners.queues.sent(ORDERS, 1, 10, 7)
    listeners.of("sns").published(RENTALS, 3, 1, 10, 8)
    assert [line.what for line in tail.lines()] == ["published", "sent", "dead-lettered"]


def test_ten_seconds_after_the_last_look_the_listener_is_gone() -> None:
    listeners = Listeners()
    tail, clock = tail_of(listeners)
    tail.lines()
    clock.at = LEASE_MS - 1
    listeners.queues.sent(ORDERS, 1, 10, 1)
    clock.at = LEASE_MS
    listeners.queues.sent(ORDERS, 1, 10, 2)
    assert "sent" not in vars(listeners.queues)
    assert len(list(tail.lines())) == 1
    listeners.queues.sent(ORDERS, 1, 10, 3)
    assert len(list(tail.lines())) == 2


def test_the_ring_keeps_the_latest_lines_alone() -> None:
    listeners = Listeners()
    tail, _ = tail_of(listeners)
    tail.lines()
    for number in range(LINES_MAX + 5):
        listeners.queues.sent(ORDERS, 1, 10, number)
    kept = list(tail.lines())
    assert (len(kept), kept[0].number, kept[-1].number) == (LINES_MAX, LINES_MAX + 5, 6)


async def test_messages_that_come_and_go_are_seen_as_they_do_and_filtered() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        messages, page = world.engine.messages, f"{ROOM}/tail"
        assert "Nothing has happened" in text(await visitor.get(page))
        await messages.send(world.orders, [Message(bytes(16), "MARKED")])
        await messages.receive(world.orders, 1, wait_ms=0)
        assert "Nothing that matches" in text(await visitor.get(f"{page}?only=failures"))
        await visitor.post(f"{ROOM}/topics/Rentals/publish", {"body": "MARKED"})
        seen = text(await visitor.get(f"{page}?only=all"))
        assert "Published Rentals" in seen
        assert "Sent orders 1 message" in seen
        assert "Received orders 1 message" in seen
        assert "MARKED" not in seen
        assert "Sent orders" not in text(await visitor.get(f"{page}?of=Rentals"))
        assert "Received" not in text(await visitor.get(f"{page}?only=sent")).partition("At, UTC")[2]
        elsewhere = text(await visitor.get(f"{ROOM.replace('us-east-1', 'eu-west-1')}/tail"))
        assert "Sent orders" not in elsewhere


async def test_an_unchanged_tail_is_not_sent_again() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        first = await visitor.get(f"{ROOM}/tail", **{"x-redrive-part": "live"})
        headers = {"x-redrive-part": "live", "if-none-match": first.headers["ETag"]}
        assert (await visitor.get(f"{ROOM}/tail?again", **headers)).status == 304

"""Nodes that share a store show each other's settings."""

from dataclasses import replace

from redrive.console.nodes import BEAT_MS, FORGOTTEN_MS, NODE, SILENT_MS, Node, Nodes
from redrive.runtime.simulated import SimulatedClock
from tests.console.world import ROOT, Visitor, visiting


def node(name: str, **settings: str) -> Node:
    return Node(name, "0.1.0", 0, 0, [(key, value, "flag") for key, value in settings.items()])


def nodes(visitor: Visitor, clock: SimulatedClock, own: Node) -> Nodes:
    return Nodes(visitor.server.core.engine.resources.documents, clock, own, shared=True)


async def test_nodes_see_each_other_until_they_leave_or_are_silent_for_an_hour() -> None:
    async with visiting() as visitor:
        clock = SimulatedClock()
        one, two = (nodes(visitor, clock, node(name)) for name in ("one", "two"))
        await one.beat()
        await two.beat()
        assert [each.name for each in await one.all()] == ["one", "two"]
        assert [each.name for each in await two.all()] == ["two", "one"]
        clock.take_up(clock.now() + SILENT_MS + 1)
        await one.beat()
        assert [each.is_silent(clock.now()) for each in await one.all()] == [False, True]
        clock.take_up(clock.now() + FORGOTTEN_MS)
        assert [each.name for each in await one.all()] == ["one"]  # whether or not anybody has removed it
        assert await recorded(visitor) == ["one", "two"]
        await one.beat()
        assert await recorded(visitor) == ["one"]


async def test_a_reset_removes_the_records_of_silent_nodes_alone() -> None:
    async with visiting(allow_reset=True) as visitor:
        clock = SimulatedClock()
        one, two, killed = (nodes(visitor, clock, node(name)) for name in ("one", "two", "killed"))
        await killed.beat()
        clock.take_up(clock.now() + SILENT_MS + 1)
        await one.beat()
        await two.beat()
        await one.reset()
        assert await recorded(visitor) == ["one", "two"]
        installation = _installation(visitor)
        installation._shared = True
        installation._clock = clock
        clock.take_up(clock.now() + SILENT_MS + 1)
        await two.beat()
        assert (await visitor.post("/_redrive/reset", {})).status == 200
        assert await recorded(visitor) == ["two"]


async def test_a_node_at_rest_writes_six_times_an_hour_and_removes_its_record_at_the_end() -> None:
    async with visiting() as visitor:
        clock = SimulatedClock()
        documents = visitor.server.core.engine.resources.documents
        at = [clock.now()]  # of each write

        async def settled() -> None:
            while True:  # each look lets the node go on
                seen = [each.seen_at for _, each in await documents.entries(NODE)]
                at.extend(moment for moment in seen if moment > at[-1])
                if seen and clock.next_at() is not None:
                    return

        one = nodes(visitor, clock, node("one"))
        began = clock.now()
        one.start()
        await settled()
        await clock.advance(60 * 60_000, settled)
        assert at == [began + number * BEAT_MS for number in range(7)]
        await one.stop()
        assert await recorded(visitor) == []


async def recorded(visitor: Visitor) -> list[str]:
    documents = visitor.server.core.engine.resources.documents
    return [name for name, _ in await documents.entries(NODE)]


async def test_the_settings_of_every_node_are_shown_and_where_they_differ() -> None:
    async with visiting() as visitor:
        installation = _installation(visitor)
        installation._shared = True
        there = replace(
            installation._own, name="node-2", settings=[*installation._own.settings, ("port", "1", "flag")]
        )
        silent = replace(
            there,
            name="node-3",
            seen_at=installation.now() - SILENT_MS - 1,
            settings=[("region", "<x-evil", "flag")],
        )
        documents = visitor.server.core.engine.resources.documents
        for each in (there, silent):
            await documents.create(NODE, each.name, each)
        page = (await visitor.get(f"{ROOT}/settings")).body.decode()
        assert page.index("This one") < page.index("node-2") < page.index("node-3") < page.index("Silent")
        other = (await visitor.get(f"{ROOT}/settings?node=node-3")).body.decode()
        assert "&lt;x-evil" in other
        assert (await visitor.get(f"{ROOT}/settings?node=gone")).status == 404


def _installation(visitor: Visitor) -> Nodes:
    """The nodes as the console of a server knows them."""
    for extension in visitor.server.extensions:
        for begin in extension.lifecycle.start:
            found = getattr(begin, "__self__", None)
            if isinstance(found, Nodes):
                return found
    raise AssertionError("the server knows no nodes")

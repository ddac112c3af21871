"""Nodes that share a store show each other's settings."""

from dataclasses import replace

from redrive.console.nodes import FORGOTTEN_MS, NODE, ROUND_MS, SILENT_MS, Node, Nodes
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
        await one.tidy()
        await two.tidy()
        assert [each.name for each in await one.all()] == ["one", "two"]
        assert [each.name for each in await two.all()] == ["two", "one"]
        clock.take_up(clock.now() + SILENT_MS + 1)
        await one.tidy()
        assert [each.is_silent(clock.now()) for each in await one.all()] == [False, True]
        clock.take_up(clock.now() + FORGOTTEN_MS)
        await one.tidy()
        assert [each.name for each in await one.all()] == ["one"]


async def test_a_node_says_each_minute_that_it_is_there_and_at_the_end_that_it_is_not() -> None:
    async with visiting() as visitor:
        clock = SimulatedClock()
        documents = visitor.server.core.engine.resources.documents

        async def said_at() -> list[int]:
            return [each.seen_at for _, each in await documents.entries(NODE)]

        async def settled() -> None:
            while await said_at() != [clock.now()] or clock.next_at() is None:
                pass  # each look lets the node go on

        one = nodes(visitor, clock, node("one"))
        began = clock.now()
        one.start()
        await settled()
        await clock.advance(ROUND_MS, settled)
        assert await said_at() == [began + ROUND_MS]
        await one.stop()
        assert await said_at() == []


async def test_the_settings_of_every_node_are_shown_and_where_they_differ() -> None:
    async with visiting() as visitor:
        installation = _installation(visitor)
        installation._shared = True
        there = replace(
            installation._own, name="node-2", settings=[*installation._own.settings, ("port", "1", "flag")]
        )
        silent = replace(there, name="node-3", seen_at=0, settings=[("region", "<x-evil", "flag")])
        documents = visitor.server.core.engine.resources.documents
        for each in (there, silent):
            await documents.create(NODE, each.name, each)
        page = (await visitor.get(f"{ROOT}/settings")).body.decode()
        assert page.index("this one") < page.index("node-2") < page.index("node-3") < page.index("silent")
        other = (await visitor.get(f"{ROOT}/settings?node=node-3")).body.decode()
        assert "&lt;x-evil" in other
        assert (await visitor.get(f"{ROOT}/settings?node=gone")).status == 404


def _installation(visitor: Visitor) -> Nodes:
    """The nodes as the console of a server knows them."""
    for extension in visitor.server.extensions:
        for begin in extension.start:
            found = getattr(begin, "__self__", None)
            if isinstance(found, Nodes):
                return found
    raise AssertionError("the server knows no nodes")

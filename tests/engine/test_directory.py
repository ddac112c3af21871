import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from redrive.engine.directory import Directory, Kind
from redrive.model.errors import Conflict, NotFound, StoreUnavailable
from tests.engine.held_store import HeldStore

NUMBER: Kind[int] = Kind("number", lambda number: {"is": number}, lambda document: int(document["is"]))


@pytest.fixture
async def mine(store: HeldStore) -> Directory:
    """The directory of a node whose calls can be held up."""
    await store.open()
    return Directory(store)


@pytest.fixture
def other(mine: Directory, store: HeldStore) -> Directory:
    """The directory of another node."""
    return Directory(store.real)


async def read(node: Directory) -> int | None:
    return await node.get(NUMBER, "a")


async def test_what_was_read_is_remembered_and_what_is_not_there_is_not(
    mine: Directory, other: Directory
) -> None:
    assert await mine.get(NUMBER, "a") is None
    await other.create(NUMBER, "a", 1)
    assert mine.known(NUMBER, "a") is None
    assert await mine.get(NUMBER, "a") == mine.known(NUMBER, "a") == 1


async def test_a_change_is_known_at_once_where_it_was_made(mine: Directory) -> None:
    await mine.create(NUMBER, "a", 1)
    assert mine.known(NUMBER, "a") == 1
    assert await mine.update(NUMBER, "a", lambda number: number + 1) == mine.known(NUMBER, "a") == 2


async def test_no_change_is_not_written(mine: Directory, store: HeldStore) -> None:
    await mine.create(NUMBER, "a", 1)
    await mine.update(NUMBER, "a", lambda number: number)
    assert store.calls.count("put") == 1


async def test_news_make_forget_one_or_a_kind_or_all(mine: Directory) -> None:
    for news in (("number", "a"), ("number", ""), ("", "")):
        if await mine.get(NUMBER, "a") is None:
            await mine.create(NUMBER, "a", 1)
        mine.forget(*news)
        assert mine.known(NUMBER, "a") is None
    await mine.get(NUMBER, "a")
    mine.forget("queue", "")
    assert mine.known(NUMBER, "a") == 1


async def test_two_nodes_change_one_value_and_no_change_is_lost(mine: Directory, other: Directory) -> None:
    await mine.create(NUMBER, "a", 0)
    for _ in range(3):
        await asyncio.gather(*(node.update(NUMBER, "a", lambda n: n + 1) for node in (mine, other, mine)))
    assert await other.update(NUMBER, "a", lambda n: n + 1) == 10


async def test_two_nodes_make_or_change_one_value_and_no_change_is_lost(
    mine: Directory, other: Directory
) -> None:
    nodes = (mine, other)
    adding = (
        nodes[turn % 2].update_or_create(NUMBER, "a", 1, lambda number: number + 1) for turn in range(6)
    )
    assert sorted(await asyncio.gather(*adding)) == [1, 2, 3, 4, 5, 6]


async def test_a_value_cannot_be_made_twice_or_changed_when_it_is_gone(
    mine: Directory, other: Directory
) -> None:
    await mine.create(NUMBER, "a", 1)
    with pytest.raises(Conflict):
        await other.create(NUMBER, "a", 2)
    assert await other.remove(NUMBER, "a")
    assert not await other.remove(NUMBER, "a")
    with pytest.raises(NotFound):
        await mine.update(NUMBER, "a", lambda number: number + 1)


async def test_a_read_that_a_change_overtakes_is_not_remembered(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await other.create(NUMBER, "a", 1)
    held = store.hold_answer("get")
    reading = asyncio.create_task(read(mine))
    await held.reached
    await other.update(NUMBER, "a", lambda _: 2)
    mine.forget("number", "a")
    held.let_go()
    assert await reading == 1
    assert await mine.get(NUMBER, "a") == 2


async def test_an_own_change_that_a_later_one_overtakes_is_not_remembered(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await mine.create(NUMBER, "a", 1)
    held = store.hold_answer("put")
    changing = asyncio.create_task(mine.update(NUMBER, "a", lambda _: 2))
    await held.reached
    await other.update(NUMBER, "a", lambda _: 3)
    mine.forget("number", "a")
    held.let_go()
    assert await changing == 2
    assert await mine.get(NUMBER, "a") == 3


async def test_a_read_that_an_own_change_overtakes_is_not_remembered(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(NUMBER, "a", 1)
    mine.forget("number", "a")
    put = store.hold("put")
    changing = asyncio.create_task(mine.update(NUMBER, "a", lambda _: 2))
    await put.reached
    mine.forget("number", "a")
    held = store.hold_answer("get")
    reading = asyncio.create_task(read(mine))
    await held.reached
    put.let_go()
    await changing
    held.let_go()
    assert await reading == 1
    assert await mine.get(NUMBER, "a") == 2


@pytest.mark.parametrize("verb", ["put", "remove"])
async def test_a_change_whose_answer_is_lost_is_not_denied(
    mine: Directory, store: HeldStore, verb: str
) -> None:
    await mine.create(NUMBER, "a", 1)
    changes: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "put": lambda: mine.update(NUMBER, "a", lambda _: 2),
        "remove": lambda: mine.remove(NUMBER, "a"),
    }
    held = store.hold_answer(verb)
    changing = asyncio.create_task(changes[verb]())
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await changing
    assert await mine.get(NUMBER, "a") == (2 if verb == "put" else None)


async def test_a_removal_whose_answer_is_lost_is_not_denied_by_a_read_on_its_way(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(NUMBER, "a", 1)
    removal = store.hold("remove")
    removing = asyncio.create_task(mine.remove(NUMBER, "a"))
    await removal.reached
    assert await mine.get(NUMBER, "a") == 1
    await store.real.remove("number", "a")
    removal.lose()
    with pytest.raises(StoreUnavailable):
        await removing
    assert await mine.get(NUMBER, "a") is None

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from redrive.engine.configuration.directory import Directory, DocumentKind, Draft
from redrive.engine.ports import Creation, NewDelivery, Removal, Remove
from redrive.model.errors import AlreadyExists, Conflict, NotFound, StoreUnavailable
from tests.engine.held_store import HeldStore

QUEUE_RECORD: DocumentKind[int] = DocumentKind(
    "number", lambda number: {"is": number}, lambda document: int(document["is"])
)
LETTER: DocumentKind[str] = DocumentKind(
    "letter", lambda letter: {"is": letter}, lambda document: str(document["is"])
)


@pytest.fixture
async def mine(store: HeldStore) -> Directory:
    """The directory of a node whose calls can be held up."""
    await store.open()
    return Directory(store, count(1000, 1000).__next__)


@pytest.fixture
def other(mine: Directory, store: HeldStore) -> Directory:
    """The directory of another node."""
    return Directory(store.real, count(500, 1000).__next__)


async def read(node: Directory) -> int | None:
    return await node.get(QUEUE_RECORD, "a")


async def test_found_documents_are_cached_and_missing_ones_are_not(mine: Directory, other: Directory) -> None:
    assert await mine.get(QUEUE_RECORD, "a") is None
    await other.create(QUEUE_RECORD, "a", 1)
    assert mine.known(QUEUE_RECORD, "a") is None
    assert await mine.get(QUEUE_RECORD, "a") == mine.known(QUEUE_RECORD, "a") == 1


async def test_a_change_is_known_at_once_where_it_was_made(mine: Directory) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    assert mine.known(QUEUE_RECORD, "a") == 1
    assert (
        await mine.update(QUEUE_RECORD, "a", lambda number: number + 1) == mine.known(QUEUE_RECORD, "a") == 2
    )


async def test_no_change_is_not_written(mine: Directory, store: HeldStore) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    await mine.update(QUEUE_RECORD, "a", lambda number: number)
    assert store.calls.count("write") == 1


async def test_a_notice_drops_a_document_a_kind_or_the_whole_cache(mine: Directory) -> None:
    for news in (("number", "a"), ("number", ""), ("", "")):
        if await mine.get(QUEUE_RECORD, "a") is None:
            await mine.create(QUEUE_RECORD, "a", 1)
        mine.forget(*news)
        assert mine.known(QUEUE_RECORD, "a") is None
    await mine.get(QUEUE_RECORD, "a")
    mine.forget("queue", "")
    assert mine.known(QUEUE_RECORD, "a") == 1


async def test_two_nodes_change_one_value_and_no_change_is_lost(mine: Directory, other: Directory) -> None:
    await mine.create(QUEUE_RECORD, "a", 0)
    for _ in range(3):
        await asyncio.gather(
            *(node.update(QUEUE_RECORD, "a", lambda n: n + 1) for node in (mine, other, mine))
        )
    assert await other.update(QUEUE_RECORD, "a", lambda n: n + 1) == 10


async def test_two_nodes_make_or_change_one_value_and_no_change_is_lost(
    mine: Directory, other: Directory
) -> None:
    nodes = (mine, other)
    adding = (
        nodes[turn % 2].update_or_create(QUEUE_RECORD, "a", 1, lambda number: number + 1) for turn in range(6)
    )
    assert sorted(await asyncio.gather(*adding)) == [1, 2, 3, 4, 5, 6]


async def test_a_document_is_created_once_and_not_changed_after_its_removal(
    mine: Directory, other: Directory
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    with pytest.raises(Conflict):
        await other.create(QUEUE_RECORD, "a", 2)
    assert await other.remove(QUEUE_RECORD, "a")
    assert not await other.remove(QUEUE_RECORD, "a")
    with pytest.raises(NotFound):
        await mine.update(QUEUE_RECORD, "a", lambda number: number + 1)


async def test_a_read_that_a_change_overtakes_is_not_remembered(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await other.create(QUEUE_RECORD, "a", 1)
    held = store.hold_answer("get")
    reading = asyncio.create_task(read(mine))
    await held.reached
    await other.update(QUEUE_RECORD, "a", lambda _: 2)
    mine.forget("number", "a")
    held.let_go()
    assert await reading == 1
    assert await mine.get(QUEUE_RECORD, "a") == 2


async def test_an_own_change_that_a_later_one_overtakes_is_not_remembered(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    held = store.hold_answer("put")
    changing = asyncio.create_task(mine.update(QUEUE_RECORD, "a", lambda _: 2))
    await held.reached
    await other.update(QUEUE_RECORD, "a", lambda _: 3)
    mine.forget("number", "a")
    held.let_go()
    assert await changing == 2
    assert await mine.get(QUEUE_RECORD, "a") == 3


async def test_a_read_that_an_own_change_overtakes_is_not_remembered(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    mine.forget("number", "a")
    put = store.hold("put")
    changing = asyncio.create_task(mine.update(QUEUE_RECORD, "a", lambda _: 2))
    await put.reached
    mine.forget("number", "a")
    held = store.hold_answer("get")
    reading = asyncio.create_task(read(mine))
    await held.reached
    put.let_go()
    await changing
    held.let_go()
    assert await reading == 1
    assert await mine.get(QUEUE_RECORD, "a") == 2


@pytest.mark.parametrize("verb", ["put", "remove"])
async def test_a_change_whose_answer_is_lost_is_not_denied(
    mine: Directory, store: HeldStore, verb: str
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    changes: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "put": lambda: mine.update(QUEUE_RECORD, "a", lambda _: 2),
        "remove": lambda: mine.remove(QUEUE_RECORD, "a"),
    }
    held = store.hold_answer(verb)
    changing = asyncio.create_task(changes[verb]())
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await changing
    assert await mine.get(QUEUE_RECORD, "a") == (2 if verb == "put" else None)


async def test_a_removal_whose_answer_is_lost_is_not_denied_by_a_read_on_its_way(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    removal = store.hold("remove")
    removing = asyncio.create_task(mine.remove(QUEUE_RECORD, "a"))
    await removal.reached
    assert await mine.get(QUEUE_RECORD, "a") == 1
    await store.real.write([Remove("number", "a")])
    removal.lose()
    with pytest.raises(StoreUnavailable):
        await removing
    assert await mine.get(QUEUE_RECORD, "a") is None


# ---- several values at once ------------------------------------------------------------------------------------


async def test_several_values_are_written_at_once_and_known(mine: Directory, store: HeldStore) -> None:
    await mine.create(QUEUE_RECORD, "old", 0)
    before = len(store.calls)
    changes = [
        Creation(QUEUE_RECORD, "a", 1),
        Creation(LETTER, "a", "x"),
        Removal(QUEUE_RECORD, "old"),
        Removal(QUEUE_RECORD, "no"),
    ]
    assert await mine.write(changes) == [True, True, True, False]
    assert (mine.known(QUEUE_RECORD, "a"), mine.known(LETTER, "a"), mine.known(QUEUE_RECORD, "old")) == (
        1,
        "x",
        None,
    )
    assert store.calls[before:] == ["write"]


async def test_of_several_values_none_is_written_where_one_is_there(
    mine: Directory, other: Directory
) -> None:
    await other.create(LETTER, "a", "x")
    with pytest.raises(Conflict) as conflict:
        await mine.write([Creation(QUEUE_RECORD, "a", 1), Creation(LETTER, "a", "y")])
    assert (conflict.value.kind, conflict.value.key) == (LETTER.name, "a")
    assert (await mine.get(QUEUE_RECORD, "a"), await mine.get(LETTER, "a")) == (None, "x")


async def test_a_decision_is_one_write(mine: Directory, store: HeldStore) -> None:
    await mine.write([Creation(QUEUE_RECORD, "a", 1), Creation(LETTER, "a", "x"), Creation(LETTER, "b", "y")])

    async def decide(draft: Draft) -> int:
        number = await draft.get(QUEUE_RECORD, "a")
        assert number is not None
        draft.put(QUEUE_RECORD, "a", number + 1)
        draft.put(QUEUE_RECORD, "new", 7)
        for key, _ in await draft.find(LETTER, ""):
            draft.remove(LETTER, key)
        draft.require_none(LETTER, "")
        return number

    before = len(store.calls)
    assert await mine.transact(decide) == 1
    assert store.calls[before:] == ["find", "write"]
    assert [mine.known(QUEUE_RECORD, key) for key in ("a", "new")] == [2, 7]
    assert await mine.find(LETTER, "") == []


@pytest.mark.parametrize("meanwhile", ["changed", "gone", "made", "found changed", "one more"])
async def test_a_decision_whose_ground_moved_is_made_again(
    mine: Directory, other: Directory, store: HeldStore, meanwhile: str
) -> None:
    await mine.write([Creation(QUEUE_RECORD, "a", 1), Creation(LETTER, "a", "x")])
    seen: list[object] = []

    async def decide(draft: Draft) -> None:
        letters = await draft.find(LETTER, "")
        seen.append(
            (
                await draft.get(QUEUE_RECORD, "a"),
                await draft.get(QUEUE_RECORD, "b"),
                [value for _, value in letters],
            )
        )
        for key, _ in letters:
            draft.remove(LETTER, key)
        draft.require_none(LETTER, "")

    held = store.hold("write")
    deciding = asyncio.create_task(mine.transact(decide))
    await held.reached
    match meanwhile:
        case "changed":
            await other.update(QUEUE_RECORD, "a", lambda _: 2)
        case "gone":
            await other.remove(QUEUE_RECORD, "a")
        case "made":
            await other.create(QUEUE_RECORD, "b", 3)
        case "found changed":
            await other.update(LETTER, "a", lambda _: "y")
        case "one more":
            await other.create(LETTER, "b", "z")
    held.let_go()
    await deciding
    again = {
        "changed": (2, None, ["x"]),
        "gone": (None, None, ["x"]),
        "made": (1, 3, ["x"]),
        "found changed": (1, None, ["y"]),
        "one more": (1, None, ["x", "z"]),
    }
    assert seen == [(1, None, ["x"]), again[meanwhile]]
    assert await other.find(LETTER, "") == []


async def test_a_draft_that_creates_an_unread_document_conflicts_if_it_exists(mine: Directory) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    tries = 0

    async def decide(draft: Draft) -> None:
        nonlocal tries
        tries += 1
        draft.put(QUEUE_RECORD, "a", 2)

    with pytest.raises(Conflict):
        await mine.transact(decide)
    assert (tries, await mine.get(QUEUE_RECORD, "a")) == (1, 1)


async def test_a_decision_to_change_nothing_asks_the_store_whether_what_it_remembered_stands(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)

    async def decide(draft: Draft) -> int | None:
        draft.remove(QUEUE_RECORD, "b") if await draft.get(QUEUE_RECORD, "b") else None
        return await draft.get(QUEUE_RECORD, "a")

    before = len(store.calls)
    assert await mine.transact(decide) == 1
    assert store.calls[before:] == ["get", "get_each"]


async def test_a_decision_to_change_nothing_reads_once_what_is_not_remembered(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await other.create(QUEUE_RECORD, "a", 1)
    before = len(store.calls)
    assert await mine.transact(lambda draft: draft.get(QUEUE_RECORD, "a")) == 1
    assert store.calls[before:] == ["get"]


async def test_a_change_not_heard_of_is_seen_by_a_decision_to_change_nothing(
    mine: Directory, other: Directory
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    await other.update(QUEUE_RECORD, "a", lambda _: 2)
    assert (await mine.get(QUEUE_RECORD, "a"), mine.known(QUEUE_RECORD, "a")) == (1, 1)
    assert await mine.update(QUEUE_RECORD, "a", lambda number: number) == 2
    await other.remove(QUEUE_RECORD, "a")
    with pytest.raises(NotFound):
        await mine.update(QUEUE_RECORD, "a", lambda number: number)


async def test_a_document_made_again_is_not_taken_for_the_one_before(
    mine: Directory, other: Directory
) -> None:
    await mine.create(LETTER, "a", "before")
    await other.remove(LETTER, "a")
    await other.create(LETTER, "a", "after")
    assert mine.known(LETTER, "a") == "before"
    assert await mine.update(LETTER, "a", lambda letter: f"{letter}, changed") == "after, changed"


async def test_a_refusal_for_what_another_node_has_removed_is_made_again(
    mine: Directory, other: Directory
) -> None:
    async def made_once(draft: Draft) -> None:
        if await draft.get(QUEUE_RECORD, "a") is not None:
            raise AlreadyExists("a")
        draft.put(QUEUE_RECORD, "a", 2)

    await mine.create(QUEUE_RECORD, "a", 1)
    with pytest.raises(AlreadyExists):
        await mine.transact(made_once)
    await other.remove(QUEUE_RECORD, "a")
    await mine.transact(made_once)
    assert await other.get(QUEUE_RECORD, "a") == 2


async def test_a_store_that_is_away_is_not_asked_again_for_a_decision(
    mine: Directory, store: HeldStore
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)

    async def decide(draft: Draft) -> int | None:
        await draft.get(QUEUE_RECORD, "a")
        return await draft.get(QUEUE_RECORD, "b")

    store.away = True
    before = len(store.calls)
    with pytest.raises(StoreUnavailable):
        await mine.transact(decide)
    assert store.calls[before:] == ["get"]


async def test_a_delivery_enters_with_a_decision(mine: Directory, store: HeldStore) -> None:
    new_delivery = NewDelivery(7, b"0123456789abcdef", "text", None, 1000, 1000)

    async def decide(draft: Draft) -> None:
        draft.put(QUEUE_RECORD, "a", 1)
        draft.enqueue(new_delivery)

    await mine.transact(decide)
    await mine.write([Removal(QUEUE_RECORD, "a")], [new_delivery])
    assert [one.body for one in await store.real.peek(7, 10)] == ["text", "text"]


async def test_two_nodes_decide_about_two_values_and_their_sum_stays(
    mine: Directory, other: Directory, store: HeldStore
) -> None:
    await mine.write([Creation(QUEUE_RECORD, "a", 10), Creation(QUEUE_RECORD, "b", 0)])

    async def decide(draft: Draft) -> None:
        a, b = await draft.get(QUEUE_RECORD, "a"), await draft.get(QUEUE_RECORD, "b")
        assert a is not None
        assert b is not None
        draft.put(QUEUE_RECORD, "a", a - 1)
        draft.put(QUEUE_RECORD, "b", b + 1)

    await asyncio.gather(*(node.transact(decide) for node in (mine, other, mine, other)))
    assert await Directory(store.real, int).entries(QUEUE_RECORD) == [("a", 6), ("b", 4)]


async def test_a_kind_is_cleared_whole(mine: Directory, other: Directory) -> None:
    await mine.write([Creation(QUEUE_RECORD, f"{number}", number) for number in range(250)])
    await mine.create(LETTER, "a", "x")
    await mine.clear(QUEUE_RECORD)
    assert (
        await other.find(QUEUE_RECORD, ""),
        mine.known(QUEUE_RECORD, "7"),
        await other.find(LETTER, ""),
    ) == (
        [],
        None,
        ["x"],
    )


async def test_a_decision_sees_what_it_has_changed_itself(mine: Directory, other: Directory) -> None:
    await other.write([Creation(LETTER, key, key) for key in ("a", "b", "c")])

    async def decide(draft: Draft) -> None:
        await draft.find(LETTER, "")
        draft.put(LETTER, "b", "other")
        draft.remove(LETTER, "c")
        draft.put(LETTER, "ab", "new")
        draft.put(LETTER, "d", "for a moment")
        assert await draft.get(LETTER, "e") is None
        draft.put(LETTER, "e", "for a moment")
        draft.remove(LETTER, "e")
        draft.remove(LETTER, "d")
        assert [await draft.get(LETTER, key) for key in ("b", "c", "ab")] == ["other", None, "new"]
        assert await draft.find(LETTER, "") == [("a", "a"), ("ab", "new"), ("b", "other")]

    await mine.transact(decide)
    assert await other.entries(LETTER) == [("a", "a"), ("ab", "new"), ("b", "other")]


async def test_a_draft_starts_again_if_a_document_changes_between_its_reads(
    mine: Directory, other: Directory
) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)
    seen: list[int | None] = []

    async def decide(draft: Draft) -> None:
        seen.append(await draft.get(QUEUE_RECORD, "a"))
        if len(seen) == 1:
            await other.update(QUEUE_RECORD, "a", lambda _: 2)
        await draft.find(QUEUE_RECORD, "")
        draft.put(QUEUE_RECORD, "a", (seen[-1] or 0) + 10)

    await mine.transact(decide)
    assert (seen, await other.entries(QUEUE_RECORD)) == ([1, 2], [("a", 12)])


async def test_a_document_created_unread_conflicts_though_a_later_find_shows_it(mine: Directory) -> None:
    await mine.create(QUEUE_RECORD, "a", 1)

    async def decide(draft: Draft) -> None:
        draft.put(QUEUE_RECORD, "a", 2)
        assert await draft.find(QUEUE_RECORD, "") == [("a", 2)]

    with pytest.raises(Conflict):
        await mine.transact(decide)

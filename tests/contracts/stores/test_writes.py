"""Several documents change in one transaction, with the deliveries that belong to the change, or nothing does."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from redrive.engine.ports import Change, Put, Remove, Require, RequireNone, Store
from redrive.model.errors import Conflict, StoreUnavailable
from redrive.stores.postgres.listening import Notices
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import Bench, bodies
from tests.contracts.stores.homes import Home

Documents = dict[tuple[str, str], tuple[int, object]]

FIRST: Final = [
    Put("topic", "t", {"n": 1}),
    Put("subscription", "t/a", {"n": 2}),
    Put("queue", "q", {"n": 3}),
]


async def documents(store: Store) -> Documents:
    """Every document: its version, and what `n` is in it."""
    found = [one for kind in ("topic", "subscription", "queue") for one in await store.find(kind, "")]
    return {(one.kind, one.key): (one.version, one.document.get("n")) for one in found}


@pytest.fixture
async def written(store: Store) -> Store:
    """A store with a topic, a subscription and a queue, the topic at its second version."""
    await store.write(FIRST)
    await store.write([Put("topic", "t", {"n": 4}, 1)])
    return store


async def test_each_change_is_answered_with_its_version(written: Store) -> None:
    changes = [
        Put("topic", "u", {"n": 5}),
        Put("topic", "t", {"n": 6}, 2),
        Remove("subscription", "t/a", 1),
        Remove("subscription", "t/b"),
        Require("queue", "q", 1),
        Require("queue", "r", 0),
        RequireNone("subscription", "t/"),
    ]
    assert await written.write(changes) == [1, 3, 1, 0, 1, 0, 0]
    assert await documents(written) == {
        ("topic", "t"): (3, 6),
        ("topic", "u"): (1, 5),
        ("queue", "q"): (1, 3),
    }


async def test_a_new_document_begins_at_the_version_that_is_given(written: Store) -> None:
    first = 1 << 52
    changes = [Put("topic", "u", {"n": 5}, first=first), Put("topic", "t", {"n": 6}, 2, first=first)]
    assert await written.write(changes) == [first, 3]
    assert await written.write([Put("topic", "u", {"n": 7}, first)]) == [first + 1]
    with pytest.raises(Conflict):
        await written.write([Put("topic", "u", {"n": 8}, first)])
    assert (await documents(written))["topic", "u"] == (first + 1, 7)


async def test_a_write_of_nothing_is_answered(written: Store) -> None:
    before = await documents(written)
    assert await written.write([]) == []
    assert await documents(written) == before


@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (Put("topic", "t", {}), "t"),
        (Put("topic", "t", {}, 1), "t"),
        (Put("topic", "missing", {}, 1), "missing"),
        (Remove("topic", "t", 1), "t"),
        (Remove("topic", "missing", 1), "missing"),
        (Require("topic", "t", 1), "t"),
        (Require("topic", "t", 0), "t"),
        (Require("topic", "missing", 1), "missing"),
        (RequireNone("topic", "t"), "t"),
        (RequireNone("topic", ""), ""),
    ],
)
@pytest.mark.parametrize("last", [True, False])
async def test_one_refused_change_undoes_the_write_and_names_its_document(
    written: Store, plain: Bench, refused: Change, key: str, last: bool
) -> None:
    before = await documents(written)
    good: list[Change] = [Put("queue", "p", {}), Put("queue", "q", {}, 1), Remove("subscription", "t/a")]
    with pytest.raises(Conflict) as conflict:
        await written.write([*good, refused] if last else [refused, *good], [plain.new_delivery("a")])
    assert (conflict.value.kind, conflict.value.key) == ("topic", key)
    assert await documents(written) == before
    assert await plain.peek() == []


async def test_a_refused_write_leaves_its_neighbours_alone(written: Store) -> None:
    def pair(number: int, version: int) -> list[Change]:
        return [Put("queue", f"{number}", {"n": number}), Require("topic", "t", version)]

    calls = [written.write(pair(number, 7 if number % 2 else 2)) for number in range(6)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [list, Conflict] * 3
    assert [one.key for one in await written.find("queue", "")] == ["0", "2", "4", "q"]


@pytest.mark.parametrize(
    ("changes", "is_free"),
    [
        ([Remove("subscription", "t/a")], True),
        ([Remove("subscription", "t/a", 1)], True),
        ([], False),
        ([Remove("topic", "t")], False),  # of another kind
        ([Put("subscription", "t/a", {}, 1)], False),
        ([Remove("subscription", "t/a"), Put("subscription", "t/b", {})], False),
        ([Remove("subscription", "t/a"), Put("subscription", "t0", {})], True),
    ],
)
async def test_require_none_is_checked_against_the_documents_the_write_leaves(
    written: Store, changes: Sequence[Change], is_free: bool
) -> None:
    write = written.write([RequireNone("subscription", "t/"), *changes])
    if is_free:
        await write
        assert await written.find("subscription", "t/") == []
    else:
        with pytest.raises(Conflict):
            await write
        assert [one.version for one in await written.find("subscription", "t/")] == [1]


async def test_no_document_is_changed_twice_in_one_write(written: Store) -> None:
    before = await documents(written)
    for twice in (
        [Remove("topic", "t"), Put("topic", "t", {})],
        [Require("topic", "t", 2), Remove("topic", "t")],
    ):
        with pytest.raises(ValueError, match="topic t is named twice"):
            await written.write(twice)
    assert await documents(written) == before


async def test_deliveries_enter_with_the_change(store: Store, plain: Bench, fifo: Bench) -> None:
    repeated = {"deduplication_key": "k", "deduplicate_until": 2_000_000}
    new_deliveries = [
        plain.new_delivery("a"),
        fifo.new_delivery("b", group="g", **repeated),
        fifo.new_delivery("c", group="g"),
    ]
    assert await store.write([Put("topic", "t", {})], new_deliveries) == [1]
    assert (bodies(await plain.claim()), bodies(await fifo.claim(limit=1))) == (["a"], ["b"])
    assert await store.write([Put("topic", "u", {})], [fifo.new_delivery("b", group="g", **repeated)]) == [1]
    assert bodies(await fifo.peek()) == ["b", "c"]


async def test_deliveries_of_several_writes_keep_their_groups_order(store: Store, fifo: Bench) -> None:
    calls = [
        store.write([Put("topic", f"{number}", {})], [fifo.new_delivery(f"{number}", group="g")])
        for number in range(20)
    ]
    await asyncio.gather(*calls)
    claimed = await fifo.claim(limit=20)
    assert sorted(bodies(claimed), key=int) == [f"{number}" for number in range(20)]
    assert [one.seq for one in claimed] == sorted(one.seq for one in claimed)


# ---- several nodes ---------------------------------------------------------------------------------------------


async def test_writes_of_the_same_documents_in_any_order_do_not_wait_in_a_circle(
    shared_home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [await shared_home.open(f"{number}") for number in range(2)]
    keys = ("a", "b", "c")
    await nodes[0].write([Put("queue", key, {"n": 0}) for key in keys])
    for version in range(1, 20):
        ways: list[list[Change]] = [
            [Put("queue", key, {"n": n}, version) for key in keys[:: 1 - 2 * n]] for n in (0, 1)
        ]
        calls = [node.write(way) for node, way in zip(nodes, ways, strict=True)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "list"]
    assert {(one.version, one.document["n"]) for one in await nodes[0].find("queue", "")} in (
        {(20, 0)},
        {(20, 1)},
    )
    assert caplog.messages == []


async def test_of_a_removal_and_an_addition_below_it_one_is_refused(shared_home: Home) -> None:
    nodes = [await shared_home.open(f"{number}") for number in range(2)]
    for number in range(20):
        topic = f"{number:02}"
        await nodes[0].write([Put("topic", topic, {})])
        removal = nodes[0].write([Remove("topic", topic, 1), RequireNone("subscription", f"{topic}/")])
        addition = nodes[1].write([Require("topic", topic, 1), Put("subscription", f"{topic}/a", {})])
        calls = (removal, addition) if number % 2 else (addition, removal)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "list"]
        stands = await nodes[0].get("topic", topic) is not None
        assert stands == bool(await nodes[0].find("subscription", f"{topic}/"))


# ---- a crash in the midst of it --------------------------------------------------------------------------------


async def test_a_write_whose_commit_failed_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    queue = Bench(store, await store.new_id())
    await store.write(FIRST)
    before = await documents(store)
    store.connection.set_commit_hook(lambda: True)  # the commit is turned into a rollback
    with pytest.raises(StoreUnavailable):
        await store.write([Remove("topic", "t"), Put("queue", "q", {}, 1)], [queue.new_delivery("a")])
    store.connection.set_commit_hook(None)
    assert (await documents(store), await queue.peek()) == (before, [])
    await store.write([Remove("topic", "t", 1)])
    await store.close()


async def test_a_write_cut_off_before_its_commit_leaves_nothing(
    shared_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise ConnectionResetError

    store = await shared_home.open()
    queue = Bench(store, await store.new_id())
    await store.write(FIRST)
    before = await documents(store)
    tell = Notices.tell_changes
    monkeypatch.setattr(Notices, "tell_changes", die)  # the last step of the transaction
    with pytest.raises(StoreUnavailable):
        await store.write([Remove("topic", "t"), Put("queue", "q", {}, 1)], [queue.new_delivery("a")])
    monkeypatch.setattr(Notices, "tell_changes", tell)
    assert (await documents(store), await queue.peek()) == (before, [])
    await store.write([Remove("topic", "t", 1)])


# ---- numbers ---------------------------------------------------------------------------------------------------


async def test_a_server_draws_numbers_without_a_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db", alone=True)
    await store.open()
    commits: list[None] = []
    store.connection.set_commit_hook(lambda: commits.append(None) or False)  # type: ignore[func-returns-value]  # counted on the way
    drawn = [await store.new_id() for _ in range(5)]
    assert (len(set(drawn)), commits) == (5, [])
    await store.close()


async def test_numbers_go_on_where_the_last_start_ended(tmp_path: Path) -> None:
    drawn = []
    for _ in range(3):
        store = SqliteStore(tmp_path / "redrive.db", alone=True)
        await store.open()
        drawn.append(await store.new_id())
        await store.close()
    assert drawn == [1, 2, 3]


async def test_numbers_drawn_before_a_crash_are_not_drawn_after_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    drawn = [await store.new_id() for _ in range(3)]
    other = SqliteStore(tmp_path / "redrive.db")  # what a start after a crash finds
    await other.open()
    drawn += [await other.new_id() for _ in range(3)]
    assert len(set(drawn)) == 6
    await other.close()
    await store.close()

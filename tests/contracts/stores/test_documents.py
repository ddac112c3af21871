import asyncio
from typing import Any

import pytest

from redrive.engine.ports import Put, Remove, Resource, Store
from redrive.model.errors import Conflict
from tests.contracts.stores.homes import Home


async def put(store: Store, key: str, version: int = 0, /, **document: Any) -> int:
    (stored,) = await store.write([Put("queue", key, document, version)])
    return stored


async def remove(store: Store, key: str) -> bool:
    """True if it was there."""
    return await store.write([Remove("queue", key)]) != [0]


async def keys(store: Store, prefix: str, after: str = "", limit: int | None = None) -> list[str]:
    return [resource.key for resource in await store.find("queue", prefix, after, limit)]


async def test_a_document_is_read_as_it_was_written(store: Store) -> None:
    document: dict[str, Any] = {
        "name": ["0", "eu", "né\u20ac\U0001d11e"],
        "large": 2**53 + 1,
        "part": 0.1,
        "none": None,
        "in": {"a": []},
    }
    assert await put(store, "a", **document) == 1
    assert await store.get("queue", "a") == Resource("queue", "a", 1, document)


async def test_each_change_is_the_next_version(store: Store) -> None:
    await put(store, "a", n=0)
    assert await put(store, "a", 1, n=1) == 2
    assert await put(store, "a", 2, n=2) == 3
    assert await store.get("queue", "a") == Resource("queue", "a", 3, {"n": 2})


async def test_several_documents_are_read_at_once_whatever_their_kinds(store: Store) -> None:
    await put(store, "a", n=0)
    await put(store, "b", n=1)
    await store.write([Put("topic", "a", {"n": 2})])
    found = await store.get_each([("queue", "b"), ("topic", "a"), ("topic", "b"), ("queue", "nu\0l")])
    assert sorted(found) == [Resource("queue", "b", 1, {"n": 1}), Resource("topic", "a", 1, {"n": 2})]
    assert await store.get_each([]) == []


async def test_kinds_are_those_of_which_there_is_a_document(store: Store) -> None:
    of_the_store = await store.kinds()
    await put(store, "a", n=0)
    await put(store, "b", n=1)
    await store.write([Put("topic", "a", {}), Put("alarm", "z", {})])
    assert await store.kinds() == of_the_store | {"alarm", "queue", "topic"}
    await store.write([Remove("queue", "a"), Remove("topic", "a")])
    assert await store.kinds() == of_the_store | {"alarm", "queue"}


@pytest.mark.parametrize("version", [0, 1, 3])
async def test_a_change_of_another_version_is_refused(store: Store, version: int) -> None:
    await put(store, "a", n=0)
    await put(store, "a", 1, n=1)
    with pytest.raises(Conflict):
        await put(store, "a", version, n=2)
    assert await store.get("queue", "a") == Resource("queue", "a", 2, {"n": 1})


async def test_changing_a_missing_document_is_a_conflict(store: Store) -> None:
    with pytest.raises(Conflict):
        await put(store, "a", 1, n=1)
    assert await store.get("queue", "a") is None


async def test_of_two_who_change_the_same_version_one_is_refused(store: Store) -> None:
    await put(store, "a", n=0)
    answers = await asyncio.gather(put(store, "a", 1, n=1), put(store, "a", 1, n=2), return_exceptions=True)
    assert [type(answer) for answer in answers if answer != 2] == [Conflict]


async def test_of_two_who_make_the_same_one_is_refused(store: Store) -> None:
    answers = await asyncio.gather(put(store, "a", n=1), put(store, "a", n=2), return_exceptions=True)
    assert [type(answer) for answer in answers if answer != 1] == [Conflict]


async def test_a_refused_change_leaves_its_neighbours_alone(store: Store) -> None:
    await put(store, "a")
    answers = await asyncio.gather(*(put(store, key) for key in "bac"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, Conflict, int]
    assert await keys(store, "") == ["a", "b", "c"]


async def test_removing_says_whether_it_was_there(store: Store) -> None:
    await put(store, "a")
    assert await remove(store, "a")
    assert not await remove(store, "a")
    assert await store.get("queue", "a") is None
    assert await put(store, "a") == 1


async def test_kinds_are_kept_apart(store: Store) -> None:
    await store.write([Put("queue", "a", {"n": 1})])
    await store.write([Put("task", "a", {"n": 2})])
    assert await remove(store, "a")
    assert [resource.document for resource in await store.find("task", "")] == [{"n": 2}]
    assert await store.find("queue", "") == []


async def test_keys_are_found_in_byte_order(store: Store) -> None:
    # Byte order of UTF-8: capitals before small letters, and the astral clef after U+FFFD, unlike in UTF-16.
    ordered = ["", "B", "a", "a/", "a/b", "a0", "z", "é", "\ufffd", "\U0001d11e"]
    for key in reversed(ordered):
        await put(store, key)
    assert await keys(store, "") == ordered[1:]  # none is greater than the empty `after` but the empty one
    assert await keys(store, "a") == ["a", "a/", "a/b", "a0"]


async def test_keys_are_found_by_prefix_alone(store: Store) -> None:
    for key in ("a/b", "a/%", "a/_", "a/\U0001d11e", "a", "ab", "b/b", "A/b"):
        await put(store, key)
    assert await keys(store, "a/") == ["a/%", "a/_", "a/b", "a/\U0001d11e"]
    assert await keys(store, "%") == []


async def test_keys_are_found_page_by_page(store: Store) -> None:
    for number in range(7):
        await put(store, f"a/{number}")
    first = await keys(store, "a/", limit=3)
    second = await keys(store, "a/", after=first[-1], limit=3)
    assert (first, second) == (["a/0", "a/1", "a/2"], ["a/3", "a/4", "a/5"])
    assert await keys(store, "a/", after=second[-1], limit=3) == ["a/6"]
    assert await keys(store, "a/", after="a/6", limit=3) == []


async def test_documents_outlive_the_store(lasting_home: Home) -> None:
    store = await lasting_home.open()
    await put(store, "a", n=1)
    await lasting_home.close(store)
    assert await (await lasting_home.open()).get("queue", "a") == Resource("queue", "a", 1, {"n": 1})


async def test_numbers_are_never_given_twice(lasting_home: Home) -> None:
    given: list[int] = []
    for _ in range(3):
        store = await lasting_home.open()
        given += await asyncio.gather(*(store.new_id() for _ in range(20)))
        await lasting_home.close(store)
    assert len(set(given)) == len(given)
    assert min(given) > 0


async def test_keys_with_a_nul_character_find_nothing(store: Store) -> None:
    for key in ("a", "ab", "b"):
        await put(store, key)
    assert await store.get("queue", "a\0b") is None
    assert await keys(store, "a\0") == []
    assert await keys(store, "", after="a\0z") == ["ab", "b"]
    assert not await remove(store, "a\0b")

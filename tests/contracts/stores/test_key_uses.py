"""Last uses of access keys, on every store: each node's are known to all, for one write a key in ten minutes."""

from typing import Final

import pytest

from redrive.access.identities import USER_KEY
from redrive.access.keys import KEY_USE, USE_WRITTEN_MS, AccessKey, Keyring, KeyUse
from redrive.engine.ports import Put, Store
from redrive.runtime.simulated import SimulatedClock

NOW: Final = 1_700_000_000_000
OWN, USERS, ABSENT = "AKIAOWN", "AKIAUSER", "AKIAABSENT"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(NOW)


@pytest.fixture
async def keyring(store: Store, clock: SimulatedClock) -> Keyring:
    keyring = Keyring(store, clock)
    await keyring.add(AccessKey(OWN, "s" * 40, "111111111111", NOW))
    await keyring.add(AccessKey(USERS, "s" * 40, "111111111111", NOW, user="ann"))
    return keyring


async def version(store: Store, key_id: str) -> int:
    """The number of writes of a key's use."""
    stored = await store.get(KEY_USE.name, key_id)
    return 0 if stored is None else stored.version


async def test_a_use_is_known_at_once_here_and_when_written_elsewhere(
    store: Store, keyring: Keyring, clock: SimulatedClock
) -> None:
    elsewhere = Keyring(store, clock).uses
    keyring.uses.note(OWN, "sqs", "eu-west-1")
    keyring.uses.note(USERS, "console")
    uses = {OWN: KeyUse(NOW, "sqs", "eu-west-1"), USERS: KeyUse(NOW, "console", "")}
    assert await keyring.uses.of([OWN, USERS, ABSENT]) == uses
    assert await elsewhere.of([OWN, USERS, ABSENT]) == {}
    await keyring.uses.write()
    assert await elsewhere.of([OWN, USERS, ABSENT]) == uses


async def test_one_use_in_ten_minutes_is_written(
    store: Store, keyring: Keyring, clock: SimulatedClock
) -> None:
    elsewhere = Keyring(store, clock).uses
    for _ in range(3):
        keyring.uses.note(OWN, "sqs", "eu-west-1")
        elsewhere.note(OWN, "sns", "eu-west-1")
        await keyring.uses.write()
        await elsewhere.write()
        clock.take_up(clock.now() + USE_WRITTEN_MS // 3)
    assert await version(store, OWN) == 1
    elsewhere.note(OWN, "sns", "us-east-1")
    await elsewhere.write()
    assert await version(store, OWN) == 2
    assert await Keyring(store, clock).uses.of([OWN]) == {OWN: KeyUse(clock.now(), "sns", "us-east-1")}


async def test_a_node_that_stops_writes_all_it_knows(
    store: Store, keyring: Keyring, clock: SimulatedClock
) -> None:
    keyring.uses.note(OWN, "sqs", "eu-west-1")
    await keyring.uses.write()
    clock.take_up(NOW + 1)
    keyring.uses.note(OWN, "sns", "eu-west-1")
    await keyring.uses.write()
    assert await version(store, OWN) == 1
    await keyring.uses.write(behind_ms=0)
    assert await Keyring(store, clock).uses.of([OWN]) == {OWN: KeyUse(NOW + 1, "sns", "eu-west-1")}
    await keyring.uses.write(behind_ms=0)
    assert await version(store, OWN) == 2


async def test_a_removed_key_leaves_no_use(store: Store, keyring: Keyring) -> None:
    for key_id in (OWN, USERS, ABSENT):
        keyring.uses.note(key_id, "sqs", "eu-west-1")
    await keyring.uses.write()
    assert [await version(store, key_id) for key_id in (OWN, USERS, ABSENT)] == [1, 1, 0]
    assert await keyring.remove(OWN)
    await keyring.uses.write(behind_ms=0)
    assert await version(store, OWN) == 0
    assert await keyring.uses.of([OWN, ABSENT]) == {}
    assert not await keyring.remove(OWN)


async def test_a_key_that_changes_meanwhile_has_its_use_written_the_next_time(
    store: Store, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_each = store.get_each

    async def rename_after(keys: object) -> object:
        stored = await get_each(keys)  # type: ignore[arg-type]  # as it was asked
        renamed = AccessKey(USERS, "s" * 40, "111111111111", NOW, user="bob")
        await store.write([Put(USER_KEY.name, USERS, renamed.to_document(), 1)])
        return stored

    keyring.uses.note(USERS, "sqs", "eu-west-1")
    with monkeypatch.context() as patched:
        patched.setattr(store, "get_each", rename_after)
        await keyring.uses.write()
    assert await version(store, USERS) == 0
    await keyring.uses.write()
    assert await version(store, USERS) == 1

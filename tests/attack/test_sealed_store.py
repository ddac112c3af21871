"""A sealed store: who has the file or the database and not the key learns no secret, and can exchange none."""

import base64
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from redrive.cli.main import main
from redrive.engine.ports import NodeStore, Put, Resource
from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres.store import PostgresStore
from redrive.stores.seal import UNSEALED, KeysUnusable, Seal, read_keys
from redrive.stores.sqlite.store import SqliteStore

SECRET = {"secret": "wJalrXUtnFEMI/K7MDENG"}
FIRST, SECOND = b"1" * 32, b"2" * 32

Open = Callable[[Seal], Awaitable[NodeStore]]


def seal(*keys: bytes) -> Seal:
    return Seal(keys, random.Random(7).randbytes)


@pytest.fixture(params=["sqlite", "postgres"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens one and the same store anew; the one before is closed."""
    opened: list[NodeStore] = []
    database = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""

    async def close() -> None:
        while opened:
            await opened.pop().close()

    async def open_with(seal: Seal) -> NodeStore:
        await close()
        store: NodeStore
        if database:
            store = PostgresStore(database, SystemClock(), "one", seal=seal)
        else:
            store = SqliteStore(tmp_path / "redrive.db", alone=True, seal=seal)
        await store.open()
        opened.append(store)
        return store

    yield open_with
    await close()


async def raw(store: NodeStore) -> str:
    """The document as it is kept, whatever the store makes of it."""
    if isinstance(store, SqliteStore):
        ((content,),) = store.connection.execute(
            "SELECT document FROM resources WHERE kind = 'access_key'"
        ).fetchall()
        return content.decode()
    assert isinstance(store, PostgresStore)
    return str(
        await store.connections.run(
            lambda connection: connection.fetchval("SELECT document FROM resources WHERE kind = 'access_key'")
        )
    )


async def test_a_document_is_sealed_and_read_again(reopen: Open) -> None:
    store = await reopen(seal(FIRST))
    await store.write([Put("access_key", "AKIA", SECRET)])
    assert await store.get("access_key", "AKIA") == Resource("access_key", "AKIA", 1, SECRET)
    assert await store.find("access_key", "") == [Resource("access_key", "AKIA", 1, SECRET)]
    assert SECRET["secret"] not in await raw(store)
    store = await reopen(seal(FIRST))
    assert await store.get("access_key", "AKIA") == Resource("access_key", "AKIA", 1, SECRET)


async def test_documents_written_unsealed_are_sealed_at_the_next_start(reopen: Open) -> None:
    store = await reopen(UNSEALED)
    await store.write([Put("access_key", "AKIA", SECRET)])
    assert SECRET["secret"] in await raw(store)
    store = await reopen(seal(FIRST))
    assert SECRET["secret"] not in await raw(store)
    assert await store.get("access_key", "AKIA") == Resource("access_key", "AKIA", 1, SECRET)


async def test_without_the_key_the_store_says_which_it_wants(reopen: Open) -> None:
    store = await reopen(seal(FIRST))
    await store.write([Put("access_key", "AKIA", SECRET)])
    store = await reopen(UNSEALED)
    with pytest.raises(StoreUnavailable, match=r"access_key AKIA is sealed with the key [0-9a-f]{8}, which"):
        await store.get("access_key", "AKIA")
    with pytest.raises(StoreUnavailable, match="is sealed with the key"):
        await reopen(seal(SECOND))


async def test_a_new_first_key_seals_everything_anew(reopen: Open) -> None:
    store = await reopen(seal(FIRST))
    await store.write([Put("access_key", "AKIA", SECRET)])
    await reopen(seal(SECOND, FIRST))
    store = await reopen(seal(SECOND))
    assert await store.get("access_key", "AKIA") == Resource("access_key", "AKIA", 1, SECRET)


async def test_the_old_text_is_overwritten_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "redrive.db"
    for keys in ((), (FIRST,)):
        store = SqliteStore(path, alone=True, seal=seal(*keys))
        await store.open()
        if not keys:
            await store.write([Put("access_key", f"AKIA{number}", SECRET) for number in range(100)])
        await store.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240 - a few kilobytes
    assert SECRET["secret"].encode() not in kept


@pytest.mark.parametrize("place", [("access_key", "OTHER"), ("other_kind", "AKIA")])
def test_a_sealed_document_cannot_be_put_elsewhere(place: tuple[str, str]) -> None:
    sealed = seal(FIRST).sealed("access_key", "AKIA", SECRET)
    with pytest.raises(StoreUnavailable, match="was changed without its key"):
        seal(FIRST).opened(Resource(*place, 1, sealed))


def test_a_changed_document_is_not_read() -> None:
    sealed = seal(FIRST).sealed("access_key", "AKIA", SECRET)
    content = bytearray(base64.b64decode(sealed["content"]))
    content[-1] ^= 1
    changed = {**sealed, "content": base64.b64encode(content).decode()}
    with pytest.raises(StoreUnavailable, match="was changed"):
        seal(FIRST).opened(Resource("access_key", "AKIA", 1, changed))


def test_the_same_document_is_sealed_differently_each_time() -> None:
    one = seal(FIRST)
    assert one.sealed("access_key", "AKIA", SECRET) != one.sealed("access_key", "AKIA", SECRET)


# ---- the file with the keys --------------------------------------------------------------------------------------------


def test_a_key_file_has_a_key_a_line() -> None:
    lines = ["# of November", base64.b64encode(FIRST).decode(), "", base64.b64encode(SECOND).decode() + " "]
    assert read_keys("\n".join(lines)) == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it has no key"),
        ("# only this\n", "it has no key"),
        (base64.b64encode(b"short").decode(), "line 1 is not 32 bytes in base64"),
        ("\npassword", "line 2 is not 32 bytes in base64"),
    ],
)
def test_a_file_without_keys_is_refused_by_its_line(text: str, complaint: str) -> None:
    with pytest.raises(KeysUnusable, match=complaint):
        read_keys(text)


def test_the_commands_say_in_a_sentence_that_the_file_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "redrive.key"
    file.write_text("secret but no key\n")
    for words in (("keys", "list"), ("serve", "--port", "0")):
        assert (
            main([*words, "--store", f"sqlite:///{tmp_path}/redrive.db", "--store-key-file", str(file)]) == 1
        )
        said = capsys.readouterr()
        assert (
            said.err == f"redrive: store_key_file {file} cannot be used: line 1 is not 32 bytes in base64\n"
        )


def test_keys_are_made_in_a_sealed_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, store = tmp_path / "redrive.key", f"sqlite:///{tmp_path}/redrive.db"
    file.write_bytes(base64.b64encode(FIRST))
    flags = ["--store", store, "--store-key-file", str(file)]
    assert main(["keys", "create", "--account", "111111111111", *flags]) == 0
    secret = capsys.readouterr().out.splitlines()[1].partition("=")[2]
    assert main(["keys", "list", *flags]) == 0
    assert "111111111111  active" in capsys.readouterr().out
    assert secret.encode() not in b"".join(part.read_bytes() for part in tmp_path.iterdir())
    assert main(["keys", "list", "--store", store]) == 1
    assert "is sealed with the key" in capsys.readouterr().err

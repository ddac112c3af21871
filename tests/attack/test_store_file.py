"""The store's file: readable by its owner alone, served by one server by whatever name, its damage told of."""

import os
import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from redrive.engine.ports import Put
from redrive.model.errors import StoreUnavailable
from redrive.stores.sqlite import file_hold
from redrive.stores.sqlite.store import SqliteStore

PAGE = 4096


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def open_to_others(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o644)


async def filled(path: Path, documents: int = 1) -> None:
    store = SqliteStore(path, alone=True)
    await store.open()
    await store.write(
        [Put("access_key", f"AKIA{number:05}", {"secret": "x" * 300}) for number in range(documents)]
    )
    await store.close()


# ---- who can read it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False], ids=["server", "command"])
async def test_only_the_owner_can_read_a_new_store(tmp_path: Path, alone: bool) -> None:
    store = SqliteStore(tmp_path / "redrive.db", alone=alone)
    await store.open()
    await store.write([Put("access_key", "AKIA", {"secret": "x"})])
    assert {"redrive.db", "redrive.db-wal", "redrive.db-shm"} <= modes(tmp_path).keys()
    assert set(modes(tmp_path).values()) == {0o600}
    await store.close()


async def test_a_store_that_others_can_read_is_tightened_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "redrive.db"
    store = SqliteStore(path)
    await store.open()
    open_to_others(tmp_path)
    again = SqliteStore(path)
    await again.open()
    assert set(modes(tmp_path).values()) == {0o600}
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"store.tightened file={path}{part} mode=644" for part in ("", "-wal", "-shm")
    ]
    await again.close()
    await store.close()


async def test_a_store_of_its_owner_alone_is_opened_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path / "redrive.db")
    await filled(tmp_path / "redrive.db", documents=0)
    assert caplog.records == []


# ---- who serves it -----------------------------------------------------------------------------------------------------


def by_link(path: Path) -> Path:
    link = path.with_name("link.db")
    link.symlink_to(path)
    return link


def by_hard_link(path: Path) -> Path:
    link = path.with_name("hard.db")
    link.hardlink_to(path)
    return link


def by_linked_folder(path: Path) -> Path:
    folder = path.parent / "folder"
    folder.symlink_to(path.parent, target_is_directory=True)
    return folder / path.name


def without_its_lock(path: Path) -> Path:
    Path(f"{path}-serving").unlink()
    return path


def by_dots(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


@pytest.mark.parametrize(
    "name", [lambda path: path, by_link, by_hard_link, by_linked_folder, without_its_lock, by_dots]
)
async def test_a_file_has_one_server_by_whatever_name(tmp_path: Path, name: Callable[[Path], Path]) -> None:
    path = tmp_path / "redrive.db"
    first = SqliteStore(path, alone=True)
    await first.open()
    other = name(path)
    with pytest.raises(StoreUnavailable, match=r"another server has .* open"):
        await SqliteStore(other, alone=True).open()
    await first.write([Put("access_key", "AKIA", {"secret": "x"})])
    await first.close()
    second = SqliteStore(other, alone=True)
    await second.open()
    assert await second.get("access_key", "AKIA") is not None
    await second.close()


# ---- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
async def test_a_damaged_file_is_told_of_in_a_sentence(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "redrive.db"
    await filled(path, documents=300)
    rng = random.Random(seed)
    content = bytearray(path.read_bytes())
    page = rng.randrange(len(content) // PAGE)
    content[page * PAGE : (page + 1) * PAGE] = rng.randbytes(PAGE)
    path.write_bytes(content)
    told = await complaint_of(SqliteStore(path, alone=True))
    assert told is None or f"{path} is damaged" in told or f"cannot open {path}: " in told


@pytest.mark.parametrize("lost", ["zeroed", "last", "middle"])
async def test_a_lost_page_is_told_of_when_the_store_is_opened(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "redrive.db"
    await filled(path, documents=2_000)
    content = bytearray(path.read_bytes())
    page = {"zeroed": len(content) // PAGE // 2, "last": len(content) // PAGE - 1, "middle": 20}[lost]
    kept = b"\0" * PAGE if lost == "zeroed" else random.Random(3).randbytes(PAGE)
    content[page * PAGE : (page + 1) * PAGE] = kept
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"redrive.db is damaged .*restore a backup"):
        await SqliteStore(path, alone=True).open()
    assert path.read_bytes() == content


async def test_the_check_of_a_large_store_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "redrive.db"
    await filled(path, documents=5_000)
    monkeypatch.setattr(file_hold, "_CHECK_ROUNDS", 2)
    monkeypatch.setattr(file_hold, "_CHECK_STEPS", 500)
    with caplog.at_level("INFO"):
        store = SqliteStore(path, alone=True)
        await store.open()
    assert "redrive store verify" in caplog.text
    assert len(await store.find("access_key", "")) == 5_000
    await store.close()


async def complaint_of(store: SqliteStore) -> str | None:
    """Return the refusal of a store that cannot be read; None: it can."""
    try:
        await store.open()
    except StoreUnavailable as error:
        return str(error)
    try:
        await store.find("access_key", "")
    except StoreUnavailable as error:
        return str(error)
    finally:
        await store.close()
    return None


async def test_a_document_that_is_cut_off_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "redrive.db"
    await filled(path)
    store = SqliteStore(path)
    await store.open()
    store.connection.execute("UPDATE resources SET document = substr(document, 1, 9)")
    with pytest.raises(StoreUnavailable, match=r"redrive.db is damaged .*restore a backup"):
        await store.get("access_key", "AKIA00000")
    await store.close()


async def test_a_file_that_is_no_store_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "redrive.db"
    path.write_bytes(b"<html>" * 1000)
    with pytest.raises(StoreUnavailable, match=r"cannot open .*redrive.db: file is not a database"):
        await SqliteStore(path, alone=True).open()


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ("CREATE TABLE tracks (name TEXT); INSERT INTO tracks VALUES ('one')", "it has the table tracks"),
        ("CREATE TABLE resources (a TEXT); PRAGMA user_version = 3", "it has the table resources"),
        ("PRAGMA user_version = 99", "its user_version is 99"),
    ],
)
async def test_the_database_of_another_program_is_refused_and_left_as_it_is(
    tmp_path: Path, statements: str, named: str
) -> None:
    path = tmp_path / "music.db"
    other = apsw.Connection(str(path))
    other.execute(statements)
    other.close()
    path.chmod(0o644)
    content = path.read_bytes()
    for alone in (True, False):
        with pytest.raises(StoreUnavailable) as refused:
            await SqliteStore(path, alone=alone).open()
        assert f"music.db is a SQLite database of another program ({named}), and was left" in str(
            refused.value
        )
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o644


async def test_a_folder_that_is_not_there_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot open .*No such file or directory"):
        await SqliteStore(tmp_path / "absent" / "redrive.db", alone=True).open()

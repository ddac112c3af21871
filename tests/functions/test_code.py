"""Archives of functions: kept in pieces, unpacked once, forgotten one by one."""

import hashlib
import io
import random
import stat
import zipfile
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.functions import code
from redrive.functions.code import FunctionCode, LiveFolders, unpack
from redrive.model.errors import NotFound, Refused
from redrive.model.names import ResourceName
from redrive.stores.sqlite.store import SqliteStore

NAME = ResourceName("000000000000", "us-east-1", "orders")
OTHER = NAME._replace(name="orders-2")


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = SqliteStore(None)
    await store.open()
    yield store
    await store.close()


def archive(entries: dict[str, bytes], modes: dict[str, int] | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for path, content in entries.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (modes or {}).get(path, 0) << 16
            opened.writestr(entry, content)
    return packed.getvalue()


def is_there(path: str) -> bool:
    return Path(path).exists()


async def test_an_archive_of_several_pieces_comes_back_whole(store: SqliteStore, tmp_path: Path) -> None:
    kept = FunctionCode(store, tmp_path / "functions", LiveFolders(""))
    content = archive({"a.bin": random.Random(1).randbytes(2_500_000)})
    digest = await kept.keep(NAME, content)
    assert digest == b64encode(hashlib.sha256(content).digest()).decode()
    assert await kept.keep(NAME, content) == digest
    assert await kept.archive(NAME, digest) == content
    folder = await kept.folder(NAME, digest)
    assert is_there(f"{folder}/a.bin")
    assert await kept.folder(NAME, digest) == folder
    await kept.close()
    assert not is_there(folder)


async def test_a_live_folder_that_comes_back_is_run_from_again(store: SqliteStore, tmp_path: Path) -> None:
    live, folder = LiveFolders(str(tmp_path)), tmp_path / "live"
    folder.mkdir()
    kept = FunctionCode(store, tmp_path / "functions", live)
    content = live.archive(str(folder))
    assert content is not None
    digest = await kept.keep(NAME, content)
    folder.rmdir()
    assert await kept.folder(NAME, digest) != str(folder)
    folder.mkdir()
    assert await kept.folder(NAME, digest) == str(folder)


async def test_forgetting_an_archive_removes_no_other(store: SqliteStore, tmp_path: Path) -> None:
    kept = FunctionCode(store, tmp_path / "functions", LiveFolders(""))
    first, second = archive({"a.py": b"1"}), archive({"a.py": b"2"})
    digests = [
        await kept.keep(name, content) for name, content in ((NAME, first), (NAME, second), (OTHER, first))
    ]
    await kept.forget(NAME, [digests[0]])
    with pytest.raises(NotFound):
        await kept.folder(NAME, digests[0])
    assert await kept.archive(NAME, digests[1]) == second
    assert await kept.archive(OTHER, digests[2]) == first


def test_programs_can_be_run_and_links_are_left_out(tmp_path: Path) -> None:
    content = archive(
        {"bootstrap": b"#!/bin/sh\n", "bin/tool": b"x", "plain.txt": b"x", "link": b"/etc/passwd"},
        {"bin/tool": stat.S_IFREG | 0o755, "link": stat.S_IFLNK | 0o777},
    )
    unpack(content, tmp_path / "code")
    modes = {
        path: stat.S_IMODE((tmp_path / "code" / path).stat().st_mode)
        for path in ("bootstrap", "bin/tool", "plain.txt")
    }
    assert modes == {"bootstrap": 0o755, "bin/tool": 0o755, "plain.txt": 0o644}
    assert {path.name for path in (tmp_path / "code").iterdir()} == {"bin", "bootstrap", "plain.txt"}


def test_an_archive_that_grows_too_large_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "UNPACKED_BYTES_MAX", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        unpack(archive({"a": b"x" * 600, "b": b"x" * 600}), tmp_path / "code")
    assert not (tmp_path / "code").exists()


async def test_code_that_cannot_be_unpacked_here_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    """A full disk, say, or an archive that an earlier version took: a function's failure, and no traceback."""
    kept = FunctionCode(store, tmp_path / "functions", LiveFolders(""))
    digest = await kept.keep(NAME, archive({"a": b"x", "a/b": b"x"}))
    with pytest.raises(Refused, match="the code cannot be unpacked"):
        await kept.folder(NAME, digest)


async def test_a_function_s_code_is_closed_to_other_functions(store: SqliteStore, tmp_path: Path) -> None:
    kept = FunctionCode(store, tmp_path / "functions", LiveFolders(""))
    content = archive({"a.py": b"1"})
    folders = {await kept.folder(name, await kept.keep(name, content)) for name in (NAME, OTHER)}
    assert len(folders) == 2
    layers = await kept.layers(NAME, [(OTHER, await kept.keep(OTHER, content))])
    homes = {Path(folder).parent for folder in (*folders, layers)}
    assert len(homes) == 2
    assert {stat.S_IMODE(home.stat().st_mode) for home in homes} == {0o700}

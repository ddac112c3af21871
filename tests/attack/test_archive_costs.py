"""Archives of functions' code: what reading a directory of many entries costs, and where entries may lead."""

import asyncio
import io
import struct
import zipfile
from unittest.mock import create_autospec

import pytest

from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.functions.archives import Archives
from redrive.aws.wire.errors import AwsError
from tests.attack.test_filter_costs import TIMES_MAX, times_counting

ENTRY, END = b"PK\x01\x02", b"PK\x05\x06"


def archive_with(name: str = "a", count: int = 1) -> bytes:
    """An archive whose directory names one file so many times."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(name, "")
    raw = written.getvalue()
    start = raw.index(ENTRY)
    directory = raw[start : raw.index(END)] * count
    said = min(count, 0xFFFF)
    return raw[:start] + directory + struct.pack("<4s4H2LH", END, 0, 0, said, said, len(directory), start, 0)


def accepted(archive: bytes) -> bytes:
    """The archive of a request, as the service reads it; such a request fetches no object."""
    archives = Archives(create_autospec(InnerCalls), lambda _: None)
    return asyncio.run(archives.read(create_autospec(Call), {"ZipFile": archive})).content


def test_a_directory_without_end_is_not_read() -> None:
    """250,000 entries in 12 MB took a second of the event loop."""
    archive = archive_with(count=250_000)

    def read() -> None:
        with pytest.raises(AwsError, match="Unzipped size must be smaller"):
            accepted(archive)

    assert times_counting(read) < TIMES_MAX / 4


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/etc/cron.d/a", "..", "a\\..\\b", "./../a", "a/..", "//a"]
)
def test_an_entry_outside_is_refused(name: str) -> None:
    with pytest.raises(AwsError, match="Could not unzip"):
        accepted(archive_with(name))


def of(*entries: tuple[str, bytes]) -> bytes:
    """An archive of these files, in this order; a name that ends in a slash is a folder."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return written.getvalue()


def _with_size(archive: bytes, size: int) -> bytes:
    """The archive with another size of its first file in its directory."""
    at = archive.index(ENTRY) + 24
    return archive[:at] + struct.pack("<I", size) + archive[at + 4 :]


@pytest.mark.parametrize(
    "archive",
    [
        of(("n" * 300, b"")),
        of(("é" * 200, b"")),
        of(("/".join(["folder"] * 500), b"")),
        of(("a", b"x"), ("a/b", b"x")),
        of(("a/b", b"x"), ("a", b"x")),
        of(("a", b"x"), ("a/", b"")),
        of(("a/b/c", b"x"), ("a/b", b"x")),
        _with_size(of(("a", b"x" * 100)), 50),
        _with_size(of(("a", b"x" * 100)), 200),
        of(("a", b"needle")).replace(b"needle", b"noodle", 1),
    ],
    ids=[
        *("a name of 300 bytes", "a name of 400 bytes", "a path of 3,499 bytes", "a file, then in it"),
        *("a folder, then a file", "a file, then a folder", "deep", "a size too small", "a size too large"),
        "another content",
    ],
)
def test_an_archive_that_cannot_be_unpacked_is_refused_at_once(archive: bytes) -> None:
    """Each invocation of such a function was an InternalFailure."""
    with pytest.raises(AwsError, match="Could not unzip"):
        accepted(archive)


def test_files_and_links_that_are_left_out_take_no_place() -> None:
    link = zipfile.ZipInfo("a")
    link.external_attr = 0o120777 << 16
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(link, "/etc")
        archive.writestr("a/b", "x")
        archive.writestr("a/c/", "")
        archive.writestr("a/c/d", "x")
    assert accepted(written.getvalue()) == written.getvalue()


def test_an_archive_is_taken() -> None:
    archive = archive_with("folder/function.py")
    assert accepted(archive) == archive

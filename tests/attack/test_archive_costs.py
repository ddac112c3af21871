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


def test_an_archive_is_taken() -> None:
    archive = archive_with("folder/function.py")
    assert accepted(archive) == archive

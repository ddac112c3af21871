"""The AWS CLI's commands for files, unmodified: `aws s3 mb`, `cp`, `ls`, `sync`, `mv`, `rm`, `rb`, `presign`."""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.services.clients import AWS
from tests.services.server import Server

Aws = Callable[..., str]
LARGE = bytes(range(256)) * (
    9 * 1024 * 1024 // 256
)  # above 8 MiB the CLI uploads in parts and reads in ranges


@pytest.fixture
def aws(server_on_sqlite: Server, tmp_path: Path) -> Aws:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "000000000000",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server_on_sqlite.url,
        "AWS_MAX_ATTEMPTS": "1",
    }

    def call(*arguments: str) -> str:
        done = AWS.run(["s3", *arguments], environment, tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_files_go_there_and_back(aws: Aws, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.json").write_text("{}")
    (folder / "large.bin").write_bytes(LARGE)
    assert aws("mb", "s3://garage") == "make_bucket: garage\n"
    assert "upload" in aws("cp", "folder/large.bin", "s3://garage/one/large.bin", "--no-progress")
    aws("cp", "s3://garage/one/large.bin", "s3://garage/two.bin", "--no-progress")
    aws("cp", "s3://garage/two.bin", "back.bin", "--no-progress")
    assert (tmp_path / "back.bin").read_bytes() == LARGE
    listed = aws("ls", "s3://garage").splitlines()
    assert [line.split()[-1] for line in listed] == ["one/", "two.bin"]
    assert listed[1].split()[2] == str(len(LARGE))
    sync = (
        "sync",
        "folder",
        "s3://garage/synced",
        "--no-progress",
        "--size-only",
    )  # times there are simulated
    assert aws(*sync).count("upload: ") == len(("inner/a.json", "large.bin"))
    assert aws(*sync) == ""
    aws("mv", "s3://garage/synced/inner/a.json", "a.json", "--no-progress")
    assert (tmp_path / "a.json").read_text() == "{}"
    keys = [line.split()[-1] for line in aws("ls", "--recursive", "s3://garage").splitlines()]
    assert keys == ["one/large.bin", "synced/large.bin", "two.bin"]
    url = aws("presign", "s3://garage/two.bin").strip()
    with urlopen(url) as answer:
        assert answer.read() == LARGE
    aws("rm", "--recursive", "s3://garage")
    assert aws("rb", "s3://garage") == "remove_bucket: garage\n"

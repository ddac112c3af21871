import errno
from pathlib import Path

import orjson
import pytest

from redrive.engine.ports import Put, Remove
from redrive.model.errors import StoreUnavailable
from redrive.stores.sqlite import room
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.aws.sqs.client import Sqs, refused
from tests.crash.rounds import limit_files
from tests.services.server import serving

BODY = "x" * 10_000


def test_on_a_full_disk_consumers_make_room_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", directory=tmp_path) as server:
        queue = Sqs(server).queue()
        kept = [queue.send(f"{number} {BODY}")["MessageId"] for number in range(30)]
        limit_files(server, room_bytes=0)
        for _ in range(3):
            with refused("ServiceUnavailable", "Service is unavailable. Please try again.", status=503):
                queue.send(BODY)
        for _ in range(20):  # more than the log had room for
            (message,) = queue.receive(1)
            queue.delete(message)
            kept.remove(message["MessageId"])
        (message,) = queue.receive(1)
        queue.call("change_message_visibility", ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
        assert queue.counts() == (10, 0, 0)
        status, told = server.ask("GET", "/_redrive/health")
        assert (status, orjson.loads(told)["status"]) == (503, "unavailable")
        assert orjson.loads(told)["reason"].startswith(
            "the disk is full: messages can be received and deleted"
        )
        with refused("ServiceUnavailable", status=503):
            Sqs(server).queue()
        log = server.log.read_text()
        assert log.count("store.full file=") == 1
        assert "Traceback" not in log
        limit_files(server, room_bytes=None)
        kept.append(queue.send("room again")["MessageId"])
        assert server.ask("GET", "/_redrive/health")[0] == 200
        server.kill()
        server.start()
        left = [message["MessageId"] for _ in range(2) for message in queue.receive()]
        assert sorted(left) == sorted(kept)


async def test_a_disk_that_is_nearly_full_takes_nothing_in_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "redrive.db"
    store = SqliteStore(path, alone=True)
    await store.open()
    await store.write([Put("kind", "a", {"text": "x"}), Put("kind", "b", {"text": "x"})])
    await store.close()
    assert not (tmp_path / "redrive.db-reserve").exists()

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(room.os, "posix_fallocate", full)
        store = SqliteStore(path, alone=True)
        await store.open()
        for refused_call in (store.write([Put("kind", "c", {"text": "x"})]), store.check()):
            with pytest.raises(StoreUnavailable, match="the disk is full: messages can be received"):
                await refused_call
        await store.write([Put("kind", "a", {"text": "y"}, 1)])
        await store.write([Remove("kind", "b")])
    await store.write([Put("kind", "c", {"text": "x"})])
    await store.check()
    assert [found.key for found in await store.find("kind", "")] == ["a", "c"]
    await store.close()


async def test_deleted_documents_leave_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "redrive.db", alone=True)
    await store.open()
    keys = [str(number) for number in range(60)]
    await store.write([Put("kind", key, {"text": "x" * 100_000}) for key in keys])

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room.os, "posix_fallocate", full)
    await store.write([Put("kind", "large", {"text": "x" * 5_000_000})])  # for which more has to be held
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await store.write([Put("kind", "refused", {"text": "x"})])
    await store.write([Remove("kind", key) for key in keys])
    await store.write([Put("kind", "taken", {"text": "x"})])
    await store.close()

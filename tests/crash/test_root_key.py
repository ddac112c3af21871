"""The root key of KMS: a wrong one refuses, and its exchange loses nothing, through kill -9 in its middle."""

import contextlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from redrive.aws.encryption.data_keys import QueueKey
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.engine.ports import Resource
from redrive.model.errors import StoreUnavailable
from redrive.stores.seal import Seal
from tests.aws.cloudwatch.stage import Stage, stage
from tests.contracts.aws.kms.keys import kms_of, new_key
from tests.contracts.aws.sqs.client import Sqs
from tests.services.server import Server, ServerFailedError, new_server

OLD, NEW = (bytes([number]) * 32 for number in (1, 2))
_KEYS = 6


def _keys(file: Path, *keys: bytes) -> None:
    file.write_text("".join(f"{b64encode(key).decode()}\n" for key in keys))


def test_an_exchange_goes_on_after_a_kill_and_ends_the_old_key(tmp_path: Path) -> None:
    file = tmp_path / "root.key"
    _keys(file, OLD)
    # Functions would log what a kill left of them.
    flags = ("--kms-root-key", str(file), "--functions", "off")
    server = new_server(f"sqlite:///{tmp_path}/redrive.db", *flags, directory=tmp_path)
    server.start()
    try:
        kms = kms_of(server)
        key = new_key(kms)
        encrypted = kms.encrypt(KeyId=key, Plaintext=b"secret")["CiphertextBlob"]
        queue = Sqs(server).queue()
        queue.send("by default")
        for keys in ((NEW, OLD), (NEW,)):
            server.kill()
            _keys(file, *keys)
            server.start()
            assert kms_of(server).decrypt(CiphertextBlob=encrypted)["Plaintext"] == b"secret"
        assert queue.bodies() == ["by default"]
        server.kill()
        _keys(file, OLD)
        _assert_refused(server)
    finally:
        server.kill()


def _assert_refused(server: Server) -> None:
    before = len(server.log.read_text())
    with pytest.raises(ServerFailedError, match="exit status 1"):
        server.start()
    (line,) = server.log.read_text()[before:].strip().splitlines()
    assert "is sealed with the key" in line
    assert line.endswith("which what kms_root_key names does not have")


@pytest.mark.parametrize("writes", range(_KEYS + 1))
async def test_an_exchange_that_stops_after_any_write_is_taken_up(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOT", b64encode(OLD).decode())
    async with stage(kms_root_key="env:ROOT") as at:
        for _ in range(_KEYS):
            await at.call("kms", "CreateKey")
        store, left = at.server.core.store, writes
        write = store.write

        async def dying(*arguments: Any) -> list[int]:
            nonlocal left
            left -= 1
            if left < 0:
                raise StoreUnavailable("killed")
            return await write(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(store, "write", dying)
            with contextlib.suppress(StoreUnavailable):
                await _wrap_anew(at, NEW, OLD)
        await _wrap_anew(at, NEW, OLD)
        await _wrap_anew(at, NEW)
        with pytest.raises(StoreUnavailable, match="does not have"):
            await _wrap_anew(at, OLD)


async def _wrap_anew(at: Stage, *keys: bytes) -> None:
    """Do what a start with these root keys does."""
    core = at.server.core
    root = Seal(keys, core.runtime.rng.randbytes, "the file")
    await QueueKey(core.store, root, core.seal_by, core.runtime).open()
    ring = KeyRing(core.engine.resources.documents, Materials(root, core.runtime), core.runtime)
    await ring.wrap_anew()


async def test_messages_that_the_root_key_itself_wrapped_are_still_opened() -> None:
    async with stage() as at:
        core = at.server.core
        installation = core.secret.key("root key of KMS")
        root = Seal((OLD,), core.runtime.rng.randbytes)
        before = Resource("message", "arn", 1, root.sealed("message", "arn", {"data_key": "k"}))
        both = Seal((OLD, installation), core.runtime.rng.randbytes)
        key = QueueKey(core.store, both, core.seal_by, core.runtime)
        await key.open()
        assert key.opened(before).document == {"data_key": "k"}
        assert key.opened(before._replace(document=key.sealed("message", "arn", {}))).document == {}

"""Receipt handles tell nobody anything, and only this server makes them."""

import base64
import random
import struct
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.secret import InstallationSecret, PurposeSealer, installation_secret
from redrive.aws.sqs.handles import Handles
from redrive.aws.wire.errors import AwsError
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.stores.sqlite.store import SqliteStore
from tests.fuzz.world import World

QUEUE = Queue(7, ResourceName("1" * 12, "us-east-1", "q"))
HANDLES = Handles(InstallationSecret(b"s" * 32))


def delivery(seq: int, token: int, queue_id: int = 7) -> Delivery:
    return Delivery(queue_id, seq, 5, 1, token, 1, 1, 2, b"m" * 16, None, None, None, None, "body")


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**62))
def test_a_handle_is_read_back(seq: int, token: int, claimed_at: int) -> None:
    assert HANDLES.read(HANDLES.write(delivery(seq, token), claimed_at), QUEUE) == (seq, token, claimed_at)


def test_a_handle_is_read_as_often_as_it_comes_back_however_many_were_given() -> None:
    handles = Handles(InstallationSecret(b"s" * 32))
    given_out = [handles.write(delivery(seq, 9), 1) for seq in range(5000)]
    for seq in (0, 4095, 4096, 4999):
        read = [handles.read(given_out[seq], QUEUE) for _ in range(2)]
        assert read == [(seq, 9, 1)] * 2
    with pytest.raises(AwsError):
        handles.read(handles.write(delivery(5, 9, queue_id=8), 1), QUEUE)


def test_a_handle_tells_no_number() -> None:
    """They were queue, sequence and claim in plain: how much all tenants send, for every tenant to see."""
    handles = [HANDLES.write(delivery(1_000_000 + n, 1 << 40), 1_700_000_000_000) for n in range(50)]
    sealed = [base64.urlsafe_b64decode(handle) for handle in handles]
    for n, raw in enumerate(sealed):
        for number in (7, 1_000_000 + n, 1 << 40, 1_700_000_000_000):
            assert struct.pack(">Q", number) not in raw
    assert len({raw[:8] for raw in sealed}) == len({raw[-8:] for raw in sealed}) == 50


@given(st.binary(max_size=80) | st.integers(0, 47))
def test_forged_and_altered_receipt_handles_are_refused(attempt: bytes | int) -> None:
    good = bytearray(base64.urlsafe_b64decode(HANDLES.write(delivery(5, 9), 1)))
    if isinstance(attempt, int):
        good[attempt] ^= 1
        attempt = bytes(good)
    with pytest.raises(AwsError) as refused:
        HANDLES.read(base64.urlsafe_b64encode(attempt).decode(), QUEUE)
    assert refused.value.code == "ReceiptHandleIsInvalid"


@pytest.mark.parametrize(
    "handle",
    [
        HANDLES.write(delivery(5, 9, queue_id=8), 1),
        Handles(InstallationSecret(b"t" * 32)).write(delivery(5, 9), 1),
        PurposeSealer(InstallationSecret(b"s" * 32), "lock tokens").seal(struct.pack(">QQQQ", 7, 5, 9, 1)),
        base64.urlsafe_b64encode(struct.pack(">BQQQQ", 1, 7, 5, 9, 1)).decode(),
        "é",
        "",
        "=",
    ],
    ids=["another queue's", "another installation's", "for another purpose", "in plain", "é", "empty", "="],
)
def test_receipt_handles_of_other_origins_are_refused(handle: str) -> None:
    with pytest.raises(AwsError):
        HANDLES.read(handle, QUEUE)


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = SqliteStore(None)
    await store.open()
    yield store
    await store.close()


async def test_all_nodes_have_one_secret(store: SqliteStore) -> None:
    first = await installation_secret(store, random.Random(1))
    second = await installation_secret(store, random.Random(2))
    assert first.key("a") == second.key("a")
    assert len({first.key("a"), first.key("b"), first.key("a", 64)}) == 3


async def test_handles_of_the_server_are_sealed() -> None:
    world = World()
    await world.open()
    for handle in world.known.values():
        if not handle.startswith("ey"):  # the task's
            assert len(base64.urlsafe_b64decode(handle)) == 48
    await world.close()

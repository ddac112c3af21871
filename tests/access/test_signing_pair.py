"""The installation's key pair: one for all nodes, and the same after a restart."""

import asyncio
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509

from redrive.access.signing_pair import SigningPair, make_pair, signing_pair
from redrive.stores.sqlite.store import SqliteStore

_NOW: Final = 1_767_225_600_000


@pytest.fixture(scope="module")
def pair() -> SigningPair:
    return make_pair(_NOW)


def test_the_certificate_signs_itself_and_is_valid_for_years(pair: SigningPair) -> None:
    certificate = x509.load_pem_x509_certificate(pair.pem)
    certificate.verify_directly_issued_by(certificate)
    assert certificate.not_valid_before_utc.timestamp() * 1000 < _NOW
    assert certificate.not_valid_after_utc.timestamp() * 1000 > _NOW + 9 * 365 * 86_400_000
    assert pair.key.key_size == 2048


def test_a_pair_tells_when_it_was_made(pair: SigningPair) -> None:
    assert pair.made_at == _NOW


def test_a_pair_is_read_as_it_was_written(pair: SigningPair) -> None:
    read = SigningPair.from_document(pair.to_document())
    assert read.key.private_numbers() == pair.key.private_numbers()
    assert read.pem == pair.pem


async def test_a_pair_is_made_once_and_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    made = await signing_pair(store, _NOW)
    found = await signing_pair(store, _NOW + 1)
    await store.close()
    assert found.pem == made.pem
    assert found.key.private_numbers() == made.key.private_numbers()


async def test_two_nodes_that_begin_together_agree() -> None:
    store = SqliteStore(None)
    await store.open()
    one, other = await asyncio.gather(*(signing_pair(store, _NOW) for _ in range(2)))
    await store.close()
    assert one.pem == other.pem

"""kill -9 loses no event and no lock: what was published is there, what was acknowledged stays gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.azure.namespaces import Shop, counts, orders, tokens
from tests.services.server import Server, new_server


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    sqlite = request.param == "sqlite"
    store = f"sqlite:///{tmp_path}/redrive.db" if sqlite else request.getfixturevalue("postgres_database")
    one = new_server(store, "--clock", "simulated", directory=tmp_path)
    one.start()
    try:
        yield one
    finally:
        one.kill()


def test_between_receive_and_acknowledge_nothing_is_lost(shop: Shop) -> None:
    shop.subscribe(receive_lock_duration_in_seconds=60)
    shop.publish(1, 2, 3)
    shop.server.advance(1)  # a kept store's clock goes on from its last advance
    done, held = shop.receive(limit=1), shop.receive(limit=1)
    shop.consumer().acknowledge(lock_tokens=tokens(done))
    shop.server.kill()
    shop.server.start()
    assert orders(shop.receive()) == [3]
    answer = shop.consumer().renew_locks(lock_tokens=[*tokens(done), *tokens(held)])
    assert answer.succeeded_lock_tokens == tokens(held)
    shop.server.advance(61)
    again = shop.receive()
    assert (sorted(orders(again)), counts(again)) == ([2, 3], [2, 2])
    shop.consumer().acknowledge(lock_tokens=tokens(again))
    shop.server.kill()
    shop.server.start()
    shop.server.advance(3600)
    shop.receive_nothing()

"""A check tells whether messages would be kept, before somebody loses patience with refusals."""

from pathlib import Path

import pytest

from redrive.engine.ports import Store
from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres.connecting import connect
from redrive.stores.postgres.store import PostgresStore
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.homes import Home

# A pooler keeps the sessions that a store has left, and a database's setting is for new ones. It must have heard of their
# end (30 s at most) before it gives one to the next client.
END_OTHERS = """
    SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@pytest.fixture
def emptied_database(schema_database: str) -> str:
    """Of a test's own: its sessions are ended, and a setting of it changes."""
    return schema_database


async def test_a_store_that_keeps_messages_passes(store: Store) -> None:
    await store.check()
    await store.check()


async def test_a_closed_store_does_not_pass(lasting_home: Home) -> None:
    store = await lasting_home.open()
    await lasting_home.close(store)
    with pytest.raises(StoreUnavailable):
        await store.check()


async def test_a_database_that_takes_no_writes_does_not_pass(shared_database: str) -> None:
    """As a standby would, or one that an administrator has frozen."""
    store = PostgresStore(shared_database, SystemClock(), "one")
    await store.open()
    await store.check()
    await store.close()
    connection = await connect(shared_database, "test", default_transaction_read_only="off")
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.execute(END_OTHERS)
    frozen = PostgresStore(shared_database, SystemClock(), "two")
    with pytest.raises(StoreUnavailable, match="read-only"):
        await frozen.check()
    await frozen.close()
    await connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    await connection.close()


async def test_a_file_that_cannot_be_written_does_not_pass(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    store.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable, match="readonly"):
        await store.check()
    store.connection.execute("PRAGMA query_only = OFF")
    await store.check()
    await store.close()

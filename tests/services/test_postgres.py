"""The real server that the stores' tests stand on must itself be trustworthy."""

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from tests.services import postgres
from tests.services.postgres import DatabaseMaker, PostgresMissingError, PostgresServer


async def test_each_database_starts_empty_and_is_dropped_afterwards(
    database_maker: DatabaseMaker, postgres_url: str
) -> None:
    with database_maker.database() as first, database_maker.database() as second:
        await _query(first, "CREATE TABLE deliveries (id int)")
        await _query(second, "CREATE TABLE deliveries (id int)")
        names = [url.rpartition("/")[2] for url in (first, second)]
    existing = {name for (name,) in await _query(postgres_url, "SELECT datname FROM pg_database")}
    assert existing.isdisjoint(names)


async def test_a_database_is_dropped_under_an_open_connection(database_maker: DatabaseMaker) -> None:
    with database_maker.database() as url:
        connection = await asyncpg.connect(url)
    with pytest.raises(asyncpg.PostgresConnectionError):
        await connection.execute("SELECT 1")
    connection.terminate()


async def test_an_emptied_database_is_as_new(database_maker: DatabaseMaker) -> None:
    url = database_maker.emptied()
    await _query(url, "INSERT INTO log_sizes VALUES (1, 1)")
    await _query(url, "SELECT nextval('delivery_seq')")
    await _query(url, "ANALYZE log_sizes")
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN; LOCK TABLE deliveries")
    assert database_maker.emptied() == url
    with pytest.raises(asyncpg.PostgresConnectionError):
        await connection.execute("SELECT 1")
    connection.terminate()
    statistics = "SELECT reltuples::integer FROM pg_class WHERE relname = 'log_sizes'"
    assert await _query(url, statistics) == [(-1,)]
    assert await _query(url, "SELECT * FROM log_sizes") == []
    assert await _query(url, "SELECT nextval('delivery_seq')") == [(1,)]


def test_every_process_of_a_run_is_given_the_same_server(postgres_server: PostgresServer) -> None:
    assert postgres.shared_server(postgres_server.directory.parent) == postgres_server


async def test_a_committed_row_outlives_a_crash(durable_postgres: PostgresServer) -> None:
    url = durable_postgres.url()
    await _query(url, "CREATE TABLE deliveries AS SELECT 7 AS id")
    durable_postgres.crash()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncpg.connect(url)
    durable_postgres.start()
    assert await _query(url, "SELECT id FROM deliveries") == [(7,)]
    assert await _query(url, "SHOW fsync") == [("on",)]


def test_servers_of_a_killed_run_are_ended() -> None:
    killed_run = (
        "from tests.services.postgres import new_run_directory, own_server\n"
        "server = own_server(new_run_directory())\n"
        "print(server.directory.parent, server.port)"
    )
    ended = subprocess.run(
        (sys.executable, "-c", killed_run), cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True
    )
    directory, port = ended.stdout.decode().split()
    socket.create_connection(("127.0.0.1", int(port))).close()
    postgres.end_orphaned_runs()
    assert not Path(directory).exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_a_machine_without_postgresql_is_told_what_to_do() -> None:
    with pytest.raises(PostgresMissingError, match="make postgresql"):
        postgres.binary("no-such-program")


async def _query(url: str, statement: str) -> Sequence[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()

"""Ways to a database: several hosts, poolers, encryption with certificates, and a role that may not change the schema."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres import connecting
from redrive.stores.postgres.connecting import connect, describe, each_host
from redrive.stores.postgres.store import PostgresStore
from tests.contracts.stores.authority import Authority, owned
from tests.contracts.stores.bench import Bench, bodies
from tests.contracts.stores.wire import Wire
from tests.services.pgbouncer import Mode
from tests.services.postgres import PostgresServer


async def opened(url: str, node: str = "one") -> PostgresStore:
    store = PostgresStore(url, SystemClock(), node)
    await store.open()
    return store


def of_hosts(url: str, *hosts: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.username}@{','.join(hosts)}").geturl()


def host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


# ---- several hosts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://a@one/db", ["postgresql://a@one/db"]),
        (
            "postgresql://a:p%40@one:1,two:2/db?sslmode=require",
            ["postgresql://a:p%40@one:1/db?sslmode=require", "postgresql://a:p%40@two:2/db?sslmode=require"],
        ),
        ("postgresql://one,[::1]:5/db", ["postgresql://one/db", "postgresql://[::1]:5/db"]),
        ("postgresql:///db?host=/run", ["postgresql:///db?host=/run"]),
    ],
)
def test_each_host_has_a_url_of_its_own(url: str, each: list[str]) -> None:
    assert each_host(url) == each


async def test_a_host_that_is_gone_or_silent_is_passed_over(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_HEAD_START_SECONDS", 0.05)
    async with Wire(postgres_database) as wire:
        wire.silence()
        url = of_hosts(postgres_database, "127.0.0.1:1", host(wire.url), host(postgres_database))
        connection = await asyncio.wait_for(connect(url, "test"), connecting.PATIENCE_SECONDS)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
        wire.cut()


async def test_of_hosts_that_are_all_away_each_is_named() -> None:
    with pytest.raises(
        OSError, match=r"no host answered: 127\.0\.0\.1:1 refused the connection; (\[::1\]:1 refused|OSError)"
    ):
        await connect("postgresql://redrive@127.0.0.1:1,[::1]:1/none", "test")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (socket.gaierror(-3, "Temporary failure in name resolution"), "Temporary failure in name resolution"),
        (
            asyncpg.InvalidPasswordError("password authentication failed\nDETAIL: x"),
            "password authentication failed",
        ),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_of_the_database_is_told_by_its_own_words(error: Exception, text: str) -> None:
    assert describe(error) == text


async def test_a_host_that_turns_a_role_away_is_quoted(direct_database: str) -> None:
    url = of_hosts(direct_database, "127.0.0.1:1", host(direct_database))
    with pytest.raises(asyncpg.InvalidCatalogNameError, match="no_such"):
        await connect(urlsplit(url)._replace(path="/no_such").geturl(), "test")


async def test_a_store_goes_over_to_the_host_that_still_answers(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than any connection takes, also on a busy machine: the first host is the store's until it refuses.
    monkeypatch.setattr(connecting, "_HEAD_START_SECONDS", 60)
    async with Wire(postgres_database) as first, Wire(postgres_database) as second:
        store = await opened(of_hosts(postgres_database, host(first.url), host(second.url)))
        queue = Bench(store, await store.new_id())
        await queue.send("before")
        first.refuse()
        with pytest.raises(StoreUnavailable):
            await queue.send("while it goes")
        await queue.send("after")
        assert bodies(await queue.peek()) == ["before", "after"]
        await store.close()


async def test_a_server_that_became_a_standby_is_left(
    postgres_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = await opened(postgres_database)
    queue = Bench(store, await store.new_id())
    await asyncio.gather(*(queue.peek() for _ in range(4)))
    free = store.connections._free
    assert len(free) > 1
    for connection in free:
        await connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="read-only"):
        await queue.send("to a standby")
    await asyncio.gather(*(queue.send("to its successor") for _ in range(4)))
    told = [record.getMessage().split()[0] for record in caplog.records]
    assert told.count("store.lost") == 1
    assert "store.back:" in told
    await store.close()


async def test_a_server_that_takes_no_writes_is_said_to_be_one(direct_database: str) -> None:
    name = urlsplit(direct_database).path.removeprefix("/")
    connection = await asyncpg.connect(direct_database)
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await connection.close()
    with pytest.raises(StoreUnavailable, match="accepts no writes"):
        await opened(direct_database)


# ---- poolers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_in_another_mode_than_session_mode_is_refused(
    by_pgbouncer: Callable[[Mode], str], mode: Mode
) -> None:
    with pytest.raises(StoreUnavailable, match=f"behind a pooler in {mode} mode.*pool_mode = session"):
        await opened(by_pgbouncer(mode))


async def test_a_pooler_in_session_mode_is_as_good_as_none(
    by_pgbouncer: Callable[[Mode], str], caplog: pytest.LogCaptureFixture
) -> None:
    url = by_pgbouncer("session")
    first, second = await opened(url, "one"), await opened(url, "two")
    queue = Bench(first, await first.new_id())
    heard: asyncio.Queue[int] = asyncio.Queue()
    second.listen(heard.put_nowait, lambda *_: None)
    await queue.send("told")
    assert await asyncio.wait_for(heard.get(), 30) == queue.id
    assert caplog.records == []
    async with first.connections._one() as connection:
        assert await connection.fetchval("SHOW enable_seqscan") == "off"
    await first.close()
    await second.close()


async def test_a_standby_behind_a_pooler_is_found_to_be_promoted(
    postgres_server: PostgresServer, by_small_pool: Callable[[int], str]
) -> None:
    url = by_small_pool(9)
    name = urlsplit(url).path.removeprefix("/")
    administrator = await connect(postgres_server.url(name), "test")
    await administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="accepts no writes"):
        await opened(url)
    await administrator.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await administrator.execute(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await administrator.close()
    store = await opened(url)
    await store.check()
    await store.close()


async def test_a_pool_that_is_too_small_is_told_of_and_is_no_lost_database(
    by_small_pool: Callable[[int], str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(by_small_pool(3))
    assert "store.pool_too_small: the pooler gave 3 of the 5 sessions" in caplog.text
    queue = Bench(store, await store.new_id())
    monkeypatch.setattr(connecting, "PATIENCE_SECONDS", 1)
    answers = await asyncio.gather(*(queue.peek() for _ in range(4)), return_exceptions=True)
    refused = {str(answer) for answer in answers if isinstance(answer, StoreUnavailable)}
    assert refused == {"the pooler gave no session within 1 s"}
    told = [record.getMessage().split(":")[0] for record in caplog.records]
    assert told.count("store.no_session") == 1
    assert "store.lost" not in caplog.text
    assert await queue.peek() == []
    await store.close()


async def test_a_pool_of_a_single_session_is_refused(
    by_small_pool: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_SECONDS", 2)
    with pytest.raises(StoreUnavailable, match=r"gave 1 of the 5 sessions.*raise default_pool_size"):
        await opened(by_small_pool(1))


# ---- encryption --------------------------------------------------------------------------------------------------


@pytest.fixture
def encrypted_postgres(durable_postgres: PostgresServer, tmp_path: Path) -> PostgresServer:
    """A server that speaks TLS alone, to those who bring a certificate of the role's."""
    authority = Authority(tmp_path)
    data = durable_postgres.directory / "data"
    key = authority.issue("localhost", data / "server.pem")
    for file in (key, authority.file):
        owned(data / file.name, file.read_bytes(), data)
    with (data / "postgresql.conf").open("a") as configuration:
        configuration.write(
            f"ssl = on\nssl_ca_file = '{authority.file.name}'\n"
            f"ssl_cert_file = '{key.name}'\nssl_key_file = '{key.name}'\n"
        )
    (data / "pg_hba.conf").write_text("hostssl all redrive 127.0.0.1/32 cert\n")
    authority.issue("redrive", tmp_path / "client.pem")
    authority.issue("somebody", tmp_path / "other.pem")
    durable_postgres.crash()
    durable_postgres.start()
    return durable_postgres


async def test_a_database_is_reached_by_verified_tls_with_a_certificate(
    encrypted_postgres: PostgresServer, tmp_path: Path
) -> None:
    def url(name: str, host: str = "localhost", mode: str = "verify-full") -> str:
        files = f"sslcert={tmp_path}/{name}&sslkey={tmp_path}/{name}&sslrootcert={tmp_path}/authority.pem"
        return f"postgresql://redrive@{host}:{encrypted_postgres.port}/postgres?sslmode={mode}&{files}"

    store = await opened(url("client.pem"))
    async with store.connections._one() as connection:
        assert await connection.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    await store.close()
    with pytest.raises(StoreUnavailable, match="certificate"):
        await opened(url("other.pem"))
    with pytest.raises(StoreUnavailable, match=r"(?i)hostname|ip address mismatch"):
        await opened(url("client.pem", host="127.0.0.1"))
    with pytest.raises(StoreUnavailable, match="no encryption"):
        await opened(url("client.pem", mode="disable"))

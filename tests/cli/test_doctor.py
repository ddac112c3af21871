"""`redrive doctor`: each thing that leaves a server open is found, and nothing is found that does not."""

import asyncio
import json
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import pytest

from redrive.cli import settings as doctor
from redrive.cli.main import main
from redrive.runtime.machine import SystemClock, monotonic
from redrive.settings import Settings
from redrive.settings.hardening import findings
from redrive.stores.postgres import examining as postgres_examining
from redrive.stores.postgres.store import PostgresStore
from tests.services.pgbouncer import Mode

NOW: Final = SystemClock().now
BLOATED: Final = "SELECT 'deliveries_pkey' AS name, 100::bigint << 20 AS bytes"

HARDENED: dict[str, Any] = {
    "auth": "required",
    "host": "10.1.2.3",
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "store": "postgresql://redrive@db.example/redrive?sslmode=verify-full",
    "store_key_file": "store.key",
    "forbid_private_endpoints": True,
    "allow_private_endpoints": "10.1.0.0/16",
    "aws_endpoints": "arn:aws:lambda:us-east-1:000000000000:function:bill=http://127.0.0.1:9000",
    "functions": "on",
    "functions_isolation": "bubblewrap",
    "smtp_host": "mail.example",
    "smtp_starttls": True,
}


def test_a_hardened_server_has_nothing_open() -> None:
    found = list(findings(Settings(**HARDENED)))
    assert [finding for finding in found if finding.open] == []
    assert len(found) > 10


@pytest.mark.parametrize(
    ("check", "changed", "told"),
    [
        ("signatures", {"auth": "off", "host": "127.0.0.1"}, "auth = required"),
        ("test switches", {"allow_reset": True, "clock": "simulated"}, "allow_reset, clock: for tests"),
        ("test switches", {"insecure_test_keys": True}, "insecure_test_keys"),
        ("test switches", {"skip_queue_waits": True}, "skip_queue_waits"),
        ("sealed secrets", {"store_key_file": ""}, "store_key_file encrypts them"),
        ("encryption", {"tls_cert": "", "tls_key": ""}, "unencrypted"),
        ("database", {"store": "postgresql://redrive@db.example/redrive?sslmode=require"}, "verify-full"),
        ("listening", {"host": "0.0.0.0"}, "every network"),
        ("listening", {"host": "::"}, "every network"),
        ("pushes", {"allow_private_endpoints": "0.0.0.0/0"}, "0.0.0.0/0 in allow_private_endpoints"),
        ("pushes", {"allow_private_endpoints": "10.0.0.0/8,169.254.0.0/16"}, "169.254.0.0/16 in allow"),
        ("lent credentials", {"aws_endpoints": "lambda=aws"}, "credentials of lambda"),
        ("lent credentials", {"azure_endpoints": "store=AccountKey=c2VjcmV0"}, "credentials of store"),
        ("functions", {"functions_isolation": "none"}, "bubblewrap"),
        ("mail", {"smtp_starttls": False}, "smtp_starttls = true"),
    ],
)
def test_each_open_door_is_found_with_the_setting_that_closes_it(
    check: str, changed: dict[str, Any], told: str
) -> None:
    found = [each for each in findings(Settings(**(HARDENED | changed))) if each.open]
    assert [finding.check for finding in found] == [check]
    assert told in found[0].open


def test_a_developers_own_server_pushes_anywhere_and_says_so() -> None:
    found = {each.check: each.open for each in findings(Settings())}
    assert "forbid_private_endpoints = true" in found["pushes"]


def test_any_host_is_open_where_nobody_signs() -> None:
    (found,) = [each for each in findings(Settings(allow_hosts="a,*")) if each.check == "hosts"]
    assert "a web page can reach" in found.open
    (found,) = [
        each for each in findings(Settings(allow_hosts="*", auth="required")) if each.check == "hosts"
    ]
    assert not found.open


@pytest.mark.parametrize(
    "store", ["sqlite:///redrive.db", "postgresql:///redrive", "postgresql://127.0.0.1/redrive"]
)
def test_a_store_on_this_machine_needs_no_proof(store: str) -> None:
    (found,) = [each for each in findings(Settings(store=store)) if each.check == "database"]
    assert not found.open


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is open."""
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, 1_000_000))


def checks(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str | None]]:
    status = main(["doctor", "--json", *arguments])
    said = json.loads(capsys.readouterr().out)
    return status, {each["check"]: each["open"] for each in said["checks"]}


@pytest.mark.usefixtures("careful")
def test_files_that_others_can_read_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config, key, store = tmp_path / "redrive.toml", tmp_path / "store.key", tmp_path / "redrive.db"
    config.write_text(f'auth = "required"\nforbid_private_endpoints = true\nstore_key_file = "{key}"\n')
    for file in (config, key, store):
        file.touch()
        file.chmod(0o600)
    flags = ("--config", str(config), "--store", f"sqlite:///{store}")
    assert checks(capsys, *flags)[0] == 0
    key.chmod(0o640)
    store.chmod(0o604)
    status, found = checks(capsys, *flags)
    assert (status, found["files"]) == (1, f"others can read {store} (604), {key} (640); chmod 600")


@pytest.mark.usefixtures("careful")
def test_a_settings_file_is_secret_where_it_holds_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "redrive.toml"
    config.write_text("port = 5000\n")
    config.chmod(0o644)
    monkeypatch.setenv("REDRIVE_CONFIG", str(config))
    assert checks(capsys)[1]["files"] is None
    config.write_text('smtp_password = "s3cret"\n')
    assert checks(capsys)[1]["files"] == f"others can read {config} (644); chmod 600"
    config.write_text('[[keys]]\nid = "ci"\nsecret = "sixteen-characters-or-more"\n')
    assert checks(capsys)[1]["files"] == f"others can read {config} (644); chmod 600"


@pytest.mark.usefixtures("careful")
def test_root_and_few_files_are_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = checks(capsys)[1]
    assert (found["user"], found["open files"]) == (None, None)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, 4096))
    found = checks(capsys)[1]
    assert "root" in (found["user"] or "")
    assert (found["open files"] or "").startswith("4096 are allowed")
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    assert checks(capsys, "--functions", "on", "--functions-isolation", "user")[1]["user"] is None


def test_a_line_a_check_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("OPEN  signatures        anyone who reaches the port")
    assert "ok    test switches" in lines


# ---- the store ---------------------------------------------------------------------------------------------------


def examined(store: str, capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str | None, str | None]]:
    """Each check of a store: what was measured, and what is wrong."""
    main(["doctor", "--json", "--store", store])
    checks = json.loads(capsys.readouterr().out)["store"]
    return {check["check"]: (check["fact"], check["wrong"]) for check in checks}


def wrong(found: dict[str, tuple[str | None, str | None]]) -> dict[str, str]:
    return {check: complaint for check, (_, complaint) in found.items() if complaint}


async def make(url: str) -> None:
    store = PostgresStore(url, SystemClock(), "one")
    await store.open()
    await store.close()


def test_a_store_that_is_fit_has_nothing_wrong(
    tmp_path: Path, postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = examined(f"sqlite:///{tmp_path}/redrive.db", capsys)
    assert list(file) == ["store", "write-ahead log", "disk", "fsync"]
    assert wrong(file) == {}
    assert "schema is created at the first start" in (examined(postgres_database, capsys)["store"][0] or "")
    asyncio.run(make(postgres_database))
    database = examined(postgres_database, capsys)
    assert list(database) == [
        *("store", "pooler", "clock", "commit", "database", "durability", "standby"),
        *("write-ahead log", "indexes", "outdated indexes", "vacuum"),
    ]
    assert database["pooler"] == ("none", None)
    assert re.fullmatch(r"schema at step (\d+) of \1", database["store"][0] or "")
    assert wrong(database).keys() == {"durability"}  # the tests' server does without fsync
    main(["doctor", "--store", postgres_database])
    assert (
        "WRONG durability        synchronous_commit = on; fsync, full_page_writes is off"
        in capsys.readouterr().out
    )


def test_a_database_that_is_away_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    found = examined("postgresql://redrive@127.0.0.1:1,127.0.0.1:2/none", capsys)
    assert list(found) == ["store"]
    assert "the database cannot be reached" in wrong(found)["store"]


async def complaints(url: str, *statements: str, now: Callable[[], int] = NOW) -> dict[str, str]:
    """The complaints about a database in which this was done."""
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    found = {
        each.check: each.wrong async for each in postgres_examining.examine(url, now, monotonic) if each.wrong
    }
    await connection.close()
    return found


async def test_each_trouble_of_a_database_is_told(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(postgres_database)
    name = urlsplit(postgres_database).path.removeprefix("/")
    apart = await complaints(postgres_database, now=lambda: SystemClock().now() - 3000)
    assert "synchronise the clocks with NTP" in apart["clock"]
    assert (
        "a newer version"
        in (await complaints(postgres_database, "INSERT INTO schema_steps VALUES (999)"))["store"]
    )
    off = f"ALTER DATABASE {name} SET synchronous_commit = off"
    assert "synchronous_commit is off" in (await complaints(postgres_database, off))["durability"]
    monkeypatch.setattr(postgres_examining, "_TRANSACTION_SECONDS_MAX", -1)
    open_one = await complaints(postgres_database, "BEGIN", "SELECT 1")
    assert "nothing deleted since is cleaned up" in open_one["vacuum"]
    several = urlsplit(postgres_database)
    host = several.netloc.rpartition("@")[2]
    twice = several._replace(netloc=f"redrive@{host},{host}").geturl()
    assert "nothing waits for a standby" in (await complaints(twice))["standby"]
    left = "CREATE INDEX deliveries_line ON deliveries (queue_id)"
    assert "redrive store upgrade" in (await complaints(postgres_database, left))["outdated indexes"]
    monkeypatch.setattr(postgres_examining, "_BLOATED", BLOATED)
    assert "REINDEX INDEX CONCURRENTLY deliveries_pkey" in (await complaints(postgres_database))["indexes"]


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_in_another_mode_than_session_mode_is_found(
    by_pgbouncer: Callable[[Mode], str], mode: Mode
) -> None:
    complaint = (await complaints_of_way(by_pgbouncer(mode)))["pooler"]
    assert f"{mode} mode" in complaint
    assert "pool_mode = session" in complaint


async def test_a_pooler_in_session_mode_is_fit(by_pgbouncer: Callable[[Mode], str]) -> None:
    assert "pooler" not in await complaints_of_way(by_pgbouncer("session"))


async def test_a_pool_that_is_too_small_is_found(by_small_pool: Callable[[int], str]) -> None:
    assert "gave 3 of the 5 sessions" in (await complaints_of_way(by_small_pool(3)))["pooler"]


async def complaints_of_way(url: str) -> dict[str, str]:
    examining = postgres_examining.examine(url, SystemClock().now, monotonic)
    return {each.check: each.wrong async for each in examining if each.wrong}

import asyncio
import json
from pathlib import Path

import apsw
import pytest

from redrive.cli.main import main
from redrive.engine.ports import Put
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import Bench
from tests.services.citus import CitusCluster


def distribute(url: str, *words: str) -> int:
    return main(["store", "distribute", "--store", url, *words])


def test_a_file_cannot_be_distributed(capsys: pytest.CaptureFixture[str]) -> None:
    assert distribute("sqlite:///redrive.db") == 1
    said = capsys.readouterr()
    assert said.err == (
        "redrive: only a PostgreSQL store can be distributed, and sqlite:///redrive.db is another: name it with --store\n"
    )


def test_a_database_without_the_extension_is_refused(
    postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distribute(postgres_database) == 1
    assert "redrive: the database has no extension citus" in capsys.readouterr().err


def test_distributing_a_store_prints_where_each_table_is(
    citus_cluster: CitusCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with citus_cluster.database() as url:
        assert distribute(url) == 0
        first = capsys.readouterr().out.splitlines()
        assert first[0].startswith("Citus ")
        assert first[1].startswith("deliveries      by queue_id, ")
        assert first[-2] == "resources       a copy on each node"
        assert first[-1].endswith(" has the planner's settings on each node")
        assert distribute(url, "--json") == 0
        document = json.loads(capsys.readouterr().out)
        assert [table["changed"] for table in document["tables"]] == [False] * 6
        assert distribute(url) == 0
        assert capsys.readouterr().out.splitlines() == [
            first[0],
            *(f"{line} (as before)" for line in first[1:-1]),
            first[-1],
        ]


# ---- backup, verify, migrate -------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a store that has a queue with a message, and is not served."""
    file = tmp_path / "redrive.db"

    async def fill() -> None:
        store = SqliteStore(file)
        await store.open()
        await store.write([Put("queue", "orders", {})])
        await Bench(store, await store.new_id()).send("kept")
        await store.close()

    asyncio.run(fill())
    return file


def store(*words: str, status: int = 0) -> None:
    assert main(["store", *words]) == status


def test_a_store_is_backed_up_verified_and_migrated(
    file: Path, postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = file.with_name("copy.db")
    store("backup", str(copy), "--store", f"sqlite:///{file}")
    backed_up = capsys.readouterr().out
    assert "deliveries               1 row " in backed_up
    assert "of deliveries: 1 queue, 0 groups, 0 claims\n" in backed_up
    store("verify", "--store", f"sqlite:///{copy}")
    assert capsys.readouterr().out == backed_up
    store("migrate", "--store", f"sqlite:///{copy}", "--to", postgres_database)
    migrated = capsys.readouterr().out
    assert migrated.startswith(backed_up)
    assert f"do not serve sqlite:///{copy} again" in migrated
    store("verify", "--store", postgres_database, "--json")
    document = json.loads(capsys.readouterr().out)
    assert {table["name"]: table["rows"] for table in document["tables"]}["deliveries"] == 1
    assert document["documents"]["queue"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backup", "copy.db", "--store", "postgresql://db.example/redrive"], "pg_dump"),
        (["verify", "--store", "sqlite://:memory:"], "a store in memory is its server's alone"),
        (["migrate", "--store", "postgresql://a/b", "--to", "postgresql://a/b"], "only a SQLite store"),
        (
            ["migrate", "--store", "sqlite:///a.db", "--to", "sqlite:///b.db"],
            "--to must be the URL of a PostgreSQL",
        ),
        (["verify", "--store", "sqlite:///absent.db"], "there is no store at absent.db"),
    ],
)
def test_a_store_of_the_wrong_kind_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store(*words, status=1)
    assert said in capsys.readouterr().err


def test_a_fault_ends_in_status_one(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE deliveries SET group_id = 'g', place = 0")
    connection.close()
    store("verify", "--store", f"sqlite:///{file}", status=1)
    assert "DAMAGED: 1 message groups have nobody at their head" in capsys.readouterr().out


def test_a_schema_is_made_and_found_up_to_date(
    postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        store("upgrade", "--store", postgres_database)
        assert capsys.readouterr().out == "the schema is up to date\n"
    store("verify", "--store", postgres_database)

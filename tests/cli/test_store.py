import json

import pytest

from redrive.cli.main import main
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

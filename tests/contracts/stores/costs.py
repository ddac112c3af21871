"""A verb's cost to a database: each statement's way to its tables, and how much of them it touched."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw
import apsw.ext
import asyncpg
import pytest

from redrive.stores.postgres import connections
from redrive.stores.sqlite.store import SqliteStore


@dataclass
class Costs:
    """The statements that ran since the last `clear`.

    Attributes:
        ways: How each came to the tables' rows: "deliveries by deliveries_line", "deliveries by reading all of it".
        touched: How much was looked at: in SQLite steps of its virtual machine, in PostgreSQL pages of 8 kB.
    """

    ways: list[str] = field(default_factory=list)
    touched: int = 0

    def clear(self) -> None:
        """Begin anew."""
        self.ways.clear()
        self.touched = 0

    @property
    def readings(self) -> list[str]:
        """The ways that read a whole table."""
        return [way for way in self.ways if way.endswith("reading all of it")]


def of_sqlite(store: SqliteStore) -> Costs:
    """Watch a SQLite store."""
    costs = Costs()
    connection = store.connection

    def ran(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_PROFILE:
            costs.touched += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
            connection.trace_v2(0)
            costs.ways += _sqlite_ways(connection, event["sql"])
            connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ran)

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ran)
    return costs


def _sqlite_ways(connection: apsw.Connection, statement: str) -> Iterator[str]:
    plan = apsw.ext.query_info(connection, statement, explain_query_plan=True).query_plan
    steps = [plan] if plan else []
    derived: set[str] = set()  # what the statement itself makes, by name: no tables
    while steps:
        step = steps.pop(0)
        steps += step.sub or ()
        way, _, _ = step.detail.replace("COVERING ", "").partition(" (")
        match way.split():
            case ["SEARCH", table, "USING", "INDEX", index]:
                yield f"{table} by {index}"
            case ["SEARCH", table, *_]:
                yield f"{table} by {table}_pkey"
            case ["CO-ROUTINE", name]:
                derived.add(name)
            case ["SCAN", name, *_] if name in derived:
                pass
            case ["SCAN", table] | ["SCAN", table, "USING", *_]:
                yield f"{table} by reading all of it"


def of_postgres(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Watch the PostgreSQL stores that are opened from now on."""
    costs = Costs()
    connect = connections.connect

    def ran(_connection: Any, message: Any) -> None:
        _, found, plan = message.message.partition("plan:\n")
        if found:
            costs.touched += _pages(json.loads(plan)["Plan"])
            costs.ways += _postgres_ways(json.loads(plan)["Plan"])

    async def connect_watched(url: str, name: str, **settings: str) -> asyncpg.Connection:
        connection = await connect(url, name, **settings)
        await connection.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;"
            "SET auto_explain.log_buffers = on; SET auto_explain.log_format = json; SET client_min_messages = log"
        )
        connection.add_log_listener(ran)
        return connection

    monkeypatch.setattr(connections, "connect", connect_watched)
    return costs


def _pages(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _postgres_ways(plan: dict[str, Any]) -> Iterator[str]:
    for node in (plan, *plan.get("Plans", ())):
        if node is not plan:
            yield from _postgres_ways(node)
        elif "Index Name" in node:
            yield f"{node['Relation Name']} by {node['Index Name']}"
        elif node["Node Type"] == "Seq Scan":
            yield f"{node['Relation Name']} by reading all of it"

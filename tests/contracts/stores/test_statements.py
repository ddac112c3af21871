"""Every statement of the PostgreSQL store that changes or locks a distributed table says which queue it is about."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pglast.parser import parse_sql_json

from redrive.stores import postgres

DISTRIBUTED: Final = {"deliveries", "deduplication", "claim_attempts", "paces", "attempts"}
VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def statements() -> dict[str, str]:
    """The SQL texts that stand in the store's modules, by where they stand."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(postgres.__path__):
        names = vars(importlib.import_module(f"{postgres.__name__}.{module.name}"))
        for name, text in names.items():
            is_text = isinstance(text, str) and text.lstrip().startswith(VERBS)
            if is_text and "{" not in text and not name.endswith("_INTO"):  # where others begin
                found[f"{module.name}.{name}"] = text
    return found


def nodes(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every node of a syntax tree, with its kind."""
    if isinstance(tree, dict):
        for kind, node in tree.items():
            yield kind, node
            yield from nodes(node)
    elif isinstance(tree, list):
        for one in tree:
            yield from nodes(one)


def tables(node: Any) -> set[str]:
    """The tables that a statement changes, or that stand in its FROM."""
    target = node.get("relation")
    ranges = (
        [target] if target else [one["RangeVar"] for one in node.get("fromClause", ()) if "RangeVar" in one]
    )
    return {one["relname"] for one in ranges}


def names_its_queue(node: Any) -> bool:
    """True if its WHERE compares `queue_id` with a parameter, or with what Citus makes one of."""
    for kind, part in nodes(node.get("whereClause", {})):
        if kind != "A_Expr" or part["name"][0]["String"]["sval"] != "=":
            continue
        columns = [
            one["fields"][-1].get("String", {}).get("sval")
            for k, one in nodes(part["lexpr"])
            if k == "ColumnRef"
        ]
        if columns == ["queue_id"] and any(kind == "ParamRef" for kind, _ in nodes(part["rexpr"])):
            return True
    return False


@pytest.mark.parametrize("where", sorted(statements()))
def test_a_statement_names_the_queue_of_what_it_changes(where: str) -> None:
    tree = json.loads(parse_sql_json(statements()[where]))
    for kind, node in nodes(tree):
        changes = kind in ("UpdateStmt", "DeleteStmt") or (kind == "SelectStmt" and "lockingClause" in node)
        if changes and tables(node) & DISTRIBUTED:
            assert names_its_queue(node), kind
            assert not [1 for kind, part in nodes(node) if kind == "String" and part.get("sval") == "ctid"]


def test_the_statements_are_found() -> None:
    assert {"claiming._CLAIM_ORDINARY", "settling._DELETE", "sweeping._FORGET_KEYS", "rows._HOLD"} <= set(
        statements()
    )


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM deliveries WHERE seq = $1",
        "UPDATE deliveries d SET token = 1 FROM own WHERE d.queue_id = own.queue_id AND d.seq = own.seq",
        "SELECT 1 FROM paces FOR UPDATE",
    ],
)
def test_a_statement_about_no_queue_is_found_out(text: str) -> None:
    _, node = next(
        one
        for one in nodes(json.loads(parse_sql_json(text)))
        if one[0].endswith("Stmt") and one[0] != "RawStmt"
    )
    assert tables(node) & DISTRIBUTED
    assert not names_its_queue(node)

"""A Citus cluster examined: its nodes answer, hold the tables as the store wants them, and commit together."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import asyncpg

from redrive.model.errors import StoreUnavailable
from redrive.stores.examined import Examined
from redrive.stores.postgres.connections import PLANNER
from redrive.stores.postgres.distributing import (
    COPIED,
    DISTRIBUTED,
    NO_PLACE,
    PLACES,
    VERSION,
    WORKERS,
    layouts,
    refuse_others,
)

_RECOVERY_MS_MAX: Final = 5000

# Nodes that no node reaches, not even they themselves: one that is away knows nothing of the others.
_AWAY: Final = (
    "SELECT to_nodename AS host, to_nodeport AS port FROM citus_check_cluster_node_health()"
    " GROUP BY 1, 2 HAVING NOT bool_or(coalesce(result, false)) ORDER BY 1, 2"
)
_SETTINGS: Final = """
    SELECT n.nodename AS host, n.nodeport AS port, r.success, r.result
    FROM run_command_on_all_nodes($$
        SELECT json_build_object('prepared', current_setting('max_prepared_transactions')::integer,
            'connections', current_setting('max_connections')::integer, 'plans', current_setting('plan_cache_mode'))
    $$) AS r JOIN pg_dist_node n USING (nodeid)
"""
_PREPARED_FEW: Final = "(result::json ->> 'prepared')::integer < (result::json ->> 'connections')::integer"
_FEW_PREPARED: Final = f"SELECT host, port FROM ({_SETTINGS}) AS node WHERE {_PREPARED_FEW} ORDER BY 1, 2"
_OTHER_PLANS: Final = (
    f"SELECT host, port FROM ({_SETTINGS}) AS node WHERE result::json ->> 'plans' <> $1 ORDER BY 1, 2"
)
_RECOVERY: Final = (
    "SELECT setting::integer FROM pg_settings WHERE name = 'citus.recover_2pc_interval'"  # in ms
)


async def examine_cluster(connection: asyncpg.Connection) -> AsyncIterator[Examined]:
    """All checks of the cluster whose coordinator the database is on; none where the extension is absent."""
    version = await connection.fetchval(VERSION)
    if version is None:
        return
    workers, _ = await connection.fetchrow(WORKERS)
    yield Examined("cluster", f"Citus {version}, {workers} workers", await _wrong_layout(connection))
    away = _addresses(await connection.fetch(_AWAY))
    refused = f"{away} is unavailable: calls for its queues, and changes of any document, are refused"
    yield Examined("cluster nodes", "", refused if away else "")
    if not away:
        yield await _commits(connection)
        plans = _addresses(await connection.fetch(_OTHER_PLANS, PLANNER["plan_cache_mode"]))
        slow = (
            f"statements of this role read whole queues on {plans}; redrive store distribute with this role"
        )
        yield Examined("cluster planner", "", slow if plans else "")


async def _wrong_layout(connection: asyncpg.Connection) -> str:
    if not await connection.fetchval(PLACES):
        return NO_PLACE
    tables = await layouts(connection)
    if missing := [name for name in (*DISTRIBUTED, *COPIED) if name not in tables]:
        return (
            f"on the coordinator alone: {', '.join(missing)}; stop the servers, and redrive store distribute"
        )
    try:
        refuse_others(tables)
    except StoreUnavailable as error:
        return str(error)
    return ""


async def _commits(connection: asyncpg.Connection) -> Examined:
    """The settings by which transactions over several nodes are committed, or ended where a node was lost meanwhile."""
    few = _addresses(await connection.fetch(_FEW_PREPARED))
    every: int = await connection.fetchval(_RECOVERY)
    wrong = ""
    if few:
        wrong = f"max_prepared_transactions of {few} is less than its max_connections: raise it, and restart"
    elif not 0 < every <= _RECOVERY_MS_MAX:
        wrong = (
            "a node that was lost in a commit has its part of it when the coordinator comes by, up to that much later:"
            " ALTER SYSTEM SET citus.recover_2pc_interval = '1s'"
        )
    return Examined("cluster commits", f"citus.recover_2pc_interval = {every} ms", wrong)


def _addresses(nodes: Sequence[asyncpg.Record]) -> str:
    return ", ".join(f"{node['host']}:{node['port']}" for node in nodes)

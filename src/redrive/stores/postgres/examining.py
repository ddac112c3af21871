"""A PostgreSQL store examined: whether the way to it, its settings and its tables are fit to serve. Nothing is changed.

What only an administrator may see, `GRANT pg_monitor` shows to the servers' role as well.
"""

import statistics
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import asyncpg

from redrive.model.errors import StoreUnavailable
from redrive.stores import steps
from redrive.stores.examined import Examined
from redrive.stores.postgres import migrate, pooling
from redrive.stores.postgres.connecting import connect, describe, each_host
from redrive.stores.postgres.connections import LOST, PLANNER
from redrive.stores.postgres.distributing import (
    COPIED,
    DISTRIBUTED,
    NO_PLACE,
    PLACES,
    VERSION,
    WORKERS,
    layouts,
    refuse_other_layouts,
)
from redrive.stores.postgres.pooling import Pooling

_MB: Final = 1 << 20
_SKEW_MS_MAX: Final = 1000.0
_COMMITS: Final = 9
_COMMIT_MS_MAX: Final = 50.0
_LOG_TIMES_MAX: Final = 4  # of max_wal_size, to which checkpoints keep the log
_SLOT_MB_MAX: Final = 1024
_TRANSACTION_SECONDS_MAX: Final = 600

_NOW: Final = "SELECT extract(epoch FROM clock_timestamp()) * 1000"
_STEPS: Final = "SELECT max(number) FROM schema_steps"
# A commit that waits for the disk, and leaves nothing.
_COMMIT: Final = "SELECT pg_logical_emit_message(true, 'redrive doctor', '')"
_SETTINGS: Final = (
    "SELECT current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,"
    " current_setting('full_page_writes') AS pages, current_setting('synchronous_standby_names') AS standbys,"
    " (SELECT count(*) FROM pg_stat_replication) AS attached, current_setting('server_version') AS version,"
    " pg_database_size(current_database()) AS size"
)
_LOG: Final = "SELECT sum(size), pg_size_bytes(current_setting('max_wal_size')) FROM pg_ls_waldir()"
_SLOTS: Final = (
    "SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS bytes FROM pg_replication_slots"
    " WHERE NOT active AND restart_lsn IS NOT NULL ORDER BY bytes DESC LIMIT 1"
)
# An entry of these indexes takes about 60 bytes. What is deleted leaves room that new entries use, but not what the index
# has grown by while nothing was cleaned up.
_BLOATED: Final = """
    SELECT i.relname AS name, pg_relation_size(i.oid) AS bytes, greatest(i.reltuples, 0) AS entries
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
    WHERE t.relname IN ('deliveries', 'deduplication', 'claim_attempts', 'attempts', 'resources', 'log_events')
        AND t.relnamespace = current_schema()::regnamespace
        AND pg_relation_size(i.oid) > greatest(67108864, 5 * 60 * greatest(i.reltuples, 0))
    ORDER BY bytes DESC LIMIT 3
"""
_DEAD: Final = """
    SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
    WHERE n_dead_tup > greatest(200000, n_live_tup) ORDER BY n_dead_tup DESC LIMIT 1
"""
_OLDEST: Final = """
    SELECT pid, application_name AS name, extract(epoch FROM now() - xact_start)::integer AS seconds
    FROM pg_stat_activity WHERE xact_start IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY xact_start LIMIT 1
"""


async def examine(
    url: str, now: Callable[[], int], monotonic: Callable[[], float]
) -> AsyncIterator[Examined]:
    """All checks of a database; servers may go on using it. `now` is in ms, `monotonic` in seconds."""
    try:
        connection = await connect(url, "redrive doctor")
    except (*LOST, asyncpg.PostgresError) as error:
        yield Examined("store", "", f"the database cannot be reached: {describe(error)}")
        return
    try:
        yield await _schema(connection)
        yield await _pooler(connection, url)
        yield await _clock(connection, now, monotonic)
        yield await _commit_time(connection, monotonic)
        async for each in _durability(connection, several=len(each_host(url)) > 1):
            yield each
        yield await _log(connection)
        async for each in examine_cluster(connection):
            yield each
        async for each in _tables(connection):
            yield each
    except (*LOST, asyncpg.PostgresError) as error:
        yield Examined("store", "", f"the database did not answer all: {describe(error)}")
    finally:
        connection.terminate()


async def _schema(connection: asyncpg.Connection) -> Examined:
    """The schema's version; wrong if a newer Redrive made it."""
    steps_here = len(steps.read("redrive.stores.postgres"))
    try:
        steps_applied = await connection.fetchval(_STEPS) or 0
    except asyncpg.UndefinedTableError:
        return Examined("store", "the schema is created at the first start")
    newer = "a newer version was here; install that one, or restore a backup"
    wrong = newer if steps_applied > steps_here else ""
    return Examined("store", f"schema at step {steps_applied} of {steps_here}", wrong)


async def _pooler(connection: asyncpg.Connection, url: str) -> Examined:
    """The pooler between, if there is one; wrong if its mode, or its sessions, do not do."""

    async def another() -> asyncpg.Connection:
        return await connect(url, "redrive doctor")

    try:
        pooling_mode = await pooling.pooling_of(connection, another)
    except StoreUnavailable as error:
        return Examined("pooler", Pooling.SESSION.value, str(error))
    wrong = pooling_mode.refusal
    if pooling_mode is Pooling.SESSION:
        wrong = await pooling.shortage(another)
    return Examined("pooler", pooling_mode.value, wrong)


async def _clock(
    connection: asyncpg.Connection, now: Callable[[], int], monotonic: Callable[[], float]
) -> Examined:
    """The database's clock against this node's."""
    began, before = monotonic(), now()
    theirs = float(await connection.fetchval(_NOW))
    elapsed_ms = (monotonic() - began) * 1000
    skew = theirs - (before + elapsed_ms / 2)  # they looked about midway
    apart = "delays and leases end that much earlier or later on this node; synchronise the clocks with NTP"
    return Examined("clock", f"{skew:+.0f} ms", apart if abs(skew) > _SKEW_MS_MAX else "")


async def _commit_time(connection: asyncpg.Connection, monotonic: Callable[[], float]) -> Examined:
    """The median time of a commit."""
    took = []
    for _ in range(_COMMITS):
        began = monotonic()
        await connection.execute(_COMMIT)
        took.append((monotonic() - began) * 1000)
    median = statistics.median(took)
    slow = f"each answer waits for a commit; over {_COMMIT_MS_MAX:.0f} ms a disk or a standby is busy or far away"
    return Examined("commit", f"{median:.1f} ms", slow if median > _COMMIT_MS_MAX else "")


async def _durability(connection: asyncpg.Connection, *, several: bool) -> AsyncIterator[Examined]:
    """The settings that decide what survives a crash; `several`: the URL names several hosts."""
    record = await connection.fetchrow(_SETTINGS)
    yield Examined("database", f"PostgreSQL {record['version']}, {record['size'] // _MB} MB")
    off = [name for name, key in (("fsync", "fsync"), ("full_page_writes", "pages")) if record[key] == "off"]
    if record["commit"] == "off":
        off.append("synchronous_commit")
    lost = f"{', '.join(off)} is off: what was acknowledged may be gone after a crash; set it on"
    yield Examined("durability", f"synchronous_commit = {record['commit']}", lost if off else "")
    wrong = ""
    if several and not record["standbys"]:
        wrong = (
            "nothing waits for a standby: what was acknowledged may be missing on the host that takes over;"
            " synchronous_standby_names = 'ANY 1 (*)'"
        )
    elif record["standbys"] and not record["attached"]:
        wrong = f"no standby is there, and commits wait for {record['standbys']}"
    elif record["standbys"] and record["commit"] in ("local", "off"):
        wrong = f"commits wait for no standby while synchronous_commit is {record['commit']}; set it on"
    attached = f"{record['attached']} attached, waited for: {record['standbys'] or 'none'}"
    yield Examined("standby", attached, wrong)


async def _log(connection: asyncpg.Connection) -> Examined:
    """The size of the write-ahead log; wrong if a slot that is unused, or something else, keeps it."""
    slot = await connection.fetchrow(_SLOTS)
    if slot is not None and slot["bytes"] > _SLOT_MB_MAX * _MB:
        slot_text = (
            f"the slot {slot['slot_name']}, which is unused, keeps {int(slot['bytes']) // _MB} MB; drop it"
        )
        return Examined("write-ahead log", "", slot_text)
    try:
        size, usual = await connection.fetchrow(_LOG)
    except asyncpg.InsufficientPrivilegeError:
        return Examined("write-ahead log", "not visible to this role: GRANT pg_monitor")
    warning = "checkpoints do not keep up with it, or it is still needed: by a slot, a standby, an archive that fails"
    return Examined("write-ahead log", f"{size // _MB} MB", warning if size > _LOG_TIMES_MAX * usual else "")


async def _outdated_indexes(connection: asyncpg.Connection) -> Examined:
    """The indexes that only an older node needs."""
    outdated = ", ".join(await migrate.outdated_indexes(connection))
    older = await migrate.older_node(connection)
    if older is not None and outdated:
        return Examined("outdated indexes", f"{outdated}: needed as long as {older} is there")
    wrong = "no node needs them any more, and each write keeps them up to date: redrive store upgrade"
    return Examined("outdated indexes", outdated or "none", wrong if outdated else "")


async def _tables(connection: asyncpg.Connection) -> AsyncIterator[Examined]:
    """The indexes that grew too large, and what keeps rows from being cleaned up."""
    bloated_indexes = await connection.fetch(_BLOATED)
    sizes = ", ".join(f"{row['name']} has {row['bytes'] // _MB} MB" for row in bloated_indexes)
    remedy = "; ".join(f"REINDEX INDEX CONCURRENTLY {row['name']}" for row in bloated_indexes)
    yield Examined("indexes", sizes, remedy and f"five times what their entries need: {remedy}")
    yield await _outdated_indexes(connection)
    dead = await connection.fetchrow(_DEAD)
    oldest = await connection.fetchrow(_OLDEST)
    wrong = ""
    if oldest is not None and oldest["seconds"] > _TRANSACTION_SECONDS_MAX:
        wrong = (
            f"the transaction of {oldest['name'] or 'a session'} (pid {oldest['pid']}) is open for {oldest['seconds']} s,"
            " and nothing deleted since is cleaned up; end it"
        )
    elif dead is not None:
        wrong = (
            f"{dead['name']} has {dead['dead']} dead rows beside {dead['live']}: autovacuum does not keep up,"
            " or is off"
        )
    yield Examined("vacuum", "", wrong)


# A Citus cluster examined: its nodes answer, hold the tables as the store wants them, and commit together.

_RECOVERY_MS_MAX: Final = 5000

# Nodes that no node reaches, not even they themselves: one that is away knows nothing of the others.
_AWAY: Final = (
    "SELECT to_nodename AS host, to_nodeport AS port FROM citus_check_cluster_node_health()"
    " GROUP BY 1, 2 HAVING NOT bool_or(coalesce(result, false)) ORDER BY 1, 2"
)
_NODE_SETTINGS: Final = """
    SELECT n.nodename AS host, n.nodeport AS port, r.success, r.result
    FROM run_command_on_all_nodes($$
        SELECT json_build_object('prepared', current_setting('max_prepared_transactions')::integer,
            'connections', current_setting('max_connections')::integer, 'plans', current_setting('plan_cache_mode'))
    $$) AS r JOIN pg_dist_node n USING (nodeid)
"""
_PREPARED_FEW: Final = "(result::json ->> 'prepared')::integer < (result::json ->> 'connections')::integer"
_FEW_PREPARED: Final = (
    f"SELECT host, port FROM ({_NODE_SETTINGS}) AS node WHERE {_PREPARED_FEW} ORDER BY 1, 2"
)
_OTHER_PLANS: Final = (
    f"SELECT host, port FROM ({_NODE_SETTINGS}) AS node WHERE result::json ->> 'plans' <> $1 ORDER BY 1, 2"
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
    consequence = f"{away} is unavailable: calls for its queues, and changes of any document, are refused"
    yield Examined("cluster nodes", "", consequence if away else "")
    if not away:
        yield await _commits(connection)
        plans = _addresses(await connection.fetch(_OTHER_PLANS, PLANNER["plan_cache_mode"]))
        slow = (
            f"statements of this role read whole queues on {plans}; redrive store distribute with this role"
        )
        yield Examined("cluster planner", "", slow if plans else "")


async def _wrong_layout(connection: asyncpg.Connection) -> str:
    """The fault of the tables' places in the cluster, with its remedy; empty: there is none."""
    if not await connection.fetchval(PLACES):
        return NO_PLACE
    tables = await layouts(connection)
    if missing := [name for name in (*DISTRIBUTED, *COPIED) if name not in tables]:
        return (
            f"on the coordinator alone: {', '.join(missing)}; stop the servers, and redrive store distribute"
        )
    try:
        refuse_other_layouts(tables)
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

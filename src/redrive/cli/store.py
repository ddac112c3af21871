"""`redrive store`: maintenance of a store."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from redrive.cli.settings import add_settings, settings_of
from redrive.cli.terminal import CommandFailed, add_json, many, print_json


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _register_contents(actions)
    distribute = actions.add_parser(
        "distribute",
        help="create the schema, and distribute its tables over a Citus cluster",
        description="Create the schema in a database on the coordinator of a Citus cluster, if it is missing, and"
        " distribute its tables over the nodes. Running it again changes nothing.",
    )
    add_json(distribute)
    add_settings(distribute, frozenset({"store"}))
    distribute.set_defaults(run=_distribute)
    upgrade = actions.add_parser(
        "upgrade",
        help="create or upgrade the schema, for servers without that privilege",
        description="Create the schema of a store, or bring it up to date, for servers whose role is not allowed to."
        " Servers may keep running meanwhile.",
    )
    add_settings(upgrade, frozenset({"store", "store_key_file"}))
    upgrade.set_defaults(run=_upgrade)


def _upgrade(parsed: argparse.Namespace) -> int:
    from redrive.composition.store import upgrade_store  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    settings, _ = settings_of(parsed)
    asyncio.run(upgrade_store(settings))
    print("the schema is up to date")
    return 0


def _distribute(parsed: argparse.Namespace) -> int:
    from redrive.composition.store import distribute_store  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    settings, _ = settings_of(parsed)
    if not settings.store_is_shared:
        raise CommandFailed(
            f"only a PostgreSQL store can be distributed, and {settings.store} is another: name it with --store"
        )
    distribution = asyncio.run(distribute_store(settings))
    if parsed.json:
        print_json(distribution)
    else:
        _show(distribution)
    return 0


def _show(distribution: dict[str, Any]) -> None:
    """Print how the tables are distributed."""
    workers = distribution["workers"]
    print(f"Citus {distribution['version']}: a coordinator and {workers} {many(workers, 'worker')}")
    for table in distribution["tables"]:
        layout = (
            f"by {table['column']}, {table['shards']} shards" if table["column"] else "a copy on each node"
        )
        rows_moved = table["rows_moved"]
        rows = f", {rows_moved} {many(rows_moved, 'row')} moved" if rows_moved else ""
        print(f"{table['name']:15} {layout}{rows}{'' if table['changed'] else ' (as before)'}")
    print(f"{distribution['role']:15} has the planner's settings on each node")


# `redrive store backup`, `verify` and `migrate`: a store copied, read from end to end, and brought to PostgreSQL.

_STORE: Final = frozenset({"store"})


def _register_contents(actions: "argparse._SubParsersAction[Any]") -> None:
    """Add the commands `backup`, `verify` and `migrate`."""
    backup = actions.add_parser(
        "backup",
        help="copy a SQLite store to a new file, while it is served",
        description="Copy a SQLite store to a new file, while it is served, and verify the copy.",
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="the copy; the file must not exist")
    _add_options(backup, _backup)
    verify = actions.add_parser(
        "verify",
        help="read the whole store: count rows, compute digests, find damage",
        description="Read a whole store, which may be in use, and print the number of rows and a digest of each table."
        " Stores with the same contents have the same digests. The exit status is 1 if something is damaged.",
    )
    _add_options(verify, _verify)
    migrate = actions.add_parser(
        "migrate",
        help="fill an empty PostgreSQL database with a SQLite store",
        description="Copy a SQLite store into an empty PostgreSQL database, in one transaction, and compare the digests."
        " Neither may be in use meanwhile; the file stays unchanged.",
    )
    migrate.add_argument("--to", required=True, metavar="URL", help="the database: postgresql://…")
    _add_options(migrate, _migrate)


def _add_options(command: argparse.ArgumentParser, run: Any) -> None:
    add_json(command)
    add_settings(command, _STORE)
    command.set_defaults(run=run)


def _backup(parsed: argparse.Namespace) -> int:
    from redrive.composition.store import back_up_store  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    settings, _ = settings_of(parsed)
    if settings.store_file is None:
        raise CommandFailed(
            "only a SQLite store is backed up by this command; PostgreSQL has its own tools, such as pg_dump"
        )
    return _print_contents(parsed, back_up_store(settings, parsed.file))


def _verify(parsed: argparse.Namespace) -> int:
    from redrive.composition.store import kind_of  # noqa: PLC0415 - as above

    settings, _ = settings_of(parsed)
    if settings.store.endswith(":memory:"):
        raise CommandFailed(
            "a store in memory is its server's alone: it cannot be verified by another process"
        )
    return _print_contents(parsed, asdict(asyncio.run(kind_of(settings).verify())))


def _migrate(parsed: argparse.Namespace) -> int:
    """Copy a SQLite store into a PostgreSQL database."""
    from redrive.composition.store import migrate_store  # noqa: PLC0415 - as above

    settings, _ = settings_of(parsed)
    if settings.store_file is None:
        raise CommandFailed("only a SQLite store can be migrated: name its file with --store sqlite:///PATH")
    if not parsed.to.startswith(("postgresql://", "postgres://")):
        raise CommandFailed("--to must be the URL of a PostgreSQL database: postgresql://…")
    progress = (lambda *_: None) if parsed.json else _show_table
    contents = asyncio.run(migrate_store(settings, parsed.to, progress))
    if parsed.json:
        print_json(contents)
        return 0
    _show_rest(contents)
    print(f"migrated; do not serve {settings.store} again: what it has would be delivered a second time")
    return 0


def _print_contents(parsed: argparse.Namespace, contents: dict[str, Any]) -> int:
    """Print the contents of a store; 1 if something in it is damaged."""
    if parsed.json:
        print_json(contents)
    else:
        for table in contents["tables"]:
            _show_table(table["name"], table["rows"], table["digest"])
        _show_rest(contents)
    return 1 if contents["faults"] else 0


def _show_table(name: str, rows: int, digest: str) -> None:
    print(f"{name:15} {rows:>10} {many(rows, 'row'):4}  {digest}", flush=True)


def _show_rest(contents: dict[str, Any]) -> None:
    """Print the counts of deliveries and documents, and the faults."""
    counts = [(contents[word], word.removesuffix("s")) for word in ("queues", "groups", "claims")]
    print("of deliveries: " + ", ".join(f"{number} {many(number, word)}" for number, word in counts))
    kinds = ", ".join(f"{number} {kind}" for kind, number in contents["documents"].items())
    print(f"of documents: {kinds or 'none'}")
    for fault in contents["faults"]:
        print(f"DAMAGED: {fault}")

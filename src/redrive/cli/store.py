"""`redrive store`: what is done to a store once, by whoever runs it."""

import argparse
import asyncio
from typing import Any

from redrive.cli import contents
from redrive.cli.listing import add_json
from redrive.cli.options import add_settings, settings_of
from redrive.cli.terminal import CommandFailed, many, print_json


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    contents.register(actions)
    distribute = actions.add_parser(
        "distribute",
        help="create the schema, and distribute its tables over a Citus cluster",
        description="Make the schema in a database on a Citus cluster's coordinator if it is absent, and spread its"
        " tables over the nodes. A second time nothing is changed.",
    )
    add_json(distribute)
    add_settings(distribute, frozenset({"store"}))
    distribute.set_defaults(run=_distribute)
    upgrade = actions.add_parser(
        "upgrade",
        help="create or upgrade the schema, for servers without that privilege",
        description="Make the schema of a store, or bring it up to date, for servers whose role may not. They may go on"
        " serving meanwhile.",
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
    if settings.store.startswith("sqlite:"):
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
    workers = distribution["workers"]
    print(f"Citus {distribution['version']}: a coordinator and {workers} {many(workers, 'worker')}")
    for table in distribution["tables"]:
        layout = (
            f"by {table['column']}, {table['shards']} shards" if table["column"] else "a copy on each node"
        )
        moved = table["rows_moved"]
        rows = f", {moved} {many(moved, 'row')} moved" if moved else ""
        print(f"{table['name']:15} {layout}{rows}{'' if table['changed'] else ' (as before)'}")
    print(f"{distribution['role']:15} has the planner's settings on each node")

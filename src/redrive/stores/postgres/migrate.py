"""The schema, step by step: the table `schema_steps` says which of the numbered files were applied."""

from asyncpg import Connection

from redrive.stores import steps

# Nodes that start together wait for each other here: the first applies the steps, the others find them done.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('redrive schema'))"
_RECORD = "CREATE TABLE IF NOT EXISTS schema_steps (number integer PRIMARY KEY)"


async def migrate(connection: Connection) -> None:
    """Apply the steps that this database has not seen: all of them, or none.

    Raises:
        StoreUnavailable: A newer version of Redrive was here.
    """
    known = steps.read("redrive.stores.postgres")
    async with connection.transaction():
        await connection.execute(_LOCK)
        await connection.execute(_RECORD)
        applied = {row["number"] for row in await connection.fetch("SELECT number FROM schema_steps")}
        steps.refuse_newer(max(applied, default=0), len(known))
        for number, statements in enumerate(known, start=1):
            if number not in applied:
                await connection.execute(statements)
                await connection.execute("INSERT INTO schema_steps (number) VALUES ($1)", number)

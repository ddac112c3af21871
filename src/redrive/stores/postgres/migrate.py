"""The schema, step by step: the table `schema_steps` says which of the numbered files were applied."""

from importlib import resources

from asyncpg import Connection

# Nodes that start together wait for each other here: the first applies the steps, the others find them done.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('redrive schema'))"
_RECORD = "CREATE TABLE IF NOT EXISTS schema_steps (number integer PRIMARY KEY)"


async def migrate(connection: Connection) -> None:
    """Apply the steps that this database has not seen: all of them, or none."""
    async with connection.transaction():
        await connection.execute(_LOCK)
        await connection.execute(_RECORD)
        applied = {row["number"] for row in await connection.fetch("SELECT number FROM schema_steps")}
        for number, statements in enumerate(steps(), start=1):
            if number not in applied:
                await connection.execute(statements)
                await connection.execute("INSERT INTO schema_steps (number) VALUES ($1)", number)


def steps() -> list[str]:
    """The statements of every step, in order."""
    folder = resources.files("redrive.stores.postgres") / "migrations"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return [file.read_text() for file in files if file.name.endswith(".sql")]

"""The schema, step by step: `PRAGMA user_version` says how many of the numbered files were applied."""

from importlib import resources

import apsw


def migrate(connection: apsw.Connection) -> None:
    """Apply the steps that this file has not seen, each in one transaction with its record."""
    applied = connection.pragma("user_version")
    for number, statements in enumerate(steps(), start=1):
        if number > applied:
            connection.execute(f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT")


def steps() -> list[str]:
    """The statements of every step, in order."""
    folder = resources.files("redrive.stores.sqlite") / "migrations"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return [file.read_text() for file in files if file.name.endswith(".sql")]

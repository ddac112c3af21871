"""The schema, step by step: `PRAGMA user_version` says how many of the numbered files were applied."""

import apsw

from redrive.stores import steps


def migrate(connection: apsw.Connection) -> None:
    """Apply the steps that this file has not seen, each in one transaction with its record.

    Raises:
        StoreUnavailable: A newer version of Redrive was here.
    """
    applied = connection.pragma("user_version")
    known = steps.read("redrive.stores.sqlite")
    steps.refuse_newer(applied, len(known))
    for number, statements in enumerate(known, start=1):
        if number > applied:
            connection.execute(f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT")

"""Counts what a call costs the disk."""

from redrive.stores.sqlite.store import SqliteStore


class Commits:
    """Counts the transactions of a store that changed something: each would be a wait for the disk."""

    def __init__(self, store: SqliteStore) -> None:
        """Count from now on."""
        self.number = 0
        self._connection = store.connection
        self._changes = self._connection.total_changes()
        self._connection.set_commit_hook(self._count)

    def _count(self) -> bool:
        changes = self._connection.total_changes()
        self.number += changes != self._changes
        self._changes = changes
        return False  # let it be committed

    def taken(self) -> int:
        """Return how many commits there were since the last call."""
        number, self.number = self.number, 0
        return number

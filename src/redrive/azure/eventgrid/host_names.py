"""Topics, domains and namespaces by the hosts that they have in Azure: `{name}.{region}.eventgrid.…`.

A host says neither the Azure subscription nor the group, so the names of all are read together, once, and again only
when one is asked for that is not among them and a document has changed since: hosts that strangers make up cost a
look at a dictionary.
"""

from collections.abc import Awaitable, Callable, Mapping

from redrive.engine.resources import Documents
from redrive.model.names import ResourceName

Names = Mapping[str, ResourceName]


class HostNames:
    """Remembers the resources that hosts begin with."""

    def __init__(self, documents: Documents, read: Callable[[], Awaitable[Names]]) -> None:
        """Remember names.

        Args:
            documents: Tells whether any has changed.
            read: Reads the names of all resources, by the first label of their hosts.
        """
        self._documents = documents
        self._read = read
        self._names: Names = {}
        self._changes = -1

    async def find(self, host: str, exists: Callable[[ResourceName], Awaitable[bool]]) -> ResourceName | None:
        """The resource whose host that is, None where there is none.

        Args:
            host: As it was sent, with the port.
            exists: Tells whether a resource still exists.
        """
        label = host.partition(".")[0].lower()
        known = self._names.get(label)
        if known is not None and await exists(known):
            return known
        changes = self._documents.changes
        if self._changes != changes:
            self._names, self._changes = await self._read(), changes
        return self._names.get(label)

"""The processes that serve the same address on the same machine, as one of them sees them."""

from typing import Final, NamedTuple, Protocol

from typing_extensions import override


class Readiness(NamedTuple):
    """The number of workers that answer, and of those that there should be."""

    ready: int
    target: int


class Siblings(Protocol):
    """The workers beside this one, itself included."""

    async def readiness(self) -> Readiness | None:
        """The number that answers; None for a server that is one process."""
        ...

    async def sum_metrics(self, own: str) -> str:
        """The metrics of all, summed.

        Args:
            own: This process's, as Prometheus reads them: the answer where there is nobody else.
        """
        ...


class NoSiblings(Siblings):
    """A server of one process."""

    @override
    async def readiness(self) -> Readiness | None:
        """See `Siblings.readiness`."""
        return None

    @override
    async def sum_metrics(self, own: str) -> str:
        """See `Siblings.sum_metrics`."""
        return own


ALONE: Final = NoSiblings()

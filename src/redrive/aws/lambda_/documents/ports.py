"""Ports of functions: who keeps their code, and who runs them."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from redrive.model.function import FunctionVersion, Invocation, InvocationResult
from redrive.model.names import ResourceName


class CodeKeeper(Protocol):
    """Keeps the archives of functions."""

    async def keep(self, name: ResourceName, archive: bytes) -> str:
        """Keep an archive of a function, on disk when this returns; its SHA-256 in base64."""
        ...

    async def archive(self, name: ResourceName, digest: str) -> bytes:
        """The archive of that SHA-256; raises NotFound if it is not kept (any more)."""
        ...

    async def folder(self, name: ResourceName, digest: str) -> str:
        """The folder of this node with the unpacked archive; raises NotFound if it is not kept (any more)."""
        ...

    async def stamp(self, folder: str) -> str:
        """A text that changes with what is in the folder of a function's code; empty: nothing there ever changes."""
        ...

    async def layers(self, name: ResourceName, archives: Sequence[tuple[ResourceName, str]]) -> str:
        """The folder of this node with several archives for a function, later ones over earlier ones.

        Raises:
            NotFound: One is not kept (any more).
        """
        ...

    async def forget(self, name: ResourceName, digests: Collection[str]) -> None:
        """Forget a function's archives of these digests."""
        ...


class Runner(Protocol):
    """Runs functions."""

    async def invoke(self, function: FunctionVersion, invocation: Invocation) -> InvocationResult:
        """Run one invocation; raises Throttled if as many are under way as may be."""
        ...

    def begin(
        self, function: FunctionVersion, invocation: Invocation, take: Callable[[InvocationResult], None]
    ) -> bool:
        """The same where that takes no waiting: later `take` is called with the result. False: nothing was begun."""
        ...

    def keep(self, function: FunctionVersion, count: int) -> None:
        """Keep so many environments ready from now on; 0: none beyond those that invocations need."""
        ...

    def readiness(self, function: FunctionVersion) -> tuple[int, str]:
        """The number of environments that are there, and why the last one could not be started; empty: it could."""
        ...

    async def drop(self, name: ResourceName, version: str | None = None, revision: str = "") -> None:
        """End what rests of a function, or of one of its versions, but for one revision; what is busy ends after it."""
        ...

"""A wire between a store and its database that a test can cut, or let fall silent."""

from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from typing_extensions import override

from tests.services.relay import Relay


class Wire(Relay):
    """Passes everything on, in both directions, as long as it is told nothing else."""

    def __init__(self, url: str) -> None:
        self._far_url = urlsplit(url)
        assert self._far_url.hostname, url
        super().__init__(self._far_url.hostname, self._far_url.port or 5432)
        self._is_silent = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The database's URL at this end of the wire."""
        return self._far_url._replace(netloc=f"{self._far_url.username}@127.0.0.1:{self.port}").geturl()

    def silence(self) -> None:
        """From now on the database hears everything and its answers get lost."""
        self._is_silent = True

    def cut(self) -> None:
        """End every connection; new ones are made as before, and heard."""
        self.abort_all()
        self._is_silent = False

    @override
    async def passes(self, *, is_answer: bool) -> bool:
        return not (is_answer and self._is_silent)

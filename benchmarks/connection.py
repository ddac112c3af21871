"""One connection of the bare loops: bytes that arrive go to a parser, whose events the subclass answers."""

import asyncio
from typing import Any

from typing_extensions import override


class Connection(asyncio.Protocol):
    """Feeds a parser of httptools, which the subclass makes of itself."""

    _parser: Any
    _transport: Any

    @override
    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

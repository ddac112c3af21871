"""Endpoints whose libraries few servers need, imported when something is pushed to them."""

import asyncio
from collections.abc import Callable

from redrive.endpoints.kept_connection import SingleFlight
from redrive.engine.ports import Endpoint, PushRequest
from redrive.model.attempt import Attempt


class EndpointOnUse:
    """An endpoint that is imported and made at its first push (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, make: Callable[[], Endpoint]) -> None:
        """Defer it; `make` imports it, in a thread."""
        self._make = make
        self._opening: SingleFlight[None, Endpoint] = SingleFlight(lambda _: True)
        self._endpoint: Endpoint | None = None

    async def push(self, push_request: PushRequest) -> Attempt:
        """See `Endpoint.push`."""
        endpoint = self._endpoint or await self._opening.of(None, self._open)
        return await endpoint.push(push_request)

    async def _open(self) -> Endpoint:
        self._endpoint = await asyncio.to_thread(self._make)
        return self._endpoint

    async def close(self) -> None:
        """See `Endpoint.close`."""
        if self._endpoint is not None:
            await self._endpoint.close()

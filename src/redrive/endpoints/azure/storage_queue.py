"""Queues of Azure's storage accounts: requests put into them as messages."""

import asyncio
import logging
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import ParseError

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpResponse
from azure.storage.queue.aio import QueueServiceClient
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.addresses import SystemResolver
from redrive.endpoints.verdicts import STORAGE_STATUSES, TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest

TTL_HEADER: Final = "ttl-seconds"  # of a request: how long the queue keeps the message; -1 for ever
_TTL_SECONDS: Final = 7 * 24 * 3600  # where a request says nothing; the service's own
_ACCOUNTS_MAX: Final = 1000  # with clients at once
_QUEUE: Final = re.compile(r".*/queueServices/default/queues/(?P<queue>[a-z0-9-]+)", re.IGNORECASE)


class StorageQueueEndpoint(TimedEndpoint):
    """Puts each request into its queue.

    A request's endpoint is the queue's resource id; its body goes as base 64, which is how Event Grid writes and how the
    functions that are triggered by a queue read. Of its headers, `ttl-seconds` is how long the queue keeps it; nothing
    else goes beside a message.

    Args:
        now: Milliseconds, for durations.
        connection_string: Of the storage account of a resource id; None if the settings name none.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(
        self,
        now: Callable[[], int],
        connection_string: Callable[[str], str | None],
        ca_file: Path | None = None,
    ) -> None:
        super().__init__(now)
        self._connection_string = connection_string
        self._ca_file = ca_file
        self._resolver = _Resolver()
        self._session: aiohttp.ClientSession | None = None
        self._account = lru_cache(_ACCOUNTS_MAX)(self._open_account)
        # Two lines for each request at the level that a server usually has.
        logging.getLogger("azure.core.pipeline.policies.http_logging_policy").setLevel(logging.WARNING)

    @override
    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Put a message into the queue; the last answer decides, also if the connection broke behind it."""
        answers: list[Verdict] = []
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                await self._put(push_request, answers.append)
        except (AzureError, aiohttp.ClientError, OSError, ValueError, ParseError) as error:
            return answers[-1] if answers else _of_failure(error)
        return answers[-1]

    async def _put(self, push_request: PushRequest, take: Callable[[Verdict], None]) -> None:
        """Put the message in the queue; `take` is called with the answer, even one that the library cannot read."""
        match = _QUEUE.fullmatch(push_request.endpoint)
        account = self._connection_string(push_request.endpoint)
        if match is None or account is None:
            raise ValueError(
                f"{push_request.endpoint} is not a queue of a storage account that the settings name"
            )
        await (
            self._account(account)
            .get_queue_client(match["queue"].lower())
            .send_message(
                b64encode(push_request.body).decode(),
                time_to_live=int(push_request.headers.get(TTL_HEADER, _TTL_SECONDS)),
                raw_response_hook=lambda response: take(_of_answer(response.http_response)),
            )
        )

    def _open_account(self, connection_string: str) -> QueueServiceClient:
        """A client that asks once, over this endpoint's connections: the schedule asks again."""
        transport = AioHttpTransport(session=self._session or self._open_session(), session_owner=False)
        return QueueServiceClient.from_connection_string(
            connection_string, retry_total=0, transport=transport
        )

    def _open_session(self) -> aiohttp.ClientSession:
        """Open this endpoint's session, which trusts `ca_file` too, and keeps no cookies."""
        trust = ssl.create_default_context()
        if self._ca_file is not None:
            trust.load_verify_locations(self._ca_file)
        connector = aiohttp.TCPConnector(resolver=self._resolver, ssl=trust)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def _of_answer(response: AsyncHttpResponse) -> Verdict:
    text = response.body().decode("utf-8", "replace")
    return verdicts.of_status(response.status_code or 0, text or response.reason or "", STORAGE_STATUSES)


class _Resolver(AbstractResolver):
    """The system's names in aiohttp's form."""

    def __init__(self) -> None:
        self._system = SystemResolver()

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=port,
                family=address_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for address_family, _, protocol, _, address in await self._system.resolve(host, port, family)
        ]

    @override
    async def close(self) -> None:
        self._system.close()


def _of_failure(error: BaseException) -> Verdict:
    """The verdict on an error of the library, by the error that caused it."""
    match error:
        case AzureError(inner_exception=Exception() as cause):
            return _of_failure(cause)
        case aiohttp.ClientConnectorError(os_error=OSError() as cause):
            return verdicts.of_failure(cause)
        case _:
            return verdicts.of_failure(error)

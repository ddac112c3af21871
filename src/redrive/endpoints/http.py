"""Webhooks: requests pushed to http and https URLs."""

import asyncio
import logging
import random
import socket
import ssl
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.addresses import Destination, Network, SystemResolver, is_private, is_within, read_url
from redrive.endpoints.authorization import Authorizer, authorizer_for, read_challenges
from redrive.endpoints.timed import TimedEndpoint
from redrive.endpoints.verdicts import FORBIDDEN, Verdict
from redrive.engine.ports import PushRequest

logger = logging.getLogger(__name__)

_INFLATED: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}

# Under the 60 s after which load balancers drop a resting connection; an endpoint that is quicker is noticed, and a
# push that meets the very moment is repeated on a fresh connection.
_KEEP_ALIVE_SECONDS: Final = 30
_AT_ONCE_BYTES_MAX: Final = 1024 * 1024  # aiohttp writes more in pieces, and warns where it is not let
_URLS_MAX: Final = 10_000
# Without the address: subscribers would learn what names mean inside.
_PRIVATE: Final = (
    "The settings forbid connections to private addresses; allow_private_endpoints opens networks"
)
_AUTHORIZERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """The operator's rules for pushes over HTTP.

    Attributes:
        forbids_private: Private, loopback, link-local and reserved addresses are not connected to. It is looked at
            for each connection, at the address that is connected to: a name that resolves anew cannot dodge it.
        private_networks: Networks that are connected to all the same.
        ca_file: Certificates in PEM that are trusted besides the system's.
        connections_max: Open at once; a push that needs one more waits, within its own time-out.
        connections_per_host_max: The same for one host and port. `connections_max / connections_per_host_max`
            hosts have to hang before anybody else waits.
    """

    forbids_private: bool = False
    private_networks: tuple[Network, ...] = ()
    ca_file: Path | None = None
    connections_max: int = 4096
    connections_per_host_max: int = 128

    def forbids(self, address: str) -> bool:
        """True if no connection may be made to this IP address."""
        return self.forbids_private and is_private(address) and not is_within(address, self.private_networks)


class Answer(NamedTuple):
    """An endpoint's answer.

    Attributes:
        status: Its status.
        text: The beginning of its body, or the reason phrase.
        challenges: WWW-Authenticate headers.
        kept: Headers that the request asked for.
    """

    status: int
    text: str
    challenges: list[str]
    kept: tuple[tuple[str, str], ...]


class Fetched(NamedTuple):
    """An endpoint's answer, whole.

    Attributes:
        status: Its status.
        headers: Names in lower case; several values of one joined by commas.
        body: Its body, decoded of its transfer coding alone.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Dial:
    """The steps a push took for its connection: none when it was given an idle one.

    Attributes:
        opened: It opened a socket.
        forbidden: An address that it was not allowed to open one to.
    """

    opened: bool = False
    forbidden: str | None = None


# The connector asks for a socket within the context of the push that needs it, and nowhere else names that push.
_DIAL: Final[ContextVar[_Dial]] = ContextVar("dial")


class HttpEndpoint(TimedEndpoint):
    """Pushes requests by HTTP.

    An answer is the whole response, or as much of it as the request says; what ends or hangs before that is no answer.
    Time-outs are the event loop's: a real endpoint knows no simulated time.

    Args:
        now: Milliseconds, for durations.
        chance: Makes the nonces of digests.
        policy: What the operator allows and expects.
    """

    def __init__(
        self, now: Callable[[], int], chance: random.Random, policy: HttpPolicy | None = None
    ) -> None:
        super().__init__(now)
        self._chance = chance
        self._policy = policy or HttpPolicy()
        self._resolver = SystemResolver()
        self._session: aiohttp.ClientSession | None = None
        self._authorizers: dict[str, Authorizer] = {}

    @override
    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        answer = await self.ask(push_request)
        if isinstance(answer, Verdict):
            return answer
        return replace(verdicts.of_status(answer.status, answer.text), identifiers=answer.kept)

    async def ask(self, push_request: PushRequest) -> Answer | Verdict:
        """Hand it over; the answer, or what it means that there is none. For kinds of endpoint that read answers."""
        dial = _Dial()
        _DIAL.set(dial)
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                return await self._converse(_read_url(push_request.endpoint), push_request, dial)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if dial.forbidden and not dial.opened:
                logger.info(
                    "endpoint.forbidden url=%s address=%s",
                    _without_secrets(push_request.endpoint),
                    dial.forbidden,
                )
                return FORBIDDEN.verdict(response=_PRIVATE)
            return verdicts.of_failure(error, unusable=FORBIDDEN)

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int, bytes_max: int
    ) -> Fetched | str:
        """Ask for somebody who wants the answer itself; a text says why there is none.

        Args:
            method: The verb.
            url: What is asked.
            headers: All of them.
            body: Of the request.
            timeout_ms: How long it may take.
            bytes_max: The largest body of an answer.

        Raises:
            TimeoutError: It took longer.
        """
        dial = _Dial()
        _DIAL.set(dial)
        session = self._session or self._open()
        content = body if len(body) <= _AT_ONCE_BYTES_MAX else BytesIO(body)
        try:
            async with (
                asyncio.timeout(timeout_ms / 1000),
                session.request(
                    method, _read_url(url).url, data=content, headers=headers, allow_redirects=False
                ) as response,
            ):
                found = await response.content.read(bytes_max + 1)
                while not response.content.at_eof() and len(found) <= bytes_max:
                    found += await response.content.read(bytes_max + 1 - len(found))
                if len(found) > bytes_max:
                    return f"The answer has more than {bytes_max} bytes"
                names = dict.fromkeys(name.lower() for name in response.headers)
                kept = {name: ",".join(response.headers.getall(name)) for name in names}
                return Fetched(response.status, kept, found)
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            forbidden = dial.forbidden and not dial.opened
            return _PRIVATE if forbidden else str(error) or type(error).__name__

    async def _converse(self, destination: Destination, push_request: PushRequest, dial: _Dial) -> Answer:
        """Post; where that is answered by a challenge and the URL has a password, post again.

        SNS sends no password that nobody asked for. Who has asked is answered at once from then on.
        """
        answer = await self._post(
            destination, push_request, self._authorizers.get(push_request.endpoint), dial
        )
        if answer.status != HTTPStatus.UNAUTHORIZED or destination.user is None:
            return answer
        authorizer = authorizer_for(
            read_challenges(answer.challenges),
            destination.user,
            destination.password,
            secure=destination.secure,
            chance=self._chance,
        )
        if authorizer is None:
            return answer
        answer = await self._post(destination, push_request, authorizer, dial)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            self._remember(push_request.endpoint, authorizer)
        return answer

    def _remember(self, endpoint: str, authorizer: Authorizer) -> None:
        if len(self._authorizers) >= _AUTHORIZERS_MAX:
            del self._authorizers[next(iter(self._authorizers))]
        self._authorizers[endpoint] = authorizer

    async def _post(
        self, destination: Destination, push_request: PushRequest, authorizer: Authorizer | None, dial: _Dial
    ) -> Answer:
        """Post; again when a connection that had rested turns out to be closed, which says nothing of the endpoint.

        Each repetition uses up one resting connection, so it ends with a fresh one.
        """
        while True:
            dial.opened = False
            try:
                return await self._post_once(destination, push_request, authorizer)
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if dial.opened:
                    raise

    async def _post_once(
        self, destination: Destination, push_request: PushRequest, authorizer: Authorizer | None
    ) -> Answer:
        headers = {**push_request.headers, "Content-Type": push_request.content_type}
        if authorizer is not None:
            headers["Authorization"] = authorizer.header(push_request.method, destination.url.raw_path_qs)
        session = self._session or self._open()
        body = (
            push_request.body if len(push_request.body) <= _AT_ONCE_BYTES_MAX else BytesIO(push_request.body)
        )
        response = await session.request(
            push_request.method, destination.url, data=body, headers=headers, allow_redirects=False
        )
        try:
            return await _read(response, push_request.headers_kept, push_request.answer_bytes_max)
        finally:
            response.close()  # drops the connection if anything is unread or unsent; else it is back already

    def _open(self) -> aiohttp.ClientSession:
        """Open a session, which takes a running event loop."""
        trust = ssl.create_default_context()
        if self._policy.ca_file is not None:
            trust.load_verify_locations(self._policy.ca_file)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            ssl=trust,
            limit=self._policy.connections_max,
            limit_per_host=self._policy.connections_per_host_max,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            socket_factory=self._open_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # a push has one for everything
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
            auto_decompress=False,  # 4 KiB can become 4 MiB
        )
        return self._session

    def _open_socket(self, place: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = place
        dial = _DIAL.get()
        if self._policy.forbids(str(address[0])):
            dial.forbidden = str(address[0])
            raise PermissionError(_PRIVATE)
        dial.opened = True
        return socket.socket(family, kind, protocol)


def _without_secrets(url: str) -> str:
    """The URL as far as its host, for the log."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


_read_url = lru_cache(_URLS_MAX)(read_url)


async def _read(response: aiohttp.ClientResponse, headers_kept: Sequence[str], bytes_max: int) -> Answer:
    content = response.content
    body = await content.read(bytes_max)
    while not content.at_eof() and len(body) < bytes_max:
        body += await content.read(bytes_max - len(body))
    encoding = response.headers.get("Content-Encoding", "")
    text = _inflated(body, encoding, bytes_max).decode("utf-8", "replace")
    challenges = response.headers.getall("WWW-Authenticate", [])
    kept = tuple((name, response.headers[name]) for name in headers_kept if name in response.headers)
    return Answer(response.status, text or response.reason or "", challenges, kept)


def _inflated(body: bytes, encoding: str, bytes_max: int) -> bytes:
    """The beginning of a compressed body, inflated; a body that cannot be inflated stays as it is."""
    window_bits = _INFLATED.get(encoding.strip().lower())
    if window_bits is None:
        return body
    try:
        return zlib.decompressobj(window_bits).decompress(body, bytes_max)
    except zlib.error:
        return body

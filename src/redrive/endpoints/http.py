"""Webhooks: requests pushed to http and https URLs, by a task or, over a connection that had rested, without one."""

import asyncio
import logging
import random
import ssl
import string
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from typing_extensions import override

from redrive.endpoints.addresses import Destination, Network, is_private, is_within, read_url
from redrive.endpoints.authorization import Authorizer, authorizer_for, read_challenges
from redrive.endpoints.http_connection import (
    HttpConnection,
    UnansweredError,
    WebAnswer,
    WebhookAnswer,
    answer_of,
    text_of,
    values_of,
    verdict_of,
    verdict_of_failure,
)
from redrive.endpoints.http_pool import ForbiddenAddressError, HttpConnections, WebOrigin
from redrive.endpoints.verdicts import FORBIDDEN, TimedEndpoint, Verdict
from redrive.engine.ports import DirectEndpoint, PushRequest
from redrive.model.attempt import Attempt

logger = logging.getLogger(__name__)

_UNMEASURED: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})  # an empty body goes without its length
# RFC 9110; names are looked at together, a line each.
_OF_TOKENS: Final = b"\n!#$%&'*+-.^_`|~" + f"{string.digits}{string.ascii_letters}".encode()
# Where a request ends and what becomes of its connection is for the client alone to say: other accounts' requests follow.
_OURS: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_KEEP_ALIVE: Final = ("Connection", "Keep-Alive")  # which SNS sends, and which changes nothing
_URLS_MAX: Final = 10_000
# Without the address: subscribers would learn what names mean inside.
_PRIVATE: Final = (
    "The settings forbid connections to private addresses; allow_private_endpoints opens networks"
)
_AUTHORIZERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """The operator's rules for pushes over HTTP."""

    # Private, loopback, link-local and reserved addresses are not connected to. It is looked at for each
    # connection, at the address that is connected to: a name that resolves anew cannot dodge it.
    forbids_private: bool = False
    private_networks: tuple[Network, ...] = ()  # Networks that are connected to all the same
    ca_file: Path | None = None  # Certificates in PEM that are trusted besides the system's
    connections_max: int = 4096  # Open at once; a push that needs one more waits, within its own time-out
    # The same for one host and port. `connections_max / connections_per_host_max` hosts have to hang before
    # anybody else waits.
    connections_per_host_max: int = 128

    def forbids(self, address: str) -> bool:
        """True if no connection may be made to this IP address."""
        return self.forbids_private and is_private(address) and not is_within(address, self.private_networks)


class Fetched(NamedTuple):
    """An endpoint's answer, whole."""

    status: int
    headers: Mapping[str, str]  # Names in lower case; several values of one joined by commas
    body: bytes  # Its body, decoded of its transfer coding alone


class HttpEndpoint(TimedEndpoint, DirectEndpoint):
    """Pushes requests by HTTP.

    An answer is the whole response, or as much of it as the request says; what ends or hangs before that is no answer.
    Time-outs are the event loop's: a real endpoint knows no simulated time.

    Args:
        now: Milliseconds, for durations.
        rng: Makes the nonces of digests.
        policy: What the operator allows and expects.
    """

    def __init__(self, now: Callable[[], int], rng: random.Random, policy: HttpPolicy | None = None) -> None:
        super().__init__(now)
        self._rng = rng
        self._policy = policy or HttpPolicy()
        self._connections = HttpConnections(
            self._policy.forbids,
            self._trust,
            self._policy.connections_max,
            self._policy.connections_per_host_max,
        )
        self._authorizers: dict[str, Authorizer] = {}

    @override
    async def close(self) -> None:
        """Let go of connections."""
        await self._connections.close()

    @override
    def begin(self, push_request: PushRequest, take: Callable[[Attempt], None]) -> Callable[[], None] | None:
        """See `DirectEndpoint.begin`; None unless a connection rests and the URL has no password."""
        try:
            destination = _read_url(push_request.endpoint)
            origin, target, host = _request_parts(destination)
            headers = {**push_request.headers, "Content-Type": push_request.content_type}
            head = _head(push_request.method, target, host, headers, len(push_request.body))
        except ValueError:
            return None
        connection = None if destination.user is not None else self._connections.take_resting(origin)
        if connection is None:
            return None
        return DirectPush(
            self._now, self.push, self._connections, origin, connection, push_request, take
        ).begin(head)

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        answer = await self.ask(push_request)
        if isinstance(answer, Verdict):
            return answer
        return verdict_of(answer)

    async def ask(self, push_request: PushRequest) -> WebhookAnswer | Verdict:
        """Send a request; its answer, or the verdict where there is none. For kinds of endpoint that read answers."""
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                return await self._converse(_read_url(push_request.endpoint), push_request)
        except ForbiddenAddressError as error:
            url = _without_secrets(push_request.endpoint)
            logger.info("endpoint.forbidden url=%s address=%s", url, error.address)
            return FORBIDDEN.verdict(response=_PRIVATE)
        except (OSError, ValueError) as error:
            return verdict_of_failure(error)

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int, bytes_max: int
    ) -> Fetched | str:
        """Make a request and return its answer, or a text that says why there is none.

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
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                web_answer = await self._request(_read_url(url), method, headers, body, bytes_max + 1)
        except TimeoutError:
            raise
        except ForbiddenAddressError:
            return _PRIVATE
        except (OSError, ValueError) as error:
            return str(error) or type(error).__name__
        if len(web_answer.body) > bytes_max:
            return f"The answer has more than {bytes_max} bytes"
        names = dict.fromkeys(name for name, _ in web_answer.headers)
        headers_joined = {text_of(name): ",".join(values_of(web_answer, name)) for name in names}
        return Fetched(web_answer.status, headers_joined, web_answer.body)

    async def _converse(self, destination: Destination, push_request: PushRequest) -> WebhookAnswer:
        """Post; where that is answered by a challenge and the URL has a password, post again.

        SNS sends no password that nobody asked for. Who has asked is answered at once from then on.
        """
        answer = await self._post(destination, push_request, self._authorizers.get(push_request.endpoint))
        if answer.status != HTTPStatus.UNAUTHORIZED or destination.user is None:
            return answer
        authorizer = authorizer_for(
            read_challenges(answer.challenges),
            destination.user,
            destination.password,
            secure=destination.secure,
            rng=self._rng,
        )
        if authorizer is None:
            return answer
        answer = await self._post(destination, push_request, authorizer)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            self._remember(push_request.endpoint, authorizer)
        return answer

    def _remember(self, endpoint: str, authorizer: Authorizer) -> None:
        if len(self._authorizers) >= _AUTHORIZERS_MAX:
            del self._authorizers[next(iter(self._authorizers))]
        self._authorizers[endpoint] = authorizer

    async def _post(
        self, destination: Destination, push_request: PushRequest, authorizer: Authorizer | None
    ) -> WebhookAnswer:
        """Make a push's request, with an Authorization header where there is an authorizer."""
        headers = {**push_request.headers, "Content-Type": push_request.content_type}
        if authorizer is not None:
            headers["Authorization"] = authorizer.header(push_request.method, destination.url.raw_path_qs)
        web_answer = await self._request(
            destination, push_request.method, headers, push_request.body, push_request.answer_bytes_max
        )
        return answer_of(web_answer, push_request)

    async def _request(
        self, destination: Destination, method: str, headers: Mapping[str, str], body: bytes, bytes_max: int
    ) -> WebAnswer:
        """Ask; again when a connection that had rested turns out to be closed, which says nothing of the endpoint.

        Each repetition uses up one resting connection, so the last one uses a new connection.
        """
        origin, target, host = _request_parts(destination)
        head = _head(method, target, host, headers, len(body))
        while True:
            connection, is_new = await self._connections.take(origin)
            try:
                return await connection.ask(method, head, body, bytes_max)
            except UnansweredError:
                if is_new:
                    raise
            finally:
                self._connections.give_back(origin, connection)

    def _trust(self) -> ssl.SSLContext:
        trust = ssl.create_default_context()
        if self._policy.ca_file is not None:
            trust.load_verify_locations(self._policy.ca_file)
        return trust


def _without_secrets(url: str) -> str:
    """The URL as far as its host, for the log."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


_read_url = lru_cache(_URLS_MAX)(read_url)


@lru_cache(_URLS_MAX)
def _request_parts(destination: Destination) -> tuple[WebOrigin, str, str]:
    """The origin that a request to a URL goes to, its target, and its Host."""
    url = destination.url
    if url.raw_host is None or url.port is None:
        raise ValueError("An endpoint is an http or https URL with a host")
    return (
        WebOrigin(url.raw_host, url.port, destination.secure),
        url.raw_path_qs,
        url.host_port_subcomponent or "",
    )


def _head(method: str, target: str, host: str, headers: Mapping[str, str], length: int) -> bytes:
    """The head of a request, without those of the headers that are for the client to set.

    Raises:
        ValueError: The method or a header would be something else.
    """
    ours, has_host = _checked_names(method, tuple(headers))
    lines = [f"{method} {target} HTTP/1.1"]
    if not has_host:
        lines.append(f"Host: {host}")
    lines += [
        f"{name}: {value}"
        for name, value in headers.items()
        if name not in ours or (name, value) == _KEEP_ALIVE
    ]
    if length or method not in _UNMEASURED:
        lines.append(f"Content-Length: {length}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise ValueError("A header is one line")
    return f"{head}\r\n\r\n".encode()


@lru_cache(1_024)
def _checked_names(method: str, names: tuple[str, ...]) -> tuple[Sequence[str], bool]:
    """The headers among these that the client sets itself, and whether one of them is Host.

    Raises:
        ValueError: One of them, or the method, is not a token.
    """
    text = "\n".join(("", method, *names, ""))
    has_empty = "\n\n" in text
    if has_empty or text.encode().translate(None, _OF_TOKENS):
        raise ValueError("A method and the name of a header are tokens")
    lowered = [name.lower() for name in names]
    return [name for name, low in zip(names, lowered, strict=True) if low in _OURS], "host" in lowered


class DirectPush:
    """A push over a connection that had rested, without a task.

    Where the other end had closed the connection meanwhile, the request is sent again in the usual way, as it is by
    `HttpEndpoint.push`.
    """

    __slots__ = (
        "_began",
        "_connection",
        "_connections",
        "_now",
        "_origin",
        "_push",
        "_push_request",
        "_second_push",
        "_take",
    )

    def __init__(
        self,
        now: Callable[[], int],
        push: Callable[[PushRequest], Coroutine[Any, Any, Attempt]],
        connections: HttpConnections,
        origin: WebOrigin,
        connection: HttpConnection,
        push_request: PushRequest,
        take: Callable[[Attempt], None],
    ) -> None:
        self._now = now
        self._push = push
        self._connections = connections
        self._origin = origin
        self._connection = connection
        self._push_request = push_request
        self._take = take
        self._began = now()
        self._second_push: asyncio.Task[Attempt] | None = None

    def begin(self, head: bytes) -> Callable[[], None] | None:
        """Send the request; a function that gives it up, or None: the connection has ended."""
        request = self._push_request
        try:
            self._connection.begin(
                request.method,
                head,
                request.body,
                request.answer_bytes_max,
                request.timeout_ms / 1000,
                self._end,
            )
        except UnansweredError:
            self._connections.give_back(self._origin, self._connection)
            return None
        return self._give_up

    def _end(self, outcome: WebAnswer | Exception) -> None:
        """Take the outcome; where the connection turns out to have been closed, push again by another."""
        self._connections.give_back(self._origin, self._connection)
        if isinstance(outcome, UnansweredError):
            self._second_push = asyncio.get_running_loop().create_task(self._push(self._with_time_left()))
            self._second_push.add_done_callback(self._end_second_push)
            return
        if isinstance(outcome, WebAnswer):
            verdict = verdict_of(answer_of(outcome, self._push_request))
        else:
            verdict = verdict_of_failure(outcome)
        self._take(verdict.after(self._now() - self._began))

    def _with_time_left(self) -> PushRequest:
        gone_ms = self._now() - self._began
        return replace(self._push_request, timeout_ms=max(0, self._push_request.timeout_ms - gone_ms))

    def _end_second_push(self, again: asyncio.Task[Attempt]) -> None:
        if not again.cancelled():
            self._take(replace(again.result(), duration_ms=self._now() - self._began))

    def _give_up(self) -> None:
        """Stop waiting for the answer: cancel the second push, or close the connection of the first."""
        if self._second_push is not None:
            self._second_push.remove_done_callback(self._end_second_push)
            self._second_push.cancel()
            return
        self._connection.cancel()
        self._connections.give_back(self._origin, self._connection)

"""The server's one handler: which room a request is for, and how much may be sent there."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.hosted_urls import HostedUrls
from redrive.model.http import Request, Response
from redrive.server.control import Control
from redrive.server.guard import BrowserGuard
from redrive.server.landing import signpost, way_back_page

Answer = Callable[[Request], Awaitable[Response]]

#: Of a request that shows no credential where one is required, and of Redrive's own routes: no more than anybody's.
_LITTLE: Final = 0
_CREDENTIAL_HEADERS: Final = ("authorization", "aeg-sas-key", "aeg-sas-token")
_CREDENTIAL_IN_QUERY: Final = "Signature="  # `X-Amz-Signature`, and `Signature` of S3's older URLs


class Fallback(Protocol):
    """The protocol that takes what no other claims."""

    def answer(self, request: Request) -> Awaitable[Response]:
        """Answer one request."""
        ...

    def body_bytes_max(self, request: Request) -> int:
        """The largest body of a request, by its head alone."""
        ...


class HostedProtocol(Protocol):
    """A protocol whose requests are told by their host, or a path that stands for it, whoever sends them."""

    @property
    def urls(self) -> HostedUrls:
        """The marks of its requests."""
        ...

    def answer(self, request: Request, refusal: Callable[[Request], Response | None]) -> Awaitable[Response]:
        """Answer one request; `refusal` is the guard's, for what the protocol does not open to web pages."""
        ...


class Recognising(Fallback, Protocol):
    """A protocol that knows its own requests when it sees them."""

    def handles(self, request: Request) -> bool:
        """True if a request is of this protocol."""
        ...


class Router:
    """Sends each request where it belongs: control routes by path, everything else to the protocols."""

    def __init__(
        self,
        control: Control,
        paths: Mapping[str, Answer],
        recognising: Sequence[Recognising],
        otherwise: Fallback,
        *,
        needs_credential: bool = False,
        guard: BrowserGuard | None = None,
        hosted: Sequence[HostedProtocol] = (),
        console: str = "",
        services: Sequence[str] = (),
    ) -> None:
        """Route by path.

        Args:
            control: Redrive's own routes.
            paths: Beginnings of paths that one protocol has to itself.
            recognising: Asked in turn about what is left; never about a POST to `/`.
            otherwise: Who takes the rest.
            needs_credential: Whether a request that shows none may only have a small body.
            guard: Refuses what web pages cause, where nobody shows a credential.
            hosted: Come before all others.
            console: The path of the web console; empty: there is none.
            services: Those of AWS that are offered.
        """
        self._control = control
        self._paths = dict(paths)
        self._recognising = tuple(recognising)
        self._otherwise = otherwise
        self._needs_credential = needs_credential
        self._guard = guard
        self._hosted = tuple(hosted)
        self._console = console
        self._services = services

    def answer(self, request: Request) -> Response | Awaitable[Response]:
        """Answer one request."""
        hosted = self._hosted_for(request)
        if hosted is not None:
            return hosted.answer(request, self._refusal)
        if self._guard is not None and (refusal := self._guard.refusal(request)) is not None:
            return refusal
        path = request.path
        if path == "/" and request.method == "POST":  # nearly every call of an AWS SDK
            return self._otherwise.answer(request)
        landing_page = signpost(request, self._console, self._services)
        if landing_page is not None:
            return landing_page
        return self._by_path(request, path)

    def _hosted_for(self, request: Request) -> HostedProtocol | None:
        """The protocol whose host or path a request names; None: none of those that have their own."""
        host, path = request.headers.get("host", ""), request.path
        for protocol in self._hosted:
            urls = protocol.urls
            if urls.label in host or (len(path) > 1 and urls.path.match(path)):
                return protocol
        return None

    def _by_path(self, request: Request, path: str) -> Response | Awaitable[Response]:
        """Answer by the path's beginning, by what recognises the request, for a lost browser, and at last by the rest."""
        for beginning, answer in self._paths.items():
            if path.startswith(beginning):
                return answer(request)
        if self._control.handles(path):
            return self._control.answer(request)
        for protocol in self._recognising:
            if protocol.handles(request):
                return protocol.answer(request)
        way_back = way_back_page(request, self._console)
        if way_back is not None and recognise(request) is None:
            return way_back
        return self._otherwise.answer(request)

    def _refusal(self, request: Request) -> Response | None:
        return None if self._guard is None else self._guard.refusal(request)

    def body_bytes_max(self, request: Request) -> int:
        """The largest body of a request beyond the general bound, by its head alone (`BodyBound`)."""
        if self._needs_credential and not _shows_credential(request):
            return _LITTLE
        hosted = self._hosted_for(request)
        if hosted is not None:
            return hosted.urls.body_bytes_max
        if any(request.path.startswith(each) for each in self._paths) or self._control.handles(request.path):
            return _LITTLE
        for protocol in self._recognising:
            if protocol.handles(request):
                return protocol.body_bytes_max(request)
        return self._otherwise.body_bytes_max(request)


def _shows_credential(request: Request) -> bool:
    return (
        any(name in request.headers for name in _CREDENTIAL_HEADERS) or _CREDENTIAL_IN_QUERY in request.query
    )

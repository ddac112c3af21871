"""The server's one handler: which room a request is for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from redrive.protocols.http import Request, Response
from redrive.server.control import Control
from redrive.server.signposts import signpost

Answer = Callable[[Request], Awaitable[Response]]


class Recognising(Protocol):
    """A protocol that knows its own requests when it sees them."""

    def handles(self, request: Request) -> bool:
        """Whether a request is of this protocol."""
        ...

    def answer(self, request: Request) -> Awaitable[Response]:
        """Answer one request that it handles."""
        ...


class Router:
    """Sends each request where it belongs: control routes by path, everything else to the protocols."""

    def __init__(
        self,
        control: Control,
        paths: Mapping[str, Answer],
        recognising: Sequence[Recognising],
        otherwise: Answer,
    ) -> None:
        """Route by path.

        Args:
            control: Redrive's own routes.
            paths: Beginnings of paths that one protocol has to itself.
            recognising: Asked in turn about what is left; never about the path `/`.
            otherwise: Who takes the rest.
        """
        self._control = control
        self._paths = dict(paths)
        self._recognising = tuple(recognising)
        self._otherwise = otherwise

    def answer(self, request: Request) -> Response | Awaitable[Response]:
        """Answer one request."""
        path = request.path
        if path == "/" and request.method == "POST":  # nearly every call of an AWS SDK
            return self._otherwise(request)
        way = signpost(request)
        if way is not None:
            return way
        if path == "/":
            return self._otherwise(request)
        for beginning, answer in self._paths.items():
            if path.startswith(beginning):
                return answer(request)
        if self._control.handles(path):
            return self._control.answer(request)
        for protocol in self._recognising:
            if protocol.handles(request):
                return protocol.answer(request)
        return self._otherwise(request)
